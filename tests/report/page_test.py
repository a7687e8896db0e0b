#!/usr/bin/env python3
"""tests/report/page_test.py: opens the report in headless Chromium, on phone and desktop, light and dark.

  page_test.py SAMPLE_PAGE DIRECTORY [TILEWRIGHT]
      SAMPLE_PAGE writes pages of made-up figures, TILEWRIGHT one of its own; screenshots stay in DIRECTORY

Exits with 77, and says so, where there is no Chromium.
"""
import html
import json
import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile

PHONE, DESKTOP = 390, 1200
FIGURES = {  # id: marks that the usual page must show there
    "fig-walk": "svg rect", "fig-hierarchy": "svg rect", "fig-roofline": "svg circle", "fig-time": "svg circle",
    "fig-bytes": "svg circle", "fig-memory": "svg circle", "fig-footprint": ".meter span", "fig-terms": ".meter span, .note",
    "fig-sweep-time-0": "svg circle", "fig-sweep-bytes-0": "svg circle",
}

WATCH = "<script>window.faults = []; addEventListener('error', (event) => faults.push(event.message));</script>"

# Runs in the page, uses it as a person would, and leaves what it saw in the document.
PROBE = """<script>
addEventListener("load", () => setTimeout(async () => {
  const all = (selector) => [...document.querySelectorAll(selector)];
  const pause = (ms) => new Promise((resolve) => setTimeout(resolve, ms));
  const facts = {faults, figures: {}, alerts: all("[role=alert]").map((alert) => alert.textContent)};
  for (const [id, marks] of Object.entries(FIGURES)) {
    const figure = document.getElementById(id);
    facts.figures[id] = figure ? {marks: figure.querySelectorAll(marks).length, note: figure.querySelector(".note")?.textContent ?? "",
      height: figure.getBoundingClientRect().height} : null;
  }
  facts.overflow = document.documentElement.scrollWidth - innerWidth;
  facts.wide = all("body *").filter((e) => !e.closest("table, defs, clipPath") && e.getBoundingClientRect().right > innerWidth + 1)
    .map((e) => e.tagName + "." + (e.getAttribute("class") ?? "") + " " + e.textContent.trim().slice(0, 30)).slice(0, 5);
  facts.small = all("button, input").filter((e) => e.getBoundingClientRect().height < 34).map((e) => e.outerHTML.slice(0, 60));
  facts.unnamed = all("button, input, svg[role=img]").filter((e) => !e.getAttribute("aria-label") && !e.textContent.trim()).length;
  facts.open = all("details[open]").length;
  facts.background = getComputedStyle(document.body).backgroundColor;

  const channel = (value) => (value /= 255) <= 0.04045 ? value / 12.92 : ((value + 0.055) / 1.055) ** 2.4;
  const light = (rgb) => { const [r, g, b] = rgb.map(channel); return 0.2126 * r + 0.7152 * g + 0.0722 * b; };
  const parse = (color) => color.match(/[\\d.]+/g).map(Number);
  const behind = (e) => { for (; e; e = e.parentElement) { const c = parse(getComputedStyle(e).backgroundColor); if (c.length < 4 || c[3] > 0) return c; } };
  facts.faint = all("p, h1, h2, h3, li span, dt, dd, td, th, summary, figcaption, button, .tag").filter((e) => e.textContent.trim() && !e.closest(".out"))
    .filter((e) => { const a = light(parse(getComputedStyle(e).color).slice(0, 3)), b = light(behind(e).slice(0, 3));
      return (Math.max(a, b) + 0.05) / (Math.min(a, b) + 0.05) < 4.5; }).map((e) => e.tagName + " " + e.textContent.trim().slice(0, 40)).slice(0, 5);

  const narration = document.querySelector(".narration");
  if (narration) {
    const [play, , , next] = all(".controls button"), slider = document.querySelector(".controls input");
    const walk = facts.walk = {seen: [narration.textContent]};
    next.click();
    walk.seen.push(narration.textContent);
    slider.value = 0;
    slider.dispatchEvent(new Event("input"));
    walk.first = narration.textContent;
    slider.value = slider.max;
    slider.dispatchEvent(new Event("input"));
    walk.last = narration.textContent;
    play.click();
    await pause(2500);
    walk.played = Number(slider.value);  // from the start again
    walk.steps = Number(slider.max);
    play.click();
    const stopped = slider.value;
    await pause(2000);
    walk.stopped = slider.value === stopped;
  }
  facts.readouts = all("svg.chart").map((chart) => {
    chart.focus();
    chart.dispatchEvent(new KeyboardEvent("keydown", {key: "ArrowRight"}));
    return document.activeElement === chart && chart.closest("figure").querySelector(".readout").textContent;
  });
  const out = document.createElement("pre");
  out.id = "facts";
  out.textContent = JSON.stringify(facts);
  document.body.append(out);
}, 200));
</script>"""


class Browser:
    def __init__(self, program):
        self.program = program

    def run(self, page, width, height, dark, *flags):
        with tempfile.TemporaryDirectory() as profile:
            command = [self.program, "--headless", "--disable-gpu", "--hide-scrollbars", "--no-first-run",
                       f"--user-data-dir={profile}", "--virtual-time-budget=15000", f"--window-size={width},{height}",
                       f"--blink-settings=preferredColorScheme={0 if dark else 1}", *flags]
            if os.geteuid() == 0:
                command.append("--no-sandbox")  # it refuses to run as root otherwise
            done = subprocess.run([*command, page.as_uri()], capture_output=True, text=True, timeout=240)
        return done.stdout

    def facts(self, page, width, dark):
        text = page.read_text()
        probe = PROBE.replace("FIGURES", json.dumps(FIGURES))
        probed = page.with_suffix(".probed.html")
        probed.write_text(text.replace("<head>", "<head>" + WATCH, 1).replace("</body>", probe + "</body>"))
        dom = self.run(probed, width, 900, dark, "--dump-dom")
        found = re.search(r'<pre id="facts">(.*?)</pre>', dom, re.S)
        if not found:
            return {"faults": ["the page did not finish"], "figures": {}}
        return json.loads(html.unescape(found.group(1)))


def problems(facts, dark, kind):
    """What is wrong with a page that was opened: "bare" ones lack figures, "bench" ones a sweep."""
    wrong = [f"script: {fault}" for fault in facts["faults"]]
    if not facts["figures"]:
        return wrong
    wrong += [f"alert: {alert}" for alert in facts["alerts"]]
    if facts["overflow"] > 0:
        wrong.append(f"{facts['overflow']} pixels wider than the window: {facts['wide']}")
    wrong += [f"hard to touch: {small}" for small in facts["small"]] + [f"hard to read: {faint}" for faint in facts["faint"]]
    if facts["unnamed"]:
        wrong.append(f"{facts['unnamed']} controls or pictures have no name")
    if facts["open"]:
        wrong.append("tables are not folded away")
    shade = sum(map(int, re.findall(r"\d+", facts["background"])[:3]))
    if (shade < 300) != dark:
        wrong.append(f"background is {facts['background']}, dark is {dark}")
    if kind != "bare":
        for name, figure in facts["figures"].items():
            if name.startswith("fig-sweep") and kind == "bench":
                continue
            if figure is None or figure["marks"] == 0 or figure["height"] < 60:
                wrong.append(f"{name} shows nothing: {figure}")
        walk = facts["walk"]
        if len(set(walk["seen"])) != 2 or "come into fast memory" not in walk["first"] or "is done" not in walk["last"]:
            wrong.append(f"stepping does not tell what happens: {walk}")
        if not 0 < walk["played"] < walk["steps"] or not walk["stopped"]:
            wrong.append(f"play and pause do not work: {walk}")
        if len(facts["readouts"]) < 4 or not all(": " in (readout or "") for readout in facts["readouts"]):
            wrong.append(f"arrow keys do not read out points: {facts['readouts']}")
    return wrong


def planted(page):
    """Copies of the usual page, each with a fault that must be found."""
    text = page.read_text()
    faults = {  # what must be said: the change
        "script": ("function drawRoofline(figure) {", "function drawRoofline(figure) { undefined.x;"),
        "fig-bytes shows nothing": ('"fig-bytes": drawBytes', '"fig-bytes": () => {}'),
        "wider than the window": ("<main>", '<main><div style="width:1500px">x</div>'),
        "hard to read": ("<main>", '<main><p style="color:#888;background:#777">faint</p>'),
        "hard to touch": ("min-height: 2.4rem", "min-height: 1rem"),
        "play and pause": ('play.addEventListener("click"', 'play.addEventListener("never"'),
    }
    for number, (said, (before, after)) in enumerate(faults.items()):
        assert before in text, f"there is no '{before}' to change"
        copy = page.with_name(f"planted_{number}.html")
        copy.write_text(text.replace(before, after))
        yield said, copy


def main():
    sample_page, directory = sys.argv[1], pathlib.Path(sys.argv[2]).resolve()
    program = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
    if not program:
        print("NOT RUN: no Chromium here, so the report was not opened. Debian: apt-get install chromium")
        sys.exit(77)
    directory.mkdir(parents=True, exist_ok=True)
    subprocess.run([sample_page, str(directory)], check=True)
    browser = Browser(program)
    failed = 0
    names = ["usual", "bare"]
    if len(sys.argv) > 3:
        subprocess.run([sys.argv[3], "bench", "--q-len", "600", "--heads", "2", "--dim", "32", "--causal", "bottom-right",
                        "--runs", "1", "--report", str(directory / "bench.html")], check=True, stdout=subprocess.DEVNULL)
        names.append("bench")
    for name in names:
        page = directory / f"{name}.html"
        for width in (PHONE, DESKTOP):
            for dark in (False, True):
                wrong = problems(browser.facts(page, width, dark), dark, name)
                kind = f"{name}-{'phone' if width == PHONE else 'desktop'}-{'dark' if dark else 'light'}"
                print(f"{kind}: {'; '.join(wrong) or 'as it should be'}", flush=True)
                failed += len(wrong)
                picture = directory / f"{kind}.png"
                picture.unlink(missing_ok=True)
                browser.run(page, width, 6400 if width == PHONE else 4300, dark, f"--screenshot={picture}")
                if not picture.exists() or picture.stat().st_size < 10000:
                    print(f"{kind}: no picture was taken")
                    failed += 1
    for said, page in planted(directory / "usual.html"):
        found = [wrong for wrong in problems(browser.facts(page, PHONE, False), False, "usual") if said in wrong]
        print(f"planted fault: {found[0][:90] if found else f'NOT FOUND: {said}'}", flush=True)
        failed += not found
    sys.exit(1 if failed else 0)


if __name__ == "__main__":
    main()
