#!/usr/bin/env python3
"""tools/gpu_record.py: runs the GPU tests and records what was run on which device, or says whether a record is current.

CI has no GPU, so what a GPU showed is kept as a file: the device, its driver, the compiler of the kernels, the tests
and a digest of the kernels and of the host code that drives them. When that code changes, the record is stale; comments
and layout do not count.

  tools/gpu_record.py run --build build [--out tests/gpu-record.json] [--jobs 16] [--sanitize]
  tools/gpu_record.py check [--record tests/gpu-record.json]
  tools/gpu_record.py self-test
"""
import argparse
import concurrent.futures
import datetime
import fnmatch
import hashlib
import json
import os
import pathlib
import re
import subprocess
import sys
import tempfile
import time

import gpu_tests

ROOT = pathlib.Path(__file__).resolve().parent.parent
RECORD = ROOT / "tests" / "gpu-record.json"
PROGRAMS = ["test_cuda_gpu", "test_conformance_cuda"]
# They measure time or memory, and have the GPU to themselves.
ALONE = ["Gpu.Case2[57]*", "*LongContext*"]
SANITIZED = {
    "test_cuda_gpu": ["Gpu.Case16*", "GpuCApi.DevicePointers*"],
    "test_conformance_cuda": ["Rows.Case01*", "Rows.Case04_zero*", "Rows.Case05*", "Numbers.sinks*",
                              "Numbers.Case20_a_null*", "Numbers.a_group_of_three*"],
}
COVERED = [
    "kernels/**/*",
    "src/backend/cuda/*",
    "src/plan/copy_engine.*",
    "src/plan/hopper_*",
    "src/schedule/hopper_forward.h",
    "src/schedule/mask_rule.h",
    "src/schedule/sequence.h",
    "src/schedule/share.h",
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


def sanitizer_programs(build):
    """The small set: every kind of load, mask, length and merge once, in shapes that a sanitizer can afford."""
    return {build / "bin" / name: [test for pattern in patterns
                                   for test in gpu_tests.list_tests(build / "bin" / name, [f"--gtest_filter={pattern}"])]
            for name, patterns in SANITIZED.items()}


def run(asked):
    files = digests()
    scale = float(os.environ.get("TILEWRIGHT_TEST_SCALE", "1"))
    before = json.loads(asked.out.read_text())["tests"] if asked.out.is_file() else {}
    usual = {name: float(test["seconds"].rstrip("s")) for tests in before.values() for name, test in tests.items()}
    every = [(asked.build / "bin" / program, name) for program in PROGRAMS
             for name in gpu_tests.list_tests(asked.build / "bin" / program, asked.arguments)]
    alone = [test for test in every if any(fnmatch.fnmatchcase(test[1], pattern) for pattern in ALONE)]
    start = time.monotonic()
    results = gpu_tests.run_tests(alone, 1, usual, scale)
    print(f"{len(alone)} tests alone: {time.monotonic() - start:.0f} s", flush=True)
    with concurrent.futures.ThreadPoolExecutor(1) as beside:
        sanitizer = beside.submit(lambda: gpu_tests.run_sanitizers(sanitizer_programs(asked.build)) if asked.sanitize else {})
        results |= gpu_tests.run_tests([test for test in every if test not in alone], asked.jobs, usual, scale)
        print(f"{len(every)} tests: {time.monotonic() - start:.0f} s", flush=True)
        write(asked, scale, files, results, {})  # whatever becomes of the sanitizer
        sanitizer = sanitizer.result()
    print(f"all: {time.monotonic() - start:.0f} s", flush=True)
    return 1 if write(asked, scale, files, results, sanitizer) else 0


def write(asked, scale, files, results, sanitizer):
    """The record of {(program, name): result}; what keeps it from showing that this code works."""
    tests = {program: {name: result for (path, name), result in sorted(results.items()) if path.name == program}
             for program in PROGRAMS}
    if not results:
        return ["no test ran; the record is left as it is"]
    states = [test["state"] for results in tests.values() for test in results.values()]
    described = tests["test_cuda_gpu"].get("Gpu.IsDescribedByItsDriver", {})
    packed = tests["test_cuda_gpu"].get("Gpu.EveryPackedKernelLoadsAndUsesWhatWasPlanned", {})
    record = {
        "device": described.get("device", nvidia_smi("name")),
        "driver": nvidia_smi("driver_version"),
        "driver_cuda_version": described.get("driver_cuda_version", "unknown"),
        "kernel_compiler": "NVRTC " + packed.get("pack_compiler", "unknown"),
        "date": datetime.datetime.now(datetime.timezone.utc).strftime("%Y-%m-%d"),
        "test_scale": scale,
        "only": asked.arguments,
        "passed": states.count("passed"),
        "failed": states.count("failed"),
        "skipped": states.count("skipped"),
        "sanitizer": sanitizer,
        "digest": total(files),
        "files": files,
        "tests": tests,
    }
    if sanitizer:
        record["sanitizer_version"] = gpu_tests.sanitizer_version()
    asked.out.write_text(json.dumps(record, indent=1) + "\n")
    return faults(record, files)


def faults(record, now):
    """What keeps a record from showing that this code works, in words; prints the record's summary."""
    print(f"{record['device']}, driver {record['driver']}, {record['kernel_compiler']}, {record['date']}: "
          f"{record['passed']} passed, {record['failed']} failed, {record['skipped']} skipped "
          f"at scale {record.get('test_scale', 'unknown')}")
    found = []
    if record["failed"] or not record["passed"]:
        found.append("the record has failures" if record["failed"] else "the record has no test that passed")
    if record.get("test_scale") != 1 or record.get("only"):
        found.append(f"the record is of a part of the tests: scale {record.get('test_scale', 'unknown')}, "
                     f"arguments {record.get('only')}")
    sanitizer = record.get("sanitizer", {})
    if not sanitizer:
        print("compute-sanitizer was not run")
    for tool, programs in sanitizer.items():
        states = [result["state"] for result in programs.values()]
        print(f"{tool}: {', '.join(states)}")
        if any(state != "passed" for state in states):
            found.append(f"{tool} found faults")
    then = record["files"]
    changed = [name for name in sorted(now.keys() | then.keys()) if now.get(name) != then.get(name)]
    found += [f"changed since: {name}" for name in changed]
    print("\n".join(found + ["the record is stale" if changed else "the record is of this code"]))
    return found


def check(asked):
    if not asked.record.is_file():
        print(f"{asked.record}: no record; run `make gpu-test` on a machine with a Hopper GPU")
        return 1
    return 1 if faults(json.loads(asked.record.read_text()), digests()) else 0


def self_test(_):
    """Whether each kind of fault is seen: planted in records, and in a program that crashes."""
    good = {"device": "d", "driver": "1", "kernel_compiler": "c", "date": "2026-01-01", "passed": 9, "failed": 0,
            "skipped": 0, "test_scale": 1, "only": [], "files": {"a.h": "1"},
            "sanitizer": {"memcheck": {"program": {"state": "passed"}}}}
    planted = {"failed": 1, "passed": 0, "test_scale": 0.5, "only": ["--gtest_filter=A.*"], "files": {"a.h": "2"}}
    missed = [] if not faults(good, good["files"]) else ["a good record"]
    missed += [key for key, value in planted.items() if not faults(good | {key: value}, good["files"])]
    bad_tool = {"sanitizer": {"memcheck": {"program": {"state": "failed"}}}}
    missed += [] if faults(good | bad_tool, good["files"]) else ["a sanitizer's fault"]
    missed += [] if code_of("a /* b */ + c // d") == code_of("a+c") != code_of("a-c") else ["comments"]
    for code, output, clean in ((0, "== ERROR SUMMARY: 0 errors", True), (0, "", False), (86, "== ERROR SUMMARY: 0 errors", False),
                                (0, "== RACECHECK SUMMARY: 10 hazards displayed (0 errors, 10 warnings)", False)):
        missed += [] if gpu_tests.verdict(code, output)[0] == clean else [f"a sanitizer's {output}"]
    with tempfile.TemporaryDirectory() as folder:
        program = pathlib.Path(folder) / "program"
        program.write_text(FAKE_PROGRAM)
        program.chmod(0o755)
        for jobs in (1, 3):
            names = gpu_tests.list_tests(program, [])
            results = gpu_tests.run_tests([(program, name) for name in names], jobs, {"A.slow": 9.0}, 1)
            states = {name: result["state"] for (_, name), result in results.items()}
            if states != {"A.crashes": "failed", "A.passes": "passed"}:
                missed.append(f"a crash, {jobs} at once: {states}")
    print("missed: " + ", ".join(missed) if missed else "every planted fault was seen")
    return 1 if missed else 0


# Like a gtest program of two tests, one of which crashes before its report is written.
FAKE_PROGRAM = """#!/bin/sh
for argument; do
  case $argument in
    --gtest_list_tests) printf 'A.\\n  passes\\n  crashes\\n'; exit ;;
    --gtest_output=json:*) report=${argument#*:} ;;
    --gtest_filter=*crashes*) exit 139 ;;
  esac
done
echo '{"testsuites": [{"name": "A", "testsuite": [{"name": "passes", "result": "COMPLETED", "time": "1s"}]}]}' > "$report"
"""


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    actions = parser.add_subparsers(dest="action", required=True)
    run_parser = actions.add_parser("run")
    run_parser.add_argument("--build", type=pathlib.Path, default=ROOT / "build")
    run_parser.add_argument("--out", type=pathlib.Path, default=RECORD)
    run_parser.add_argument("--jobs", type=int, default=min(16, os.cpu_count()), help="tests at once, where they may share")
    run_parser.add_argument("--sanitize", action="store_true", help="also a small set under compute-sanitizer")
    run_parser.add_argument("arguments", nargs="*", help="for the test programs, such as --gtest_filter=Case16*")
    check_parser = actions.add_parser("check")
    check_parser.add_argument("--record", type=pathlib.Path, default=RECORD)
    actions.add_parser("self-test")
    asked = parser.parse_args()
    return {"run": run, "check": check, "self-test": self_test}[asked.action](asked)


if __name__ == "__main__":
    sys.exit(main())
