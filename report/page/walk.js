// report/page/walk.js: the tile walk as a picture to step through.
const LOAD = 0, VISIT = 1, STORE = 2;

function drawWalk(figure) {
  const walk = data.walk;
  if (!walk) {
    figure.append(make("p", {class: "note"}, "This plan does not walk tiles, so there is no walk to draw."));
    return;
  }
  const steps = walk.steps.map(([action, q, k, bytes, tileMax, max, rescale, sum]) =>
    ({action, q, k, bytes, tileMax, max, rescale, sum}));
  const kTiles = Math.ceil(walk.kv_len / walk.kv_rows);
  let now = firstStep(steps, walk);
  let timer = null;

  const picture = make("div", {class: "picture"});
  const narration = make("p", {class: "narration", "aria-live": "polite"});
  const slider = make("input", {type: "range", min: 0, max: steps.length - 1, value: now, "aria-label": "Step of the walk"});
  const play = make("button", {type: "button", class: "primary"}, "Play");
  const button = (label, shape, move) => {
    const icon = make("svg", {viewBox: "0 0 16 16", "aria-hidden": "true"}, make("path", {d: shape, fill: "currentColor"}));
    const made = make("button", {type: "button", "aria-label": label, title: label}, icon);
    made.addEventListener("click", () => { stop(); go(move()); });
    return made;
  };
  const controls = make("div", {class: "controls"}, play,
    button("Previous query tile", "M2 3h2v10H2zM14 3v10L5 8z", () => tileStart(steps[now].q - (now === tileStart(steps[now].q) ? 1 : 0))),
    button("One step back", "M12 3v10L3 8z", () => now - 1), button("One step on", "M4 3v10l9-5z", () => now + 1),
    button("Next query tile", "M12 3h2v10h-2zM2 3v10l9-5z", () => tileStart(steps[now].q + 1)), slider);
  const panel = walkPanel(walk, steps);
  figure.append(make("div", {class: "walk"},
    make("div", {}, picture, controls, make("figcaption", {}, walkCaption(walk))), make("div", {class: "panel"}, make("h3", {}, "Now"), narration, panel.element)));

  let paint = () => {};
  redrawn(picture, (width) => {
    const drawn = walkPicture(walk, steps, width);
    paint = drawn.paint;
    paint(now);
    return drawn.element;
  });
  slider.addEventListener("input", () => { stop(); go(Number(slider.value)); });
  play.addEventListener("click", () => (timer ? stop() : start()));
  go(now);

  function tileStart(q) {
    const found = steps.findIndex((step) => step.q === q);
    return found >= 0 ? found : q < 0 ? 0 : steps.length - 1;
  }
  function go(step) {
    now = Math.max(0, Math.min(steps.length - 1, step));
    slider.value = now;
    slider.setAttribute("aria-valuetext", `step ${now + 1} of ${steps.length}`);
    paint(now);
    panel.update(now);
    narration.textContent = narrate(walk, steps, now, kTiles);
  }
  function start() {
    if (now === steps.length - 1) go(0);
    narration.setAttribute("aria-live", "off");
    play.textContent = "Pause";
    timer = setInterval(() => (now < steps.length - 1 ? go(now + 1) : stop()), Math.max(120, Math.min(900, 40000 / steps.length)));
  }
  function stop() {
    clearInterval(timer);
    timer = null;
    play.textContent = "Play";
    narration.setAttribute("aria-live", "polite");
  }
}

/** Where the picture shows most before anyone presses play: a visit in the middle that rescales, if there is one. */
function firstStep(steps, walk) {
  const middle = Math.floor(walk.q_tiles.length * 0.6);
  const visits = steps.flatMap((step, index) => (step.q === middle && step.action === VISIT ? [index] : []));
  const rescaling = visits.filter((index) => steps[index].rescale > 0 && steps[index].rescale < 1);
  return rescaling.at(-1) ?? visits[Math.floor(visits.length * 0.6)] ?? 0;
}

function walkCaption(walk) {
  const [rows, keys] = [walk.q_rows, walk.kv_rows];
  const parts = [`${walk.heads === 1 ? "One head." : `${walk.heads} query heads of one kv head, which share each query tile.`} Tiles of ${countText(rows)} queries by ${countText(keys)} keys, drawn for ` +
    `${countText(walk.q_len)} queries and ${countText(walk.kv_len)} keys.`];
  if (!walk.same_lengths) parts.push("The plan's own lengths would be too many or too few tiles to draw; its tile is as drawn.");
  if (walk.kv_splits > 1) parts.push(`The plan computes the keys in ${walk.kv_splits} parts and merges them; this is drawn as one.`);
  if (walk.example_scores) parts.push("The scores of the sample row are made up; its arithmetic is real.");
  return parts.join(" ");
}

function narrate(walk, steps, at, kTiles) {
  const step = steps[at];
  const [first, end] = walk.q_tiles[step.q];
  const queries = `${countText(step.q * walk.q_rows)} to ${countText(Math.min((step.q + 1) * walk.q_rows, walk.q_len) - 1)}`;
  if (step.action === LOAD) {
    return `Queries ${queries} come into fast memory and stay there for their whole walk. Their running maximum, sum and ` +
      "output start empty.";
  }
  if (step.action === STORE) {
    const skipped = kTiles - (end - first);
    return `The walk of queries ${queries} is done: their output is divided by the sum, once, and written. ` +
      (end <= first ? "The mask lets them see no key, so it is 0." :
        skipped > 0 ? `${skipped} of ${kTiles} key tiles were never read: the mask hides them from every one of these queries.` :
        walk.through_cache ? "No score outlives its tile." : "No score was ever written.");
  }
  const keys = `${countText(step.k * walk.kv_rows)} to ${countText(Math.min((step.k + 1) * walk.kv_rows, walk.kv_len) - 1)}`;
  const masked = step.k < walk.q_tiles[step.q][2] || step.k >= walk.q_tiles[step.q][3];
  let text = `Keys and values ${keys} replace the tile before. ${countText(walk.q_rows)} x ${countText(walk.kv_rows)} scores are made, ` +
    (walk.through_cache ? "sent through the cache to the vector unit and back, and forgotten. " : "used and forgotten. ");
  if (masked) text += "The mask's edge runs through this tile, so scores beyond it are set to minus infinity. ";
  const before = steps[at - 1];
  if (step.max === null) return text + "The sample row has seen no key yet.";
  if (before.action === LOAD || before.max === null) {
    return text + `The sample row's maximum is ${step.max.toFixed(2)}.`;
  }
  if (step.max > before.max) {
    return text + `The sample row's maximum rose from ${before.max.toFixed(2)} to ${step.max.toFixed(2)}: what was summed so ` +
      `far is multiplied by exp(${before.max.toFixed(2)} - ${step.max.toFixed(2)}) = ${step.rescale.toFixed(2)}.`;
  }
  return text + `The sample row's maximum stays ${step.max.toFixed(2)}: nothing to rescale.`;
}

/** The grid with its strips, and the sample row's maxima below. paint(step) shows a step. */
function walkPicture(walk, steps, width) {
  const narrow = width < 440, left = narrow ? 50 : 78, right = 44, top = 62, gap = 8, strip = 16, plotHeight = 74;
  const grid = Math.max(120, width - left - right);
  const height = Math.max(110, Math.min(grid * walk.q_len / walk.kv_len, 520));
  const x = (key) => left + grid * Math.min(key, walk.kv_len) / walk.kv_len;
  const y = (query) => top + height * Math.min(query, walk.q_len) / walk.q_len;
  const kTiles = Math.ceil(walk.kv_len / walk.kv_rows), qTiles = walk.q_tiles.length;
  const plotTop = top + height + 34, plotBottom = plotTop + plotHeight;
  const svg = make("svg", {viewBox: `0 0 ${width} ${plotBottom + 22}`, height: plotBottom + 22, role: "img",
    "aria-label": "Grid of scores, with the tile that is being computed now"},
    make("defs", {}, hatch("skipped", "var(--rule)")));

  // What the mask hides is hatched, to the score.
  svg.append(make("rect", {x: left, y: top, width: grid, height, fill: "url(#skipped)"}));
  svg.append(make("path", {d: visibleOutline(walk, x, y), fill: "var(--surface)"}));

  const box = (x0, y0, x1, y1, attributes) => {
    const rect = make("rect", {x: x0 + 0.75, y: y0 + 0.75, width: Math.max(0.5, x1 - x0 - 1.5),
      height: Math.max(0.5, y1 - y0 - 1.5), rx: 2, ...attributes});
    svg.append(rect);
    return rect;
  };
  const cells = walk.q_tiles.map(([first, end], q) => Array.from({length: Math.max(0, end - first)}, (_, n) =>
    box(x((first + n) * walk.kv_rows), y(q * walk.q_rows), x((first + n + 1) * walk.kv_rows), y((q + 1) * walk.q_rows),
      {stroke: "var(--rule)", fill: "none"})));
  const qStrip = [], oStrip = [], kStrip = [], vStrip = [];
  for (let q = 0; q < qTiles; ++q) {
    const [y0, y1] = [y(q * walk.q_rows), y((q + 1) * walk.q_rows)];
    qStrip.push(box(left - gap - strip, y0, left - gap, y1, {stroke: "var(--q)"}));
    oStrip.push(box(left + grid + gap, y0, left + grid + gap + strip, y1, {stroke: "var(--o)"}));
  }
  for (let k = 0; k < kTiles; ++k) {
    const [x0, x1] = [x(k * walk.kv_rows), x((k + 1) * walk.kv_rows)];
    kStrip.push(box(x0, top - gap - strip, x1, top - gap, {stroke: "var(--k)"}));
    vStrip.push(box(x0, top - gap - 2 * strip - 3, x1, top - gap - strip - 3, {stroke: "var(--v)"}));
  }
  const label = (at, text, attributes) => svg.append(make("text", {x: at[0], y: at[1], ...attributes}, text));
  label([left - gap - strip - 6, top + height / 2], "Q", {"text-anchor": "end", class: "strong", fill: "var(--q)"});
  label([left + grid + gap + strip + 6, top + height / 2], "O", {class: "strong"});
  label([left - 6, top - gap - 4], "K", {"text-anchor": "end", class: "strong"});
  label([left - 6, top - gap - strip - 7], "V", {"text-anchor": "end", class: "strong"});
  label([left + (narrow ? 24 : 0), 12], "keys →", {class: "quiet"});
  label([left + grid, 12], countText(walk.kv_len), {"text-anchor": "end", class: "quiet"});
  label(narrow ? [0, 12] : [0, top + 10], narrow ? "queries ↓" : "queries", {class: "quiet"});
  if (!narrow) label([0, top + 26], "↓", {class: "quiet"});
  label([0, top + height], narrow ? tokensText(walk.q_len) : countText(walk.q_len), {class: "quiet"});

  // Below, aligned with the key tiles: the sample row's largest score in each, and the running maximum.
  const known = steps.flatMap((step) => (step.tileMax === null ? [] : [step.tileMax]));
  const low = Math.min(...known, 0), high = Math.max(...known, low + 1);
  const level = (value) => plotBottom - 6 - (plotHeight - 12) * (value - low) / (high - low);
  const sampleLine = make("line", {x1: left, x2: left + grid, stroke: "var(--s)", "stroke-width": 1.5, "stroke-dasharray": "2 3"});
  const plotTitle = make("text", {x: left, y: plotTop - 8, class: "quiet"});
  const bars = make("g"), running = make("path", {fill: "none", stroke: "var(--ink)", "stroke-width": 2});
  svg.append(sampleLine, make("line", {class: "axis", x1: left, x2: left + grid, y1: plotBottom, y2: plotBottom}), plotTitle,
    bars, running);
  label([left + grid, plotBottom + 16], "bars: each tile's own maximum; line: the running one", {"text-anchor": "end", class: "quiet"});
  if (grid < 330) svg.lastChild.textContent = "bar: tile's maximum; line: running";

  const paint = (at) => {
    const step = steps[at];
    walk.q_tiles.forEach(([first], q) => cells[q].forEach((cell, n) => {
      const k = first + n;
      const done = q < step.q || (q === step.q && (step.action === STORE || (step.action === VISIT && k < step.k)));
      const current = q === step.q && step.action === VISIT && k === step.k;
      cell.setAttribute("fill", current ? "var(--s)" : done ? "var(--s)" : "none");
      cell.setAttribute("fill-opacity", current ? 1 : done ? 0.16 : 0);
      cell.setAttribute("stroke", current ? "var(--s)" : "var(--rule)");
    }));
    const shade = (rects, color, opacity) => rects.forEach((rect, n) => {
      rect.setAttribute("fill", color);
      rect.setAttribute("fill-opacity", opacity(n));
      rect.setAttribute("stroke-opacity", opacity(n) > 0.5 ? 1 : 0.4);
    });
    shade(qStrip, "var(--q)", (q) => (q === step.q ? 1 : 0.06));
    shade(oStrip, "var(--o)", (q) => (q < step.q || (q === step.q && step.action === STORE) ? 1 : q === step.q ? 0.3 : 0.04));
    const here = (k) => (step.action === VISIT && k === step.k ? 1 : 0.06);
    shade(kStrip, "var(--k)", here);
    shade(vStrip, "var(--v)", here);

    const row = Math.min((step.q + 1) * walk.q_rows, walk.q_len) - 1;
    const rowY = y(row + 1) - 2;
    sampleLine.setAttribute("y1", rowY);
    sampleLine.setAttribute("y2", rowY);
    plotTitle.textContent = `sample row, query ${countText(row)}: largest scores`;
    const seen = steps.filter((other, index) => index <= at && other.q === step.q && other.action === VISIT && other.tileMax !== null);
    bars.replaceChildren(...seen.map((other) => {
      const x0 = x(other.k * walk.kv_rows) + 2, x1 = x((other.k + 1) * walk.kv_rows) - 2;
      return make("rect", {x: x0, y: level(other.tileMax), width: Math.max(1, x1 - x0), height: plotBottom - level(other.tileMax),
        fill: "var(--s)", "fill-opacity": other === step ? 1 : 0.35, rx: 2});
    }));
    running.setAttribute("d", seen.map((other, n) => `${n ? "V" : "M" + x(other.k * walk.kv_rows) + " "}${level(other.max)}` +
      `H${x((other.k + 1) * walk.kv_rows)}`).join(""));
  };
  return {element: svg, paint};
}

/** The scores that the mask shows, as a path: for each query the keys from q + low to q + high. */
function visibleOutline(walk, x, y) {
  const clamp = (key) => Math.max(0, Math.min(walk.kv_len, key));
  const turns = [0, walk.q_len, -walk.low, -walk.high - 1, walk.kv_len - walk.low, walk.kv_len - walk.high - 1]
    .filter((query) => query >= 0 && query <= walk.q_len).sort((a, b) => a - b);
  const begin = turns.map((query) => `${x(clamp(query + walk.low))} ${y(query)}`);
  const end = turns.map((query) => `${x(clamp(query + walk.high + 1))} ${y(query)}`).reverse();
  return `M${begin.join("L")}L${end.join("L")}Z`;
}

/** What fast memory holds, the sample row's numbers, the bytes so far. update(step) shows a step. */
function walkPanel(walk, steps) {
  const items = data.plan.footprint;
  const stores = [...new Set(items.map((item) => item.store))];
  const capacity = (store) => data.machine.levels.flat().find((box) => box.name === store)?.capacity_bytes;
  const element = make("div");
  const rows = [];
  for (const store of stores) {
    const inStore = items.filter((item) => item.store === store);
    const total = inStore.reduce((sum, item) => sum + item.bytes, 0), holds = capacity(store);
    const meter = make("div", {class: "meter"}), list = make("ul", {class: "buffers"});
    for (const item of inStore) {
      const color = tensorColor(item.what);
      const bar = make("span", {style: `background:${color};width:${100 * item.bytes / (holds?.value ?? total)}%`});
      const row = make("li", {}, make("i", {style: `background:${color}`}), make("span", {}, item.what), make("span", {}, bytesText(item.bytes)));
      meter.append(bar);
      list.append(row);
      rows.push({item, bar, row});
    }
    element.append(make("h3", {}, `In fast memory: ${store}`), meter,
      make("p", {class: "quiet", style: "font-size:.85rem;margin:.1rem 0 .4rem"},
        holds ? `${bytesText(total)} of ${figureText(holds, bytesText)}` : bytesText(total)), list);
  }
  const maximum = make("dd"), sum = make("dd"), factor = make("dd");
  const term = (name, value) => make("div", {}, make("dt", {}, name), value);
  element.append(make("h3", {}, "The sample row"), make("dl", {class: "numbers"}, term("running maximum", maximum),
    term("factor on what came before", factor), term("running sum of exp(score - maximum)", sum)));

  const end = steps.at(-1).bytes, most = Math.max(end, walk.standard_bytes);
  const tiled = make("span", {style: "background:var(--series-0)"}), tiledText = make("span");
  element.append(make("h3", {}, "Bytes to and from slow memory, planned"),
    make("div", {class: "meter-label"}, make("span", {}, "tiled, so far"), tiledText), make("div", {class: "meter"}, tiled),
    make("div", {class: "meter-label"}, make("span", {}, "standard, in all"), make("span", {}, bytesText(walk.standard_bytes))),
    make("div", {class: "meter"}, make("span", {style: `background:var(--series-1);width:${100 * walk.standard_bytes / most}%`})));

  const update = (at) => {
    const step = steps[at];
    for (const {item, bar, row} of rows) {
      const moving = /^(k|v|s|p)/i.test(item.what.trim());
      const present = step.action === VISIT || !moving;
      row.classList.toggle("out", !present);
      bar.style.opacity = present ? 1 : 0.15;
    }
    maximum.textContent = step.max === null ? "none yet" : step.max.toFixed(3);
    sum.textContent = step.max === null ? "0" : step.sum.toFixed(3);
    factor.textContent = step.action === VISIT && step.max !== null ? step.rescale.toFixed(3) : "-";
    tiled.style.width = `${100 * step.bytes / most}%`;
    tiledText.textContent = `${bytesText(step.bytes)} of ${bytesText(end)}`;
  };
  return {element, update};
}
