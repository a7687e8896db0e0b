#!/usr/bin/env python3
"""tools/check_docs.py: keeps the documents true: links resolve, named files exist, README's commands run.

  tools/check_docs.py links            every link and every `path/` in the documents leads to something
  tools/check_docs.py cpp OUT          writes README's C++ example to the file OUT, to be compiled
  tools/check_docs.py run BIN_DIR      runs README's shell commands with BIN_DIR first on PATH
  tools/check_docs.py self-test        shows that planted faults are found
"""
import pathlib
import re
import subprocess
import os
import sys
import tempfile

ROOT = pathlib.Path(__file__).resolve().parent.parent
LINK = re.compile(r"\[[^\]]*\]\(([^)#\s]+)(?:#[^)]*)?\)")
NAMED = re.compile(r"`((?:include|src|cli|kernels|machines|tests|tools|bench|examples|docs|cmake)/[\w./-]*)`")


def documents():
    listed = subprocess.run(["git", "ls-files", "*.md"], cwd=ROOT, capture_output=True, text=True, check=True)
    return [ROOT / name for name in listed.stdout.splitlines()]


def dead_links(text, folder):
    dead = []
    for target in LINK.findall(text):
        if "://" not in target and not (folder / target).exists():
            dead.append(target)
    for target in NAMED.findall(text):
        if not (ROOT / target).exists():
            dead.append(target)
    return dead


def fenced(marker, language):
    text = (ROOT / "README.md").read_text()
    blocks = re.findall(r"<!-- " + marker + r"[^>]*-->\n```" + language + r"\n(.*?)```", text, re.S)
    if not blocks:
        sys.exit(f"README.md has no {language} block marked '{marker}'")
    return blocks


def run_commands(bin_dir):
    environment = dict(os.environ, PATH=f"{pathlib.Path(bin_dir).resolve()}:{os.environ['PATH']}")
    with tempfile.TemporaryDirectory() as scratch:
        for block in fenced("run", "sh"):
            for line in block.splitlines():
                print("$", line, flush=True)
                done = subprocess.run(["bash", "-euo", "pipefail", "-c", line], cwd=scratch, env=environment)
                if done.returncode != 0:
                    sys.exit(f"README.md: '{line}' exited with {done.returncode}")


def main():
    command = sys.argv[1:2]
    if command == ["links"]:
        count = 0
        for document in documents():
            for target in dead_links(document.read_text(), document.parent):
                print(f"{document.relative_to(ROOT)}: nothing at {target}")
                count += 1
        print(f"documents: {len(documents())}, dead links: {count}")
        sys.exit(1 if count else 0)
    if command == ["cpp"]:
        pathlib.Path(sys.argv[2]).write_text(fenced("compile", "cpp")[0])
        return
    if command == ["run"]:
        run_commands(sys.argv[2])
        return
    if command == ["self-test"]:
        planted = ["see [x](no/such/file.h)", "in `src/no_such_folder/`"]
        sys.exit(0 if all(dead_links(text, ROOT) for text in planted) else "a planted dead link was not found")
    sys.exit(__doc__)


if __name__ == "__main__":
    main()
