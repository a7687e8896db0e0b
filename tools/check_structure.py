#!/usr/bin/env python3
"""tools/check_structure.py: holds the source tree to ARCHITECTURE.md: include direction, file size, headings.

Prints each fault as `file:line: what is wrong`, and exits 1 if there is any.
"""
import pathlib
import re
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parent.parent
MAX_LINES = 500

# Layers from the bottom; a file includes its own folder and lower layers only. Folders that share a
# layer do not see each other, except where ALLOWED says so.
LAYERS = [
    ("include/tilewright", 0),
    ("src/schedule", 1),  # freestanding: includes nothing but itself
    ("src/problem", 2),
    ("src/machine", 2),
    ("src/plan", 3),
    ("src/reference", 4),
    ("src/backend/cpu", 4),
    ("src/backend/cuda", 4),
    ("src/backend/simulator", 4),
    ("src/api", 5),
    ("cli", 7),
    ("report", 7),
]
FREESTANDING = ("src/schedule", "kernels")
# (from, to): exceptions, each with its reason.
ALLOWED = {
    ("kernels", "src/schedule"): "kernels share the tile walk and the family headers",
    ("src/backend/cuda", "kernels"): "the host side fills the kernels' parameter structs",
    ("cli", "report"): "the command writes the report",
}
INCLUDE = re.compile(r'^\s*#\s*include\s+(["<])([^">]+)[">]')
GENERATED = "_specialisation.inc"  # written by the host for each kernel it compiles
SOURCES = (".h", ".cpp", ".c", ".cu")


def layer_of(path):
    best = None
    for folder, level in LAYERS:
        if path.startswith(folder + "/") and (best is None or len(folder) > len(best[0])):
            best = (folder, level)
    return best


def folder_of(path):
    if path.startswith("kernels/"):
        return "kernels"
    found = layer_of(path)
    return found[0] if found else None


def resolve(including, quoted):
    """The repository path of an include, or None when it is not ours."""
    for base in (pathlib.Path(including).parent, pathlib.Path("src"), pathlib.Path("include"), pathlib.Path(".")):
        candidate = base / quoted
        if (ROOT / candidate).is_file():
            return str((ROOT / candidate).resolve().relative_to(ROOT))
    return None


def check_file(path, text):
    faults = []
    lines = text.splitlines()
    if len(lines) > MAX_LINES:
        faults.append((len(lines), f"{len(lines)} lines; at most {MAX_LINES}: more than one idea?"))
    heading = lines[0] if lines else ""
    if path.endswith(SOURCES) and path.split("/")[0] in ("src", "include", "cli", "report", "kernels"):
        shown = path.removeprefix("include/")
        if not re.match(r"(//|/\*) " + re.escape(shown) + r": .", heading):
            faults.append((1, f"the first line is not '// {shown}: what it is'"))
    mine = folder_of(path)
    for number, line in enumerate(lines, 1):
        match = INCLUDE.match(line)
        if not match:
            continue
        bracket, quoted = match.groups()
        target = resolve(path, quoted)
        if target is None:
            if mine in FREESTANDING and not quoted.endswith(GENERATED):
                faults.append((number, f"{mine} is freestanding, yet includes <{quoted}>"))
            elif mine == "include/tilewright" and (bracket == '"' or "/" in quoted):
                faults.append((number, f"public headers use the standard library alone, not {quoted}"))
            continue
        theirs = folder_of(target)
        if mine is None or theirs is None or mine == theirs or (mine, theirs) in ALLOWED:
            continue
        my_level = (layer_of(path) or (mine, -1))[1]
        their_level = (layer_of(target) or (theirs, 99))[1]
        if their_level >= my_level:
            faults.append((number, f"{mine} may not include {theirs} ({target})"))
        if mine in FREESTANDING:
            faults.append((number, f"{mine} is freestanding, yet includes {target}"))
    return faults


def main():
    if "--self-test" in sys.argv:
        planted = [
            ("src/schedule/mask_rule.h", "// src/schedule/mask_rule.h: x.\n#include <vector>\n"),
            ("src/plan/choose.h", '// src/plan/choose.h: x.\n#include "backend/cpu/cpu_backend.h"\n'),
            ("include/tilewright/plan.h", "// tilewright/plan.h: x.\n#include <fmt/format.h>\n"),
            ("src/plan/choose.h", "// src/plan/choose.h: x.\n" + "\n" * MAX_LINES),
            ("src/plan/choose.h", "// something else\n"),
        ]
        for path, text in planted:
            if not check_file(path, text):
                print(f"self-test: the fault planted in {path} was not found")
                return 1
        print(f"self-test: {len(planted)} planted faults found")
        return 0
    listed = subprocess.run(["git", "ls-files"], cwd=ROOT, capture_output=True, text=True, check=True).stdout
    count = 0
    files = [f for f in listed.splitlines() if f.endswith(SOURCES + (".py",)) and (ROOT / f).is_file()]
    for path in files:
        for number, fault in check_file(path, (ROOT / path).read_text()):
            print(f"{path}:{number}: {fault}")
            count += 1
    print(f"structure: {len(files)} files, {count} faults")
    return 1 if count else 0


if __name__ == "__main__":
    sys.exit(main())
