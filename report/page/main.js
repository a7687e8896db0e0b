// report/page/main.js: draws every figure; one that fails leaves its table open and says so.
const FIGURES = {
  "fig-walk": drawWalk, "fig-hierarchy": drawHierarchy, "fig-roofline": drawRoofline, "fig-time": drawTime,
  "fig-bytes": drawBytes, "fig-memory": drawMemory, "fig-footprint": drawFootprint, "fig-terms": drawTerms,
};
for (const figure of document.querySelectorAll("figure[id]")) {
  const draw = FIGURES[figure.id] ?? (figure.className === "sweep-time" ? drawSweepTime : drawSweepBytes);
  try {
    draw(figure);
    figure.closest("section").querySelectorAll("details").forEach((details) => { details.open = false; });
  } catch (error) {
    figure.append(make("p", {class: "note", role: "alert"}, `This figure could not be drawn (${error.message}); its table has the same numbers.`));
    reportError(error);
  }
}
