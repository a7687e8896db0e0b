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
SANITIZER_LIMIT_SECONDS = 150
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


def run_tests(program, names, environment):
    """One process for these tests. By test: how it ended, seconds, what it measured."""
    with tempfile.TemporaryDirectory() as folder:
        report = pathlib.Path(folder) / "report.json"
        command = [program, f"--gtest_output=json:{report}", "--gtest_brief=1", "--gtest_filter=" + ":".join(names)]
        done = subprocess.run(command, env=environment, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
        suites = json.loads(report.read_text())["testsuites"] if report.is_file() else []
    results = {}
    for suite in suites:
        for test in suite["testsuite"]:
            if test["result"] not in ("COMPLETED", "SKIPPED"):
                continue
            state = "failed" if "failures" in test else "passed" if test["result"] == "COMPLETED" else "skipped"
            measured = {key: value for key, value in test.items() if key not in KNOWN_FIELDS}
            results[f"{suite['name']}.{test['name']}"] = {**measured, "state": state, "seconds": test["time"].rstrip("s")}
    # A crash leaves no report; an exit code may know more than the report.
    for name in names:
        results.setdefault(name, {"state": "failed", "seconds": "0", "exit_code": done.returncode})
    states = {result["state"] for result in results.values()}
    if done.returncode != 0 and "failed" not in states:
        for result in results.values():
            result.update(state="failed", exit_code=done.returncode)
    if done.returncode != 0:
        print(done.stdout, end="", flush=True)
    return results


def run_program(program, arguments, jobs, usual_seconds, scale):
    """Every test of a program, `jobs` processes at once: a process a test, the longest first. One job: one process."""
    names = list_tests(program, arguments)
    with tempfile.TemporaryDirectory() as cache:  # of kernels, shared by the processes and nobody else
        environment = dict(os.environ, TILEWRIGHT_REQUIRE_GPU="1", TILEWRIGHT_CACHE=cache,
                           TILEWRIGHT_TEST_SCALE=str(scale))
        if jobs == 1:
            return run_tests(program, names, environment) if names else {}
        names.sort(key=lambda name: -usual_seconds.get(name, float("inf")))
        results = {}
        with concurrent.futures.ThreadPoolExecutor(jobs) as pool:
            for result in pool.map(lambda name: run_tests(program, [name], environment), names):
                results |= result
    return dict(sorted(results.items()))


def sanitizer_version():
    done = subprocess.run(["compute-sanitizer", "--version"], capture_output=True, text=True)
    return next((line.split()[1] for line in done.stdout.splitlines() if line.startswith("Version")), "unknown")


def run_sanitizers(programs):
    """Every tool over {program: names}, all at once. By tool: whether it found faults, and in which tests."""
    if shutil.which("compute-sanitizer") is None:
        return {}

    def run(tool, program, names):
        command = ["compute-sanitizer", "--tool", tool, "--error-exitcode", str(SANITIZER_FAULTS), program,
                   "--gtest_brief=1", "--gtest_filter=" + ":".join(names)]
        start = time.monotonic()
        with tempfile.TemporaryDirectory() as cache:
            environment = dict(os.environ, TILEWRIGHT_REQUIRE_GPU="1", TILEWRIGHT_CACHE=cache, TILEWRIGHT_TEST_SCALE="0.01")
            try:
                done = subprocess.run(command, env=environment, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                                      text=True, timeout=SANITIZER_LIMIT_SECONDS)
                output, code = done.stdout, done.returncode
            except subprocess.TimeoutExpired as expired:
                output, code = (expired.stdout or b"").decode(errors="replace"), "timeout"
        # "no faults" needs the tool's own word for it: a tool that did not attach exits with the program's code.
        summaries = [line for line in output.splitlines() if "SUMMARY" in line]
        clean = code == 0 and bool(summaries) and all(" 0 errors" in line or "0 hazards" in line for line in summaries)
        if not clean:
            print(f"{tool}, {program.name}: exit code {code}\n{output[-4000:]}", flush=True)
        return clean, round(time.monotonic() - start, 1), summaries[-1].strip("= ") if summaries else f"exit code {code}"

    found = {}
    with concurrent.futures.ThreadPoolExecutor(len(SANITIZER_TOOLS) * len(programs)) as pool:
        runs = {(tool, program): pool.submit(run, tool, program, names)
                for tool in SANITIZER_TOOLS for program, names in programs.items() if names}
        for (tool, program), future in runs.items():
            clean, seconds, summary = future.result()
            found.setdefault(tool, {})[program.name] = {
                "state": "passed" if clean else "failed", "seconds": seconds, "summary": summary,
                "tests": programs[program]}
    return found
