"""tools/gpu_tests.py: runs test programs on a GPU, many tests at once, and under compute-sanitizer; says how each ended."""
import concurrent.futures
import json
import os
import pathlib
import shutil
import subprocess
import tempfile
import time

# gtest's own fields of a test; what is left was measured by the test.
KNOWN_FIELDS = {"name", "status", "result", "time", "timestamp", "classname", "failures", "file", "line",
                "value_param", "type_param"}
SANITIZER_TOOLS = ["memcheck", "racecheck", "synccheck", "initcheck"]
SANITIZER_LIMIT_SECONDS = 140
TEST_LIMIT_SECONDS = 300
SANITIZER_FAULTS = 86  # what it exits with when it found something


def list_tests(program, arguments):
    """The tests' full names, as the arguments (a filter, perhaps) select them."""
    done = subprocess.run([program, "--gtest_list_tests", *arguments], capture_output=True, text=True, check=True)
    names, suite = [], ""
    for line in done.stdout.splitlines():
        name = line.split("#")[0].rstrip()
        if name.endswith(".") and not name.startswith(" "):
            suite = name
        elif name.startswith("  ") and not name.strip().startswith("DISABLED_"):
            names.append(suite + name.strip())
    return names


def finished(command, environment, limit_seconds):
    """Exit code ("timeout" beyond the limit) and everything that was printed."""
    try:
        done = subprocess.run(command, env=environment, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
                              errors="replace", timeout=limit_seconds)
        return done.returncode, done.stdout
    except subprocess.TimeoutExpired as expired:
        return "timeout", (expired.stdout or b"").decode(errors="replace")


def run_test(program, name, environment):
    """How it ended, seconds, what it measured."""
    with tempfile.TemporaryDirectory() as folder:
        report = pathlib.Path(folder) / "report.json"
        command = [program, f"--gtest_output=json:{report}", "--gtest_brief=1", "--gtest_filter=" + name]
        code, output = finished(command, environment, TEST_LIMIT_SECONDS)
        suites = json.loads(report.read_text())["testsuites"] if report.is_file() else []
    result = {"seconds": "0", "state": "failed"}  # A crash leaves no report.
    for test in (test for suite in suites for test in suite["testsuite"]):
        passed = "failures" not in test and test["result"] == "COMPLETED"
        result = {key: value for key, value in test.items() if key not in KNOWN_FIELDS}
        result["seconds"] = test["time"].rstrip("s")
        result["state"] = "passed" if passed else "skipped" if test["result"] == "SKIPPED" else "failed"
    if code != 0:  # An exit code may know more than the report.
        result |= {"state": "failed", "exit_code": code}
        print(f"{name}: exit code {code}\n{output}", end="", flush=True)
    return result


def run_tests(tests, jobs, usual_seconds, scale):
    """Each (program, name) in a process of its own, so that no fault of one is another's; `jobs` at once, the longest
    first. By (program, name): how it ended."""
    with tempfile.TemporaryDirectory() as cache:  # of kernels, shared by the processes and nobody else
        environment = dict(os.environ, TILEWRIGHT_REQUIRE_GPU="1", TILEWRIGHT_CACHE=cache,
                           TILEWRIGHT_TEST_SCALE=str(scale))
        tests = sorted(tests, key=lambda test: -usual_seconds.get(test[1], float("inf")))
        with concurrent.futures.ThreadPoolExecutor(jobs) as pool:
            return dict(zip(tests, pool.map(lambda test: run_test(*test, environment), tests)))


def sanitizer_version():
    done = subprocess.run(["compute-sanitizer", "--version"], capture_output=True, text=True)
    return next((line.split()[1] for line in done.stdout.splitlines() if line.startswith("Version")), "unknown")


def verdict(code, output):
    """Whether a sanitizer found nothing, by its own word (one that could not attach exits like the program), and that word."""
    summaries = [line.strip("= ") for line in output.splitlines() if "SUMMARY: " in line]
    clean = code == 0 and bool(summaries) and all("SUMMARY: 0 " in line for line in summaries)
    return clean, summaries[-1] if summaries else f"exit code {code}"


def run_sanitizers(programs):
    """Every tool over {program: names}, all at once. By tool: whether it found faults, and in which tests."""
    if shutil.which("compute-sanitizer") is None:
        return {}

    def run(tool, program, names, cache):
        command = ["compute-sanitizer", "--tool", tool, "--error-exitcode", str(SANITIZER_FAULTS), program,
                   "--gtest_brief=1", "--gtest_filter=" + ":".join(names)]
        environment = dict(os.environ, TILEWRIGHT_REQUIRE_GPU="1", TILEWRIGHT_CACHE=cache, TILEWRIGHT_TEST_SCALE="0.01")
        start = time.monotonic()
        code, output = finished(command, environment, SANITIZER_LIMIT_SECONDS)
        clean, summary = verdict(code, output)
        if not clean:
            print(f"{tool}, {program.name}: exit code {code}\n{output[-4000:]}", flush=True)
        return clean, round(time.monotonic() - start, 1), summary

    found = {}
    with tempfile.TemporaryDirectory() as cache, \
            concurrent.futures.ThreadPoolExecutor(len(SANITIZER_TOOLS) * len(programs)) as pool:
        runs = {(tool, program): pool.submit(run, tool, program, names, cache)
                for tool in SANITIZER_TOOLS for program, names in programs.items() if names}
        for (tool, program), future in runs.items():
            clean, seconds, summary = future.result()
            found.setdefault(tool, {})[program.name] = {
                "state": "passed" if clean else "failed", "seconds": seconds, "summary": summary,
                "tests": programs[program]}
    return found
