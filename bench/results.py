"""bench/results.py: where a benchmark's rows go: bench/results/<device>/<date>-<what>.csv, each with what made it."""
import csv
import datetime
import pathlib
import re
import subprocess

ROOT = pathlib.Path(__file__).resolve().parent.parent


def output_of(*command):
    """A command's output in one line; "unknown" where it cannot run."""
    try:
        return subprocess.run(command, capture_output=True, text=True, check=True, cwd=ROOT).stdout.strip()
    except (OSError, subprocess.CalledProcessError):
        return "unknown"


def commit():
    """The commit of this tree, with a plus where files of it have changed since."""
    changed = output_of("git", "status", "--porcelain", "--untracked-files=no")
    return output_of("git", "rev-parse", "--short", "HEAD") + ("+" if changed not in ("", "unknown") else "")


def driver():
    return output_of("nvidia-smi", "--query-gpu=driver_version", "--format=csv,noheader", "--id=0")


def pack_compiler(library):
    """The compiler of the kernel pack that this library would take: the pack's index is in JSON."""
    folder = pathlib.Path(library).resolve().parent
    for pack in (folder / "tilewright-sm_90a.pack", folder.parent / "tilewright-sm_90a.pack"):
        if pack.is_file():
            found = re.search(rb'"compiler_version": "([^"]*)"', pack.read_bytes()[:1000])
            return "NVRTC " + found[1].decode() if found else "unknown"
    return "no pack"


def default_path(device, what):
    folder = re.sub(r"[^a-z0-9]+", "-", device.lower()).strip("-")
    date = datetime.datetime.now(datetime.timezone.utc).strftime("%Y-%m-%d")
    return ROOT / "bench" / "results" / folder / f"{date}-{what}.csv"


def write(path, rows):
    path = pathlib.Path(path)
    path.parent.mkdir(parents=True, exist_ok=True)
    with open(path, "w", newline="") as file:
        writer = csv.DictWriter(file, rows[0].keys(), lineterminator="\n")
        writer.writeheader()
        writer.writerows(rows)
    print(path)
