// report/page/draw.js: the least that the figures need to draw: elements, scales, redrawing to width.
"use strict";

const data = JSON.parse(document.getElementById("data").textContent);

/** An element with attributes and children; names of SVG elements make SVG elements. */
const SVG_NAMES = new Set(["svg", "g", "rect", "line", "path", "circle", "text", "tspan", "defs", "pattern", "title",
  "clipPath", "polygon"]);
function make(name, attributes = {}, ...children) {
  const element = SVG_NAMES.has(name) ? document.createElementNS("http://www.w3.org/2000/svg", name)
                                      : document.createElement(name);
  for (const [key, value] of Object.entries(attributes)) {
    if (value !== null && value !== undefined && value !== false) element.setAttribute(key, value);
  }
  element.append(...children.flat().filter((child) => child !== null && child !== undefined));
  return element;
}

/** Draws now and whenever the container's width changes. draw(width) returns an element. */
function redrawn(container, draw) {
  const holder = make("div");
  container.append(holder);
  let last = 0;
  const update = () => {
    const width = Math.floor(holder.clientWidth);
    if (width === 0 || width === last) return;
    last = width;
    holder.replaceChildren(draw(width));
  };
  update();
  new ResizeObserver(update).observe(holder);
}

/** A logarithmic scale from [low, high] to [from, to]. */
function logScale(low, high, from, to) {
  const span = Math.log(high / low) || 1;
  return (value) => from + (to - from) * Math.log(value / low) / span;
}

/** Powers of base, times start, that lie in [low, high]; at most `most` of them. */
function logTicks(low, high, base, most) {
  const first = Math.ceil(Math.log(low) / Math.log(base) - 1e-9);
  const last = Math.floor(Math.log(high) / Math.log(base) + 1e-9);
  const step = Math.max(1, Math.ceil((last - first + 1) / most));
  const ticks = [];
  for (let power = first; power <= last; power += step) ticks.push(base ** power);
  return ticks;
}

/** A little room at both ends of a logarithmic range. */
function padded(values, share = 0.08) {
  const low = Math.min(...values), high = Math.max(...values);
  const room = Math.max((high / low) ** share, 1.25);
  return [low / room, high * room];
}

function seriesColor(index) {
  return `var(--series-${index % 4})`;
}

/** The colour of a buffer or tensor, by its name. */
function tensorColor(name) {
  const word = name.trim().toLowerCase();
  if (/^(q|quer)/.test(word)) return "var(--q)";
  if (/^(k|key)/.test(word)) return "var(--k)";
  if (/^v/.test(word)) return "var(--v)";
  if (/^(s|p)/.test(word)) return "var(--s)";
  if (/^o/.test(word)) return "var(--o)";
  return "var(--row)";
}

/** Diagonal hatching, as a fill. */
function hatch(id, color) {
  return make("pattern", {id, width: 6, height: 6, patternUnits: "userSpaceOnUse", patternTransform: "rotate(45)"},
    make("line", {x1: 0, y1: 0, x2: 0, y2: 6, stroke: color, "stroke-width": 1.5}));
}
