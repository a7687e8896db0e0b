// report/page/hierarchy.js: the machine's memories as a pyramid, what the plan keeps in each, the rates between.
function drawHierarchy(figure) {
  const {levels, name, units, unit_kind: unitKind, peak_flops_per_second: peak, dtype} = data.machine;
  const capacities = levels.flat().flatMap((box) => (box.capacity_bytes ? [box.capacity_bytes.value] : []));
  const smallest = Math.min(...capacities), largest = Math.max(...capacities);
  redrawn(figure, (width) => {
    const rowHeight = 58, gap = 46, topHeight = 44, narrow = width < 560;
    const height = topHeight + levels.length * (rowHeight + gap);
    const svg = make("svg", {viewBox: `0 0 ${width} ${height}`, height, role: "img",
      "aria-label": `Memories of ${name}, from the arithmetic down`});
    const middle = width / 2;
    const text = (x, y, words, attributes = {}) => svg.append(make("text", {x, y, "text-anchor": "middle", ...attributes}, words));

    const computeWidth = Math.min(width, narrow ? 230 : 280);
    svg.append(make("rect", {x: middle - computeWidth / 2, y: 0, width: computeWidth, height: topHeight, rx: topHeight / 2, fill: "var(--ink)"}));
    text(middle, 18, `arithmetic: ${countText(units)} ${unitKind}${units === 1 ? "" : "s"}`, {style: "fill:var(--paper)", class: "strong"});
    text(middle, 34, peak ? `${figureText(peak, flopsText)} ${dtype}` : `${dtype} rate not known`, {style: "fill:var(--paper)"});

    levels.forEach((boxes, level) => {
      const y = topHeight + gap + level * (rowHeight + gap);
      const inLevel = boxes.flatMap((box) => (box.capacity_bytes ? [box.capacity_bytes.value] : []));
      const size = inLevel.length ? Math.max(...inLevel) : smallest;
      const share = (Math.log(size / smallest) || 0) / (Math.log(largest / smallest) || 1);
      const least = Math.min(width, boxes.length * (narrow ? 108 : 150), width);
      const full = Math.max(least, width * ((narrow ? 0.62 : 0.4) + (narrow ? 0.38 : 0.6) * share));
      const each = (full - (boxes.length - 1) * 8) / boxes.length;
      boxes.forEach((box, n) => {
        const x = middle - full / 2 + n * (each + 8), center = x + each / 2;
        svg.append(arrow(center, y - gap + 5, y - 5));
        if (box.bytes_per_second) {
          const rate = figureText(box.bytes_per_second, rateText);
          if (boxes.length > 1) text(center, y - gap / 2 + 4, rate, {class: "quiet halo"});
          else text(center + 10, y - gap / 2 + 4, box.unit && box.unit !== "device" ? `${rate} each` : rate, {class: "quiet", "text-anchor": "start"});
        }
        const used = box.holds.reduce((sum, item) => sum + item.bytes, 0);
        svg.append(make("rect", {x, y, width: each, height: rowHeight, rx: 10, fill: `var(--level-${Math.min(level, 4)})`}));
        if (used > 0 && box.capacity_bytes) svg.append(fill(box, x, y + rowHeight - 9, each, 9));
        text(center, y + 20, box.name, {class: "strong"});
        const capacity = figureText(box.capacity_bytes, bytesText);
        text(center, y + 36, box.unit && box.unit !== "device" && each > 130 ? `${capacity} a ${box.unit}` : capacity);
      });
    });
    return svg;
  });
  const used = levels.flat().filter((box) => box.holds.length > 0).map((box) =>
    `${box.name}: ${bytesText(box.holds.reduce((sum, item) => sum + item.bytes, 0))}`);
  figure.append(make("figcaption", {}, "Widths grow with the logarithm of the capacity." +
    (used.length ? ` The plan's tiles take, for each ${unitKind}, ${used.join("; ")}: the coloured part of a bar is the share of it, to scale.` : "")));

  function arrow(x, from, to) {
    return make("path", {d: `M${x} ${to}V${from}M${x - 4} ${from + 5}L${x} ${from}L${x + 4} ${from + 5}M${x - 4} ${to - 5}L${x} ${to}L${x + 4} ${to - 5}`,
      fill: "none", stroke: "var(--row)", "stroke-width": 1.5});
  }

  /** The plan's buffers along the bottom of a bar, to scale. */
  function fill(box, x, y, width, height) {
    const group = make("g", {});
    const id = `clip-${box.name.replace(/\W/g, "-")}`;
    group.append(make("clipPath", {id}, make("rect", {x, y: y - 49, width, height: height + 49, rx: 10})));
    const inner = make("g", {"clip-path": `url(#${id})`});
    let at = x;
    for (const item of box.holds) {
      const share = width * item.bytes / box.capacity_bytes.value;
      inner.append(make("rect", {x: at, y, width: share, height, fill: tensorColor(item.what)},
        make("title", {}, `${item.what}: ${bytesText(item.bytes)}`)));
      at += share;
    }
    group.append(inner);
    return group;
  }
}
