// report/page/plan.js: the plan's footprint against its stores, and the terms of its modelled time.
function drawFootprint(figure) {
  const items = data.plan.footprint;
  figure.append(make("h3", {}, "Footprint"));
  if (!items.length) {
    figure.append(make("p", {class: "note"}, "The plan lists no buffers."));
    return;
  }
  for (const store of [...new Set(items.map((item) => item.store))]) {
    const inStore = items.filter((item) => item.store === store);
    const total = inStore.reduce((sum, item) => sum + item.bytes, 0);
    const holds = data.machine.levels.flat().find((box) => box.name === store)?.capacity_bytes;
    const whole = holds ? Math.max(holds.value, total) : total;
    figure.append(make("div", {class: "meter-label"}, make("strong", {}, store),
      make("span", {}, holds ? `${bytesText(total)} of ${figureText(holds, bytesText)}, ${plain(100 * total / holds.value)}%` : bytesText(total))));
    figure.append(make("div", {class: "meter", style: "height:1.5rem"}, inStore.map((item) =>
      make("span", {style: `background:${tensorColor(item.what)};width:${100 * item.bytes / whole}%`, title: `${item.what}: ${bytesText(item.bytes)}`}))));
    figure.append(make("ul", {class: "buffers"}, inStore.map((item) => make("li", {},
      make("i", {style: `background:${tensorColor(item.what)}`}), make("span", {}, item.what), make("span", {}, bytesText(item.bytes))))));
  }
  figure.append(make("figcaption", {}, "Bytes of one tile set, planned. Empty space is what the store has left."));
}

function drawTerms(figure) {
  const time = data.plan.time;
  figure.append(make("h3", {}, "Where the time goes"));
  if (!time) {
    figure.append(make("p", {class: "note"}, "Not modelled: this plan has no time model."));
    return;
  }
  const rows = [["products", time.matmul_seconds, "var(--s)"], ["exponentials", time.exp_seconds, "var(--q)"],
    ["bytes", time.memory_seconds, "var(--k)"], ["each tile's overhead", time.tile_overhead_seconds, "var(--row)"],
    ["idle at the end", time.tail_seconds, "var(--row)"], ["modelled in all", time.total_seconds, "var(--ink)"]];
  if (time.measured_seconds !== null) rows.push(["measured", time.measured_seconds, "var(--series-0)"]);
  const most = Math.max(...rows.map(([, seconds]) => seconds));
  for (const [label, seconds, color] of rows) {
    figure.append(make("div", {class: "meter-label"}, make("span", {}, label), make("span", {}, seconds > 0 ? secondsText(seconds) : "none, or not known")),
      make("div", {class: "meter"}, make("span", {style: `background:${color};width:${100 * seconds / most}%`})));
  }
  figure.append(make("figcaption", {}, "Terms overlap, so the total is not their sum."));
}
