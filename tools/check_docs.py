#!/usr/bin/env python3
"""tools/check_docs.py: keeps the documents true: links resolve, named files exist, commands run.

  tools/check_docs.py links            every link and every `path/` in the documents leads to something
  tools/check_docs.py cpp OUT          writes README's C++ example to the file OUT, to be compiled
  tools/check_docs.py run BIN_DIR [DOCUMENT]
      runs the shell commands of a document (README.md) with BIN_DIR first on PATH: blocks marked 'run' must
      succeed, those marked 'refused' must be refused, and blocks marked 'file: NAME' are files beside them;
      blocks marked 'shown' hold commands behind '$ ' and lines that they print, in order, '...' for what is left out
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


def fenced(marker, language, document="README.md"):
    text = (ROOT / document).read_text()
    blocks = re.findall(r"<!-- " + marker + r"[^>]*-->\n```" + language + r"\n(.*?)```", text, re.S)
    if not blocks:
        sys.exit(f"{document} has no {language} block marked '{marker}'")
    return blocks


def first_not_shown(lines, output):
    """The first of the lines that the output lacks, after the ones before it; None if it has all."""
    printed = iter([line.rstrip() for line in output.splitlines()])
    for line in lines:
        if line.strip() != "..." and line.rstrip() not in printed:
            return line
    return None


def check_shown(block, folder, environment):
    for part in re.split(r"^\$ ", block, flags=re.M)[1:]:
        # A command may go on over lines that end in a backslash.
        command, _, rest = re.sub(r"\\\n\s*", "", part).partition("\n")
        print("$", command, flush=True)
        done = subprocess.run(["bash", "-c", command], cwd=folder, env=environment, capture_output=True, text=True)
        missing = first_not_shown([line for line in rest.splitlines() if line.strip()], done.stdout)
        if done.returncode != 0 or missing is not None:
            sys.exit(f"'{command}' exited with {done.returncode}; shown, but not printed: {missing}\n{done.stdout}")


def run_commands(bin_dir, document="README.md"):
    environment = dict(os.environ, PATH=f"{pathlib.Path(bin_dir).resolve()}:{os.environ['PATH']}")
    text = (ROOT / document).read_text()
    blocks = [("run", block) for block in fenced("run", "sh", document)]
    if "<!-- refused" in text:
        blocks += [("refused", block) for block in fenced("refused", "sh", document)]
    with tempfile.TemporaryDirectory() as scratch:
        for name, content in re.findall(r"<!-- file: (\S+) -->\n```\w*\n(.*?)```", text, re.S):
            (pathlib.Path(scratch) / name).write_text(content)
        for block in fenced("shown", "text", document) if "<!-- shown" in text else []:
            check_shown(block, scratch, environment)
        for marker, block in blocks:
            for line in block.splitlines():
                print("$", line, flush=True)
                done = subprocess.run(["bash", "-euo", "pipefail", "-c", line], cwd=scratch, env=environment)
                if done.returncode != (2 if marker == "refused" else 0):
                    sys.exit(f"{document}: '{line}', which should be {marker}, exited with {done.returncode}")


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
        run_commands(*sys.argv[2:4])
        return
    if command == ["self-test"]:
        planted = ["see [x](no/such/file.h)", "in `src/no_such_folder/`"]
        if not all(dead_links(text, ROOT) for text in planted):
            sys.exit("a planted dead link was not found")
        if first_not_shown(["a", "...", "c"], "a\nb\nc") is not None:
            sys.exit("printed lines were missed")
        for lines in (["a", "x"], ["c", "a"], ["a", "c"]):
            if first_not_shown(lines, "a\nb\nC") is None:
                sys.exit(f"planted lines that are not printed were not found: {lines}")
        return
    sys.exit(__doc__)


if __name__ == "__main__":
    main()
