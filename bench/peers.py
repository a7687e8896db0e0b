#!/usr/bin/env python3
"""bench/peers.py: times PyTorch's CPU attention and Tilewright's, call by call in turn, in one process.

    python3 -m venv ../venv && ../venv/bin/pip install torch
    ../venv/bin/python bench/peers.py --library build/src/libtilewright.so [--out results.csv]

Both get the same inputs ([batch, heads, tokens, dim], normal), the same threads, and warm-up calls. A
ratio is the peer's time over ours: above 1, Tilewright is faster. `wall` is by the clock, `cpu` by the
time that the process's threads ran, which other programs on the machine disturb less.
"""
import argparse
import csv
import ctypes
import math
import statistics
import sys
import time

import torch


class Operand(ctypes.Structure):
    _fields_ = [("given", ctypes.c_int32), ("alignment_bytes", ctypes.c_int32), ("batch", ctypes.c_int64),
                ("token", ctypes.c_int64), ("head", ctypes.c_int64), ("dim", ctypes.c_int64)]


class Lengths(ctypes.Structure):
    _fields_ = [("kind", ctypes.c_int32), ("on_device", ctypes.c_int32), ("max_tokens", ctypes.c_int64),
                ("total_tokens", ctypes.c_int64)]


class Spec(ctypes.Structure):
    _fields_ = [("struct_size", ctypes.c_size_t), ("batch", ctypes.c_int64), ("heads", ctypes.c_int64),
                ("kv_heads", ctypes.c_int64), ("q_lengths", Lengths), ("kv_lengths", Lengths),
                ("qk_dim", ctypes.c_int64), ("v_dim", ctypes.c_int64), ("dtype", ctypes.c_int32),
                ("o_dtype", ctypes.c_int32), ("q", Operand), ("k", Operand), ("v", Operand), ("o", Operand),
                ("scale", ctypes.c_double), ("softcap", ctypes.c_double), ("causal", ctypes.c_int32),
                ("rest", ctypes.c_byte * 128)]


class PlanOptions(ctypes.Structure):
    _fields_ = [("struct_size", ctypes.c_size_t), ("device", ctypes.c_char_p), ("q_rows", ctypes.c_int64),
                ("kv_rows", ctypes.c_int64), ("schedule", ctypes.c_int32), ("deterministic", ctypes.c_int32),
                ("batch_invariant", ctypes.c_int32), ("reserved", ctypes.c_int32), ("workers", ctypes.c_int64),
                ("kv_splits", ctypes.c_int64), ("isa", ctypes.c_char_p)]


class Tensors(ctypes.Structure):
    _fields_ = [("struct_size", ctypes.c_size_t), ("q", ctypes.c_void_p), ("k", ctypes.c_void_p),
                ("v", ctypes.c_void_p), ("o", ctypes.c_void_p), ("rest", ctypes.c_void_p * 6)]


class Tilewright:
    """The C interface: a plan for one problem, run on torch's tensors."""

    def __init__(self, path):
        self.c = ctypes.CDLL(path)
        self.c.tilewright_error_text.restype = ctypes.c_char_p
        self.c.tilewright_plan_text.restype = ctypes.c_char_p
        self.c.tilewright_version_text.restype = ctypes.c_char_p

    def check(self, status):
        if status != 0:
            raise RuntimeError(self.c.tilewright_error_text().decode())

    def prepare(self, q, k, v, causal, workers, tile):
        spec = Spec()
        self.c.tilewright_attention_spec_init(ctypes.byref(spec))
        spec.batch, spec.heads, spec.q_lengths.max_tokens, spec.qk_dim = q.shape
        spec.kv_heads, spec.kv_lengths.max_tokens = k.shape[1], k.shape[2]
        spec.dtype = {torch.float32: 0, torch.bfloat16: 1, torch.float16: 2}[q.dtype]
        spec.causal = int(causal)
        o = torch.empty_like(q)
        for name, tensor in (("q", q), ("k", k), ("v", v), ("o", o)):
            operand = getattr(spec, name)
            operand.given = 1
            operand.batch, operand.head, operand.token, operand.dim = tensor.stride()
        options = PlanOptions()
        self.c.tilewright_plan_options_init(ctypes.byref(options))
        options.workers = workers
        if tile:
            options.q_rows, options.kv_rows = tile
        plan = ctypes.c_void_p()
        self.check(self.c.tilewright_plan_create(ctypes.byref(spec), ctypes.byref(options), ctypes.byref(plan)))
        tensors = Tensors()
        self.c.tilewright_tensors_init(ctypes.byref(tensors))
        tensors.q, tensors.k, tensors.v, tensors.o = (t.data_ptr() for t in (q, k, v, o))

        def run():
            self.check(self.c.tilewright_run(plan, ctypes.byref(tensors), None))
            return o

        run.text = " ".join(self.c.tilewright_plan_text(plan).decode().split("\n")[1:2])
        return run


def timed(call):
    wall, cpu = time.perf_counter(), time.process_time()
    call()
    return time.perf_counter() - wall, time.process_time() - cpu


def compare(tilewright, dtype, q_tokens, kv_tokens, heads, dim, causal, args):
    torch.manual_seed(1)
    q = torch.randn(1, heads, q_tokens, dim).to(dtype)
    k, v = (torch.randn(1, heads, kv_tokens, dim).to(dtype) for _ in range(2))
    ours = tilewright.prepare(q, k, v, causal, args.threads, args.tile)

    def theirs():
        return torch.nn.functional.scaled_dot_product_attention(q, k, v, is_causal=causal)

    error = (ours().float() - theirs().float()).abs().max().item()
    limit = 1e-4 if dtype == torch.float32 else 5e-2
    if not error < limit:
        sys.exit(f"results differ by {error}")
    rows = [(*timed(theirs), *timed(ours)) for _ in range(args.repeats)]
    median = [statistics.median(column) for column in zip(*rows)]
    best = [min(column) for column in zip(*rows)]
    flops = 4 * heads * q_tokens * kv_tokens * dim / (2 if causal else 1)
    return {
        "dtype": str(dtype).removeprefix("torch."), "q": q_tokens, "kv": kv_tokens, "heads": heads, "dim": dim,
        "causal": int(causal), "torch_ms": round(median[0] * 1e3, 3), "tilewright_ms": round(median[2] * 1e3, 3),
        "wall_ratio": round(statistics.median(r[0] / r[2] for r in rows), 3),
        "cpu_ratio": round(best[1] / best[3], 3),
        "gflops_per_cpu_second": round(flops / best[3] / 1e9, 1), "error": f"{error:.1e}", "plan": ours.text,
    }


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--library", required=True)
    parser.add_argument("--threads", type=int, default=torch.get_num_threads())
    parser.add_argument("--repeats", type=int, default=7)
    parser.add_argument("--tile", type=lambda text: tuple(map(int, text.split("x"))))
    parser.add_argument("--tokens", type=int, nargs="*", default=[1024, 4096])
    parser.add_argument("--dims", type=int, nargs="*", default=[64, 128])
    parser.add_argument("--out")
    args = parser.parse_args()
    torch.set_num_threads(args.threads)
    tilewright = Tilewright(args.library)
    print(f"tilewright {tilewright.c.tilewright_version_text().decode()}, torch {torch.__version__}, "
          f"{args.threads} threads")
    results = []
    for dtype in (torch.float32, torch.bfloat16):
        for dim in args.dims:
            for tokens in args.tokens:
                for causal in (False, True):
                    results.append(compare(tilewright, dtype, tokens, tokens, 8, dim, causal, args))
                    print("  ".join(f"{key} {value}" for key, value in results[-1].items()), flush=True)
        here = [r for r in results if r["dtype"] == str(dtype).removeprefix("torch.")]
        for kind in ("wall_ratio", "cpu_ratio"):
            ratios = [r[kind] for r in here]
            print(f"{dtype}: {kind} geometric mean {math.prod(ratios) ** (1 / len(ratios)):.2f}, "
                  f"least {min(ratios):.2f}")
    if args.out:
        with open(args.out, "w", newline="") as file:
            writer = csv.DictWriter(file, results[0].keys())
            writer.writeheader()
            writer.writerows(results)


if __name__ == "__main__":
    main()
