#!/usr/bin/env python3
"""tools/report_images.py: pictures of a report's figures, for the documents.

  tools/report_images.py PAGE DIRECTORY    writes walk.png, roofline.png, ... and walk-dark.png, ...

PAGE comes from `tilewright demo --report PAGE`. Needs Chromium.
"""
import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile

SECTIONS = {"walk": 860, "roofline": 860, "growth": 1040}  # widths in pixels


def browse(page, width, height, dark, *flags):
    program = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
    if not program:
        sys.exit("no Chromium here; Debian: apt-get install chromium")
    with tempfile.TemporaryDirectory() as profile:
        command = [program, "--headless", "--disable-gpu", "--hide-scrollbars", "--no-first-run", f"--user-data-dir={profile}",
                   "--virtual-time-budget=3000", f"--window-size={width},{height}",
                   f"--blink-settings=preferredColorScheme={0 if dark else 1}", *flags]
        if os.geteuid() == 0:
            command.append("--no-sandbox")
        return subprocess.run([*command, page.as_uri()], capture_output=True, text=True, check=True, timeout=240).stdout


def only(text, section):
    """The page with one section's figures alone."""
    style = (f"<style>header, footer, details, section:not([aria-labelledby={section}-title]), section > h2, section > p, .readout"
             " { display: none !important } section, figure { margin: 0 !important } body { max-width: none; padding: 4px }</style>")
    measure = ("<script>document.fonts.ready.then(() => setTimeout(() => { document.title = 'height ' + "
               "Math.ceil(document.querySelector('main').getBoundingClientRect().bottom + 4); }, 300));</script>")
    return text.replace("</head>", style + "</head>").replace("</body>", measure + "</body>")


def main():
    if len(sys.argv) != 3:
        sys.exit(__doc__)
    text, directory = pathlib.Path(sys.argv[1]).read_text(), pathlib.Path(sys.argv[2])
    directory.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory() as scratch:
        for name, width in SECTIONS.items():
            page = pathlib.Path(scratch) / f"{name}.html"
            page.write_text(only(text, name))
            height = int(re.search(r"<title>height (\d+)", browse(page, width, 900, False, "--dump-dom")).group(1))
            for dark in (False, True):
                picture = (directory / f"{name}{'-dark' if dark else ''}.png").resolve()
                browse(page, width, height, dark, f"--screenshot={picture}")
                print(f"{picture.name}: {width} x {height}, {picture.stat().st_size} bytes")


if __name__ == "__main__":
    main()
