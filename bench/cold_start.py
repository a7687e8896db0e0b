#!/usr/bin/env python3
"""bench/cold_start.py: how long a process waits for its first attention on a GPU, with the kernel pack and without.

    bench/cold_start.py --library build/src/libtilewright.so [--runs 5] [--out results.csv]

Each figure is of a fresh process with empty caches: Tilewright's, and the one in which CUDA's driver keeps what NVRTC
compiled (which outlives a process, and would make a second compilation look like a tenth of the first). CUDA's own start
is timed apart: the driver, the context, allocating and clearing the tensors. The first call is everything after that:
loading the library, planning, finding or compiling the kernel, loading it, running it, waiting for the result. A later
call is what the host does to launch one more, through ctypes. The interpreter's own start belongs to neither. No torch.
"""
import argparse
import ctypes
import json
import os
import pathlib
import statistics
import subprocess
import sys
import tempfile
import time

import results
import tilewright_library
from cuda_driver import Cuda

# Name, dim, causal, whether rows are aligned for TMA, tokens.
PROBLEMS = {
    "dim 64": (64, False, True, 4096),
    "dim 128": (128, False, True, 4096),
    "dim 128 causal": (128, True, True, 4096),
    "dim 128 causal, plain copies": (128, True, False, 4096),
    "dim 256 causal": (256, True, True, 4096),
}
HEADS = 8
LATER_CALLS = 200  # fewer than a stream queues


def child(library_path, dim, causal, aligned, tokens):
    """In a fresh process: seconds of each part, printed as JSON."""
    seconds = {}
    last = time.perf_counter()

    def lap(name):
        nonlocal last
        now = time.perf_counter()
        seconds[name] = now - last
        last = now

    cuda = Cuda()
    shape = (1, HEADS, tokens, dim)
    q, k, v, o = (cuda.cleared(2 * HEADS * tokens * dim) for _ in range(4))
    workspace = cuda.cleared(1 << 20)
    cuda.wait()
    lap("cuda")
    library = tilewright_library.Library(library_path)
    lap("open")
    operand = shape, (tokens * HEADS * dim, dim, HEADS * dim, 1)
    attention = library.attention(operand, operand, operand, operand, "bfloat16", causal,
                                  alignment_bytes=16 if aligned else 2, device=b"cuda")
    if attention.workspace_bytes > 1 << 20:
        raise RuntimeError(f"the plan needs {attention.workspace_bytes} bytes of workspace")
    lap("plan")
    attention.prepare()
    lap("prepare")
    run = attention.bound(q, k, v, o, workspace)
    run()
    cuda.wait()
    lap("run")
    run()
    cuda.wait()
    lap("second")
    for _ in range(LATER_CALLS):
        run()
    lap("later_calls")
    cuda.wait()
    seconds["host_of_a_later_call"] = seconds.pop("later_calls") / LATER_CALLS
    print(json.dumps({"device": cuda.device, "seconds": seconds, "compiler": mapped_compiler()}))


def mapped_compiler():
    """The version of the NVRTC that this process has opened; none if it opened none."""
    for line in pathlib.Path("/proc/self/maps").read_text().splitlines():
        if "/libnvrtc.so" in line:
            major, minor = ctypes.c_int(), ctypes.c_int()
            ctypes.CDLL(line.split(maxsplit=5)[5]).nvrtcVersion(ctypes.byref(major), ctypes.byref(minor))
            return f"NVRTC {major.value}.{minor.value}"
    return None


def fresh(args, problem, with_pack):
    with tempfile.TemporaryDirectory() as folder:
        environment = dict(os.environ, TILEWRIGHT_CACHE=folder + "/tilewright", CUDA_CACHE_PATH=folder + "/cuda")
        if not with_pack:
            environment["TILEWRIGHT_KERNEL_PACK"] = folder + "/no.pack"
        command = [sys.executable, __file__, "--library", args.library, "--child", json.dumps(problem)]
        done = subprocess.run(command, env=environment, capture_output=True, text=True)
        if done.returncode != 0:
            sys.exit(f"{command}: {done.stderr}")
        return json.loads(done.stdout)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--library", required=True)
    parser.add_argument("--runs", type=int, default=5)
    parser.add_argument("--commit", help="otherwise this tree's")
    parser.add_argument("--out", type=pathlib.Path, help="otherwise bench/results/<device>/<date>-cold-start.csv")
    parser.add_argument("--child", help=argparse.SUPPRESS)
    args = parser.parse_args()
    if args.child:
        return child(args.library, *json.loads(args.child))
    rows = []
    for with_pack in (True, False):
        for name, problem in PROBLEMS.items():
            runs = [fresh(args, problem, with_pack) for _ in range(args.runs)]
            median = {part: statistics.median(run["seconds"][part] for run in runs) for part in runs[0]["seconds"]}
            firsts = [sum(run["seconds"][part] for part in ("open", "plan", "prepare", "run")) for run in runs]
            row = {"kernel": name, "pack": int(with_pack), "runs": args.runs,
                   "first_call_s": round(statistics.median(firsts), 4), "slowest_first_call_s": round(max(firsts), 4)}
            row |= {part + "_s": round(value, 6) for part, value in median.items()}
            print("  ".join(f"{key} {value}" for key, value in row.items()), flush=True)
            rows.append(row | {"device": runs[0]["device"], "driver": results.driver(),
                               "commit": args.commit or results.commit(),
                               "kernel_compiler": runs[0]["compiler"] or results.pack_compiler(args.library)})
    results.write(args.out or results.default_path(rows[0]["device"], "cold-start"), rows)


if __name__ == "__main__":
    main()
