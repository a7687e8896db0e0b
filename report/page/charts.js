// report/page/charts.js: logarithmic charts: time, bytes and memory against length, roofline, sweep.

/** A point's mark: a shape for each series, filled when measured, hollow when modelled. */
function mark(shape, x, y, color, filled) {
  const style = {fill: filled ? color : "var(--surface)", stroke: color, "stroke-width": 2};
  const r = 4.5;
  if (shape % 4 === 0) return make("circle", {cx: x, cy: y, r, ...style});
  if (shape % 4 === 1) return make("rect", {x: x - r, y: y - r, width: 2 * r, height: 2 * r, ...style});
  if (shape % 4 === 2) return make("polygon", {points: `${x},${y - 5.5} ${x + 5.5},${y + 4} ${x - 5.5},${y + 4}`, ...style});
  return make("polygon", {points: `${x},${y - 6} ${x + 6},${y} ${x},${y + 6} ${x - 6},${y}`, ...style});
}

function legend(entries) {
  return make("ul", {class: "legend"}, entries.map(({name, shape, color, measured}) => make("li", {},
    make("svg", {viewBox: "0 0 26 12", "aria-hidden": "true"},
      make("line", {x1: 0, x2: 26, y1: 6, y2: 6, stroke: color, "stroke-width": 2, "stroke-dasharray": measured ? null : "4 3"}),
      mark(shape, 13, 6, color, measured)), name)));
}

/** Powers of ten, or 1-2-5 steps where the range is short. */
function decimalTicks(low, high, most) {
  for (const steps of [[1], [1, 2, 5], [1, 1.5, 2, 3, 4, 5, 6, 8]]) {
    const ticks = [];
    for (let power = Math.floor(Math.log10(low)); power <= Math.log10(high); ++power) {
      for (const step of steps) {
        const tick = step * 10 ** power;
        if (tick >= low && tick <= high) ticks.push(tick);
      }
    }
    if (ticks.length >= 3) return ticks.filter((_, n) => n % Math.ceil(ticks.length / most) === 0);
  }
  return [low, high];
}

/**
 * A chart on two logarithmic axes.
 *   lines: [{name, shape, color, measured, points: [{x, y, text}]}]; text is read out for a point
 *   axes x, y: {label, ticks(low, high), text, include: values that must be visible}
 *   behind(svg, x, y, frame): draws below the lines
 */
function chart(figure, {title, lines, x: xAxis, y: yAxis, height = 260, behind, caption, joined = true}) {
  figure.append(make("h3", {}, title));
  const points = lines.flatMap((line) => line.points.map((point) => ({...point, line})));
  if (!points.length) {
    figure.append(make("p", {class: "note"}, "Neither measured nor modelled in this run."));
    return;
  }
  figure.append(legend(lines.filter((line) => line.points.length)));
  const readout = make("p", {class: "readout quiet", "aria-live": "polite"}, "Point at a mark or use the arrow keys.");
  const holder = make("div");
  figure.append(holder, readout);
  if (caption) figure.append(make("figcaption", {}, caption));
  const [xLow, xHigh] = padded([...points.map((p) => p.x), ...(xAxis.include ?? [])]);
  const [yLow, yHigh] = padded([...points.map((p) => p.y), ...(yAxis.include ?? [])]);
  let chosen = -1;

  redrawn(holder, (width) => {
    const labels = yAxis.ticks(yLow, yHigh).map(yAxis.text);
    const frame = {left: 16 + 6.6 * Math.max(...labels.map((label) => label.length)), right: width - 12, top: 10, bottom: height - 40};
    const x = logScale(xLow, xHigh, frame.left, frame.right), y = logScale(yLow, yHigh, frame.bottom, frame.top);
    const svg = make("svg", {viewBox: `0 0 ${width} ${height}`, height, class: "chart", tabindex: 0, role: "img",
      "aria-label": `${title}. ${points.length} points; arrow keys read them out.`});
    for (const tick of yAxis.ticks(yLow, yHigh)) {
      svg.append(make("line", {class: "grid-line", x1: frame.left, x2: frame.right, y1: y(tick), y2: y(tick)}),
        make("text", {x: frame.left - 8, y: y(tick) + 4, "text-anchor": "end", class: "quiet"}, yAxis.text(tick)));
    }
    let lastRight = -Infinity;
    for (const tick of xAxis.ticks(xLow, xHigh)) {
      svg.append(make("line", {class: "grid-line", x1: x(tick), x2: x(tick), y1: frame.top, y2: frame.bottom}));
      const words = xAxis.text(tick), half = words.length * 3.6;
      if (x(tick) - half < lastRight + 6) continue;  // labels must not touch
      lastRight = x(tick) + half;
      svg.append(make("text", {x: x(tick), y: frame.bottom + 17, "text-anchor": "middle", class: "quiet"}, words));
    }
    svg.append(make("line", {class: "axis", x1: frame.left, x2: frame.right, y1: frame.bottom, y2: frame.bottom}),
      make("text", {x: (frame.left + frame.right) / 2, y: height - 4, "text-anchor": "middle", class: "quiet"}, xAxis.label));
    if (behind) behind(svg, x, y, frame);

    const ring = make("circle", {r: 10, fill: "none", stroke: "var(--ink)", "stroke-width": 1.5, visibility: "hidden"});
    for (const line of lines) {
      const path = line.points.map((p, n) => `${n ? "L" : "M"}${x(p.x)} ${y(p.y)}`).join("");
      if (joined) svg.append(make("path", {d: path, fill: "none", stroke: line.color, "stroke-width": 2, "stroke-dasharray": line.measured ? null : "5 4"}));
    }
    for (const point of points) svg.append(mark(point.line.shape, x(point.x), y(point.y), point.line.color, point.line.measured));
    svg.append(ring);

    const choose = (n) => {
      chosen = n;
      ring.setAttribute("visibility", "visible");
      ring.setAttribute("cx", x(points[n].x));
      ring.setAttribute("cy", y(points[n].y));
      readout.textContent = `${points[n].line.name}: ${points[n].text}`;
    };
    if (chosen >= 0) choose(chosen);
    const nearest = (event) => {
      const at = svg.getBoundingClientRect();
      const distances = points.map((p) => Math.hypot(x(p.x) - (event.clientX - at.left), y(p.y) - (event.clientY - at.top)));
      const best = distances.indexOf(Math.min(...distances));
      if (distances[best] < 60) choose(best);
    };
    svg.addEventListener("pointermove", nearest);
    svg.addEventListener("pointerdown", nearest);
    svg.addEventListener("keydown", (event) => {
      const step = {ArrowRight: 1, ArrowDown: 1, ArrowLeft: -1, ArrowUp: -1}[event.key];
      if (!step) return;
      event.preventDefault();
      choose((chosen + step + points.length) % points.length);
    });
    return svg;
  });
}

/** Two lines for each series: what was measured, and what is modelled. */
function seriesLines(measured, modelled, words) {
  return data.series.flatMap((series, shape) => [[measured, true, "measured"], [modelled, false, words ?? "modelled"]].flatMap(([key, solid, kind]) => {
    const points = key ? series.points.flatMap((point) => (point[key] > 0 ? [point] : [])) : [];
    return points.length ? [{name: `${series.name}, ${kind}`, shape, color: seriesColor(shape), measured: solid, source: points, key}] : [];
  }));
}

function againstLength(figure, title, lines, text, ticks, caption) {
  for (const line of lines) {
    line.points = line.source.map((point) => ({x: point.tokens, y: point[line.key],
      text: `${text(point[line.key])} at ${countText(point.tokens)} tokens`}));
  }
  const tokens = [...new Set(data.series.flatMap((series) => series.points.map((point) => point.tokens)))].sort((a, b) => a - b);
  chart(figure, {title, lines, caption, y: {ticks, text},
    x: {label: "key tokens", text: tokensText, ticks: (low, high) => (tokens.length <= 8 ? tokens : logTicks(low, high, 2, 7))}});
}
const binaryTicks = (low, high) => logTicks(low, high, 2, 6);
const sixDecimalTicks = (low, high) => decimalTicks(low, high, 6);

function drawTime(figure) {
  againstLength(figure, "Time", seriesLines("measured_seconds", "modelled_seconds"), secondsText, sixDecimalTicks);
}
function drawBytes(figure) {
  againstLength(figure, "Bytes to and from fast memory", seriesLines(null, "traffic_bytes", "planned"), bytesText, binaryTicks);
}
function drawMemory(figure) {
  againstLength(figure, "Memory at the peak", seriesLines("measured_memory_bytes", "planned_memory_bytes", "planned"), bytesText, binaryTicks,
    "Planned: operands, result and scratch. Measured: all that the process held, the program included.");
}

function drawRoofline(figure) {
  const {peak_flops_per_second: peak, dtype} = data.machine;
  const offChip = data.series.every((series) => series.points.every((point) => point.off_chip_bytes > 0));
  const bytes = (point) => (offChip ? point.off_chip_bytes : point.traffic_bytes);
  const roofs = data.machine.roofs.filter((roof) => roof.label === "memory" || !offChip);
  const lines = seriesLines("measured_seconds", "modelled_seconds");
  for (const line of lines) {
    line.points = line.source.filter((point) => bytes(point) > 0 && point.flops > 0).map((point) => {
      const intensity = point.flops / bytes(point), speed = point.flops / point[line.key];
      return {x: intensity, y: speed, text: `${flopsText(speed)} at ${countText(point.tokens)} tokens, ${plain(intensity)} FLOP a byte` +
        (peak ? `, ${plain(100 * speed / peak.value)}% of peak` : "")};
    });
  }
  const points = lines.flatMap((line) => line.points);
  const ridges = peak ? roofs.map((roof) => peak.value / roof.bytes_per_second.value) : [];
  const floor = points.length ? Math.min(...points.map((point) => point.x)) / 2 : 1;
  const behind = (svg, x, y, frame) => {
    const clip = make("clipPath", {id: "roofline-frame"}, make("rect", {x: frame.left, y: frame.top, width: frame.right - frame.left,
      height: frame.bottom - frame.top}));
    const inside = make("g", {"clip-path": "url(#roofline-frame)"});
    svg.append(clip, inside);
    roofs.forEach((roof, n) => {
      const rate = roof.bytes_per_second.value, start = floor / 100, end = peak ? peak.value / rate : floor * 1e6;
      const attributes = {stroke: "var(--ink)", "stroke-width": n ? 1.25 : 2.25, "stroke-dasharray": n ? "2 4" : null};
      inside.append(make("line", {x1: x(start), y1: y(start * rate), x2: x(end), y2: y(end * rate), ...attributes}));
      const angle = Math.atan2(y(end * rate) - y(start * rate), x(end) - x(start)) * 180 / Math.PI;
      // The label stands where the slope enters the frame.
      const at = slopeEntry(x, y, rate, frame, start, end);
      inside.append(make("text", {transform: `translate(${at.x} ${at.y}) rotate(${angle})`, dy: frame.right - frame.left < 480 ? 16 : -7, class: "strong"},
        `${roof.label}: ${figureText(roof.bytes_per_second, rateText)} ${roof.bytes_per_second.grade}`));
    });
    if (peak) {
      const from = ridges.length ? Math.min(...ridges) : floor / 100;
      inside.append(make("line", {x1: x(from), x2: frame.right, y1: y(peak.value), y2: y(peak.value), stroke: "var(--ink)", "stroke-width": 2.25}));
      svg.append(make("text", {x: frame.right, y: y(peak.value) - 18, "text-anchor": "end", class: "strong"}, `${dtype} arithmetic: ${figureText(peak, flopsText)} ${peak.grade}`));
    }
  };
  const missing = [peak ? null : "its arithmetic peak", roofs.length ? null : "its memory's bandwidth"].filter(Boolean);
  chart(figure, {title: "Roofline", lines: lines.filter((line) => line.points.length), behind, height: 340, joined: false,
    caption: (peak && points.some((point) => point.y > peak.value) ? "Some marks lie above the arithmetic roof: it is " +
      `${peak.grade}, and this machine can be faster than its figures. ` : "") + (missing.length ? `Not known of this machine, so not drawn: ${missing.join(" and ")}. ` : "") +
      (offChip ? "Bytes are those that the plan moves to and from memory off chip, once the shared cache has served what it holds." :
        "Bytes are the planned ones between fast memory and what lies behind it. A mark may lie above the slope of memory where a cache serves part of them."),
    x: {label: offChip ? "FLOP for each byte off chip" : "FLOP for each byte moved", text: plain, ticks: (low, high) => decimalTicks(low, high, 7), include: ridges.flatMap((ridge) => [ridge / 3, ridge * 2])},
    y: {ticks: sixDecimalTicks, text: flopsText, include: peak ? [peak.value * 1.6] : []}});
}

/** Where a slope of the roofline enters the frame, from the left or from below, with room for its label. */
function slopeEntry(x, y, rate, frame, start, end) {
  for (let at = start; at < end; at *= 1.02) {
    if (x(at) >= frame.left + 8 && y(at * rate) <= frame.bottom - 4) return {x: x(at), y: y(at * rate)};
  }
  return {x: x(end), y: y(end * rate)};
}

/** One quantity of a sweep against the side that was varied, with the first refused side marked. */
function againstSide(figure, title, kinds, text, ticks) {
  const varied = figure.dataset.varied;
  const tried = data.sweep.filter((point) => point.varied === varied);
  const refused = tried.filter((point) => !point.fits).map((point) => point.side);
  const limit = Math.min(...refused);
  const lines = kinds.map(([key, word, solid]) => ({name: word, shape: 0, color: seriesColor(0), measured: solid,
    points: tried.filter((point) => point.fits && point[key] > 0).map((point) => ({x: point.side, y: point[key],
      text: `${point.tile[0]} x ${point.tile[1]}: ${text(point[key])}; takes ${bytesText(point.fullest_bytes)} of ${point.fullest_store}`}))}));
  chart(figure, {title: `${title} against ${varied}`, lines: lines.filter((line) => line.points.length),
    behind: (svg, x, y, frame) => {
      if (!refused.length) return;
      svg.append(make("rect", {x: x(limit), y: frame.top, width: Math.max(0, frame.right - x(limit)), height: frame.bottom - frame.top, fill: "var(--limit)", "fill-opacity": 0.1}),
        make("line", {x1: x(limit), x2: x(limit), y1: frame.top, y2: frame.bottom, stroke: "var(--limit)", "stroke-width": 2}),
        make("text", {x: x(limit) - 6, y: frame.top + 12, "text-anchor": "end"}, `refused from ${countText(limit)}`));
    },
    x: {label: `${varied} of the tile`, text: countText, ticks: (low, high) => logTicks(low, high, 2, 7), include: refused.length ? [limit * 1.5] : []},
    y: {ticks, text}});
}
function drawSweepTime(figure) {
  againstSide(figure, "Time", [["measured_seconds", "measured", true], ["modelled_seconds", "modelled", false]], secondsText, sixDecimalTicks);
}
function drawSweepBytes(figure) {
  againstSide(figure, "Bytes to and from fast memory", [["traffic_bytes", "planned", false]], bytesText, binaryTicks);
}
