#!/usr/bin/env python3
"""tools/gpu_record.py: runs the GPU tests and records what was run on which device, or says whether a record is current.

CI has no GPU, so what a GPU showed is kept as a file: the device, its driver, the compiler of the kernels, the tests
and a digest of the kernels and of the host code that drives them. When that code changes, the record is stale; comments
and layout do not count.

  tools/gpu_record.py run --build build [--out tests/gpu-record.json] [--jobs 8]
  tools/gpu_record.py check [--record tests/gpu-record.json]
"""
import argparse
import datetime
import hashlib
import json
import os
import pathlib
import re
import subprocess
import sys
import tempfile

ROOT = pathlib.Path(__file__).resolve().parent.parent
RECORD = ROOT / "tests" / "gpu-record.json"
# Whether several parts of a program may share the GPU: not those that measure time.
PROGRAMS = {"test_cuda_gpu": False, "test_conformance_cuda": True}
COVERED = [
    "kernels/**/*",
    "src/backend/cuda/*",
    "src/plan/copy_engine.*",
    "src/plan/hopper_*",
    "src/schedule/hopper_forward.h",
    "src/schedule/mask_rule.h",
    "src/schedule/sequence.h",
    "src/schedule/tile_walk.h",
]


def covered_files():
    files = {path for pattern in COVERED for path in ROOT.glob(pattern) if path.is_file()}
    return sorted(files, key=lambda path: path.relative_to(ROOT).as_posix())


def code_of(text):
    """The code without comments and layout, which change nothing that runs."""
    strings_and_comments = r'("(?:\\.|[^"\\])*")|//[^\n]*|/\*.*?\*/'
    return re.sub(r"\s+", "", re.sub(strings_and_comments, lambda match: match[1] or "", text, flags=re.S))


def digests():
    """A digest of each covered file's code, so that a stale record can say what changed."""
    return {
        path.relative_to(ROOT).as_posix(): hashlib.sha256(code_of(path.read_text()).encode()).hexdigest()[:16]
        for path in covered_files()
    }


def total(files):
    lines = "".join(f"{name} {digest}\n" for name, digest in files.items())
    return hashlib.sha256(lines.encode()).hexdigest()


def nvidia_smi(field):
    try:
        command = ["nvidia-smi", f"--query-gpu={field}", "--format=csv,noheader", "--id=0"]
        return subprocess.run(command, capture_output=True, text=True, check=True).stdout.strip()
    except (OSError, subprocess.CalledProcessError):
        return "unknown"


def run_program(path, arguments, jobs):
    """The program's results by test, and whether every part of it exited as a pass. Parts run at once."""
    with tempfile.TemporaryDirectory() as folder:
        parts = []
        for part in range(jobs):
            report = pathlib.Path(folder) / f"{part}.json"
            log = open(pathlib.Path(folder) / f"{part}.log", "w+")
            environment = dict(
                os.environ, TILEWRIGHT_REQUIRE_GPU="1", GTEST_TOTAL_SHARDS=str(jobs), GTEST_SHARD_INDEX=str(part)
            )
            command = [str(path), f"--gtest_output=json:{report}", "--gtest_brief=1", *arguments]
            process = subprocess.Popen(command, env=environment, stdout=log, stderr=subprocess.STDOUT)
            parts.append((process, report, log))
        passed = True
        suites = []
        for process, report, log in parts:
            passed = process.wait() == 0 and passed
            log.seek(0)
            print(log.read(), end="", flush=True)
            log.close()
            if report.is_file():
                suites += json.loads(report.read_text())["testsuites"]
    results = {}
    for suite in suites:
        for test in suite["testsuite"]:
            if test["result"] not in ("COMPLETED", "SKIPPED"):
                continue
            state = "failed" if "failures" in test else "passed" if test["result"] == "COMPLETED" else "skipped"
            known = {"name", "status", "result", "time", "timestamp", "classname", "failures", "file", "line"}
            measured = {key: value for key, value in test.items() if key not in known}
            results[f"{suite['name']}.{test['name']}"] = {"state": state, "seconds": test["time"], **measured}
    return results, passed


def run(build, out, arguments, jobs):
    files = digests()
    tests = {}
    passed = True
    for program, may_share in PROGRAMS.items():
        results, exited_well = run_program(build / "bin" / program, arguments, jobs if may_share else 1)
        passed = passed and exited_well and bool(results)
        tests[program] = results
    if not any(tests.values()):
        print("no test ran; the record is left as it is")
        return 1
    states = [test["state"] for results in tests.values() for test in results.values()]
    described = tests["test_cuda_gpu"].get("Gpu.IsDescribedByItsDriver", {})
    packed = tests["test_cuda_gpu"].get("Gpu.EveryPackedKernelLoadsAndUsesWhatWasPlanned", {})
    record = {
        "device": described.get("device", nvidia_smi("name")),
        "driver": nvidia_smi("driver_version"),
        "driver_cuda_version": described.get("driver_cuda_version", "unknown"),
        "kernel_compiler": "NVRTC " + packed.get("pack_compiler", "unknown"),
        "date": datetime.datetime.now(datetime.timezone.utc).strftime("%Y-%m-%d"),
        "passed": states.count("passed"),
        "failed": states.count("failed"),
        "skipped": states.count("skipped"),
        "digest": total(files),
        "files": files,
        "tests": tests,
    }
    out.write_text(json.dumps(record, indent=1) + "\n")
    print(f"{out}: {record['device']}, {record['passed']} passed, {record['failed']} failed, {record['skipped']} skipped")
    return 0 if passed else 1


def check(path):
    if not path.is_file():
        print(f"{path}: no record; run `make gpu-test` on a machine with a Hopper GPU")
        return 1
    record = json.loads(path.read_text())
    now = digests()
    then = record["files"]
    changed = [name for name in sorted(now.keys() | then.keys()) if now.get(name) != then.get(name)]
    summary = f"{record['device']}, driver {record['driver']}, {record['kernel_compiler']}, {record['date']}: "
    summary += f"{record['passed']} passed, {record['failed']} failed, {record['skipped']} skipped"
    print(summary)
    if record["failed"]:
        print("the record has failures")
    for name in changed:
        print(f"changed since: {name}")
    print("the record is stale" if changed else "the record is current")
    return 1 if changed or record["failed"] else 0


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    actions = parser.add_subparsers(dest="action", required=True)
    run_parser = actions.add_parser("run")
    run_parser.add_argument("--build", type=pathlib.Path, default=ROOT / "build")
    run_parser.add_argument("--out", type=pathlib.Path, default=RECORD)
    run_parser.add_argument("--jobs", type=int, default=1, help="parts of the conformance suite at once")
    run_parser.add_argument("arguments", nargs="*", help="for the test programs, such as --gtest_filter=Case16*")
    check_parser = actions.add_parser("check")
    check_parser.add_argument("--record", type=pathlib.Path, default=RECORD)
    asked = parser.parse_args()
    return run(asked.build, asked.out, asked.arguments, asked.jobs) if asked.action == "run" else check(asked.record)


if __name__ == "__main__":
    sys.exit(main())
