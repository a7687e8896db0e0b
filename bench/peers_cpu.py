"""bench/peers_cpu.py: times PyTorch's CPU attention and Tilewright's, call by call in turn, in one process.

Both get the same inputs ([batch, heads, tokens, dim], normal), the same threads, and warm-up calls. A
ratio is the peer's time over ours: above 1, Tilewright is faster. `wall` is by the clock, `cpu` by the
time that the process's threads ran, which other programs on the machine disturb less.
"""
import math
import statistics
import sys
import time

import results
import tilewright_library
import torch


def timed(call):
    wall, cpu = time.perf_counter(), time.process_time()
    call()
    return time.perf_counter() - wall, time.process_time() - cpu


def compare(library, dtype, q_tokens, kv_tokens, heads, dim, causal, args):
    torch.manual_seed(1)
    q = torch.randn(1, heads, q_tokens, dim).to(dtype)
    k, v = (torch.randn(1, heads, kv_tokens, dim).to(dtype) for _ in range(2))
    o = torch.empty_like(q)
    tile = dict(zip(("q_rows", "kv_rows"), args.tile)) if args.tile else {}
    attention = library.attention(*map(tilewright_library.strided, (q, k, v, o)), str(dtype).removeprefix("torch."),
                                  causal, workers=args.threads, **tile)
    ours = attention.bound(*(t.data_ptr() for t in (q, k, v, o)))

    def theirs():
        return torch.nn.functional.scaled_dot_product_attention(q, k, v, is_causal=causal)

    ours()
    error = (o.float() - theirs().float()).abs().max().item()
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
        "gflops_per_cpu_second": round(flops / best[3] / 1e9, 1), "error": f"{error:.1e}", "plan": attention.text,
    }


def grid(args):
    """Both dtypes over the dims and lengths asked for, a line each, and the means."""
    threads = args.threads = args.threads or torch.get_num_threads()
    torch.set_num_threads(threads)
    library = tilewright_library.Library(args.library)
    print(f"tilewright {library.version}, torch {torch.__version__}, {threads} threads")
    rows = []
    for dtype in (torch.float32, torch.bfloat16):
        for dim in args.dims or [64, 128]:
            for tokens in args.tokens or [1024, 4096]:
                for causal in (False, True):
                    rows.append(compare(library, dtype, tokens, tokens, 8, dim, causal, args))
                    print("  ".join(f"{key} {value}" for key, value in rows[-1].items()), flush=True)
        here = [row for row in rows if row["dtype"] == str(dtype).removeprefix("torch.")]
        for kind in ("wall_ratio", "cpu_ratio"):
            ratios = [row[kind] for row in here]
            print(f"{dtype}: {kind} geometric mean {math.prod(ratios) ** (1 / len(ratios)):.2f}, "
                  f"least {min(ratios):.2f}")
    if args.out:
        results.write(args.out, rows)
