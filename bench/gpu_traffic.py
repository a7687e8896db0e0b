#!/usr/bin/env python3
"""bench/gpu_traffic.py: the bytes that a GPU's counters saw move, beside those that the plan predicted.

    bench/gpu_traffic.py --library build/src/libtilewright.so [--out results.csv]

Needs Nsight Compute (ncu) and the right to read counters. Off chip: the plan counts each byte of q, k, v and o once when
the cache can hold what is shared; the counters are of DRAM, after the caches were emptied. On chip: the plan counts every
tile that a multiprocessor loads; the counters are of reads that left L2 for the multiprocessors. Inputs are
zeros: values do not change the bytes.
"""
import argparse
import csv
import io
import json
import pathlib
import subprocess
import sys

import results
import tilewright_library
from cuda_driver import Cuda

# Name: batch, tokens, heads, kv heads, dim, causal.
PROBLEMS = {
    "32 x 512": (32, 512, 16, 16, 128, False),
    "8 x 2048 causal": (8, 2048, 16, 16, 128, True),
    "1 x 16384": (1, 16384, 16, 16, 128, False),
    "1 x 16384 causal": (1, 16384, 16, 16, 128, True),
    "1 x 16384 causal, 64 heads on 8": (1, 16384, 64, 8, 128, True),
    "1 x 65536, one head": (1, 65536, 1, 1, 128, False),
    "1 x 16384, dim 64": (1, 16384, 32, 32, 64, False),
    "1 x 16384, dim 256": (1, 16384, 8, 8, 256, False),
}
COUNTERS = {
    "dram_read": "dram__bytes_read.sum",
    "dram_written": "dram__bytes_write.sum",
    "l2_to_multiprocessors": "l1tex__m_xbar2l1tex_read_bytes.sum",
}


def attention_of(library, batch, tokens, heads, kv_heads, dim, causal):
    def operand(count):
        return (batch, count, tokens, dim), (tokens * count * dim, dim, count * dim, 1)

    return library.attention(operand(heads), operand(kv_heads), operand(kv_heads), operand(heads), "bfloat16", causal,
                             alignment_bytes=16, device=b"cuda")


def child(library_path, problem):
    """Runs once, under ncu; the plan's own figures as JSON on the last line."""
    cuda = Cuda()
    batch, tokens, heads, kv_heads, dim, _ = problem
    library = tilewright_library.Library(library_path)
    attention = attention_of(library, *problem)
    q, o = (cuda.cleared(2 * batch * tokens * heads * dim) for _ in range(2))
    k, v = (cuda.cleared(2 * batch * tokens * kv_heads * dim) for _ in range(2))
    attention.bound(q, k, v, o, cuda.cleared(max(attention.workspace_bytes, 1)))()
    cuda.wait()
    print(json.dumps(attention.json | {"device": cuda.device}))


def counted(library, problem):
    """The counters of one launch in bytes, and the plan."""
    command = ["ncu", "--csv", "--print-units", "base", "--metrics", ",".join(COUNTERS.values()), "--clock-control", "none",
               "--kernel-name", "hopper_forward", "--launch-count", "1",
               sys.executable, __file__, "--library", library, "--child", json.dumps(problem)]
    done = subprocess.run(command, capture_output=True, text=True)
    lines = done.stdout.splitlines()
    plan = next((json.loads(line) for line in lines if line.startswith("{")), None)
    table = [line for line in lines if line.startswith('"')]
    if done.returncode != 0 or plan is None or not table:
        sys.exit(f"ncu failed: {done.stdout[-2000:]}{done.stderr[-2000:]}")
    values = {row["Metric Name"]: float(row["Metric Value"].replace(",", ""))
              for row in csv.DictReader(io.StringIO("\n".join(table)))}
    return {name: values[counter] for name, counter in COUNTERS.items()}, plan


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--library", required=True)
    parser.add_argument("--commit", help="otherwise this tree's")
    parser.add_argument("--out", type=pathlib.Path, help="otherwise bench/results/<device>/<date>-traffic.csv")
    parser.add_argument("--child", help=argparse.SUPPRESS)
    args = parser.parse_args()
    if args.child:
        return child(args.library, json.loads(args.child))
    rows = []
    for name, problem in PROBLEMS.items():
        counters, plan = counted(args.library, problem)
        lse = plan["off_chip"]["tensors"]["lse"]["bytes_written"]  # not asked for here
        planned = {"dram_read": plan["off_chip"]["bytes_read"], "dram_written": plan["off_chip"]["bytes_written"] - lse,
                   "l2_to_multiprocessors": plan["traffic"]["bytes_read"]}
        row = {"problem": name, "tile": f"{plan['q_rows']}x{plan['kv_rows']}"}
        for counter, value in counters.items():
            row |= {f"{counter}_mb": round(value / 1e6, 1), f"{counter}_planned_mb": round(planned[counter] / 1e6, 1),
                    f"{counter}_ratio": round(value / planned[counter], 3)}
        print("  ".join(f"{key} {value}" for key, value in row.items()), flush=True)
        rows.append(row | {"device": plan["device"], "driver": results.driver(),
                           "commit": args.commit or results.commit()})
    results.write(args.out or results.default_path(rows[0]["device"], "traffic"), rows)


if __name__ == "__main__":
    main()
