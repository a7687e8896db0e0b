// report/page/text.js: numbers with units, as in the tables.
function scaled(value, step, units) {
  let unit = 0;
  while (Math.abs(value) >= step && unit + 1 < units.length) {
    value /= step;
    ++unit;
  }
  const whole = Number.isInteger(value) || Math.abs(value) >= 100;
  return `${value.toFixed(whole ? 0 : 1)} ${units[unit]}`;
}
const bytesText = (bytes) => scaled(bytes, 1024, ["B", "KiB", "MiB", "GiB", "TiB", "PiB"]);
const rateText = (rate) => scaled(rate, 1000, ["B/s", "kB/s", "MB/s", "GB/s", "TB/s", "PB/s"]);
const flopsText = (rate) => scaled(rate, 1000, ["FLOP/s", "kFLOP/s", "MFLOP/s", "GFLOP/s", "TFLOP/s", "PFLOP/s"]);
const countText = (count) => Math.round(count).toLocaleString("en");
const plain = (value) => Number(value.toPrecision(3)).toLocaleString("en", {maximumFractionDigits: 12});

function secondsText(seconds) {
  if (seconds >= 1) return `${plain(seconds)} s`;
  if (seconds >= 1e-3) return `${plain(seconds * 1e3)} ms`;
  return `${plain(seconds * 1e6)} µs`;
}

/** 4,096 as 4k: powers of two read best in their own unit. */
function tokensText(tokens) {
  if (tokens >= 1048576 && tokens % 1048576 === 0) return `${tokens / 1048576}M`;
  return tokens >= 1024 && tokens % 1024 === 0 ? `${tokens / 1024}k` : `${tokens}`;
}

/** A figure's value as text, with a dagger when it was only recalled. */
function figureText(figure, text) {
  return figure ? text(figure.value) + (figure.grade === "recalled" ? "†" : "") : "not known";
}
