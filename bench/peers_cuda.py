"""bench/peers_cuda.py: times cuDNN, FlashAttention-2 and Tilewright on one GPU, in turn, on the same inputs.

cuDNN and FlashAttention-2 are PyTorch's. Inputs are [batch, tokens, heads, dim], bf16, normal; no LSE is asked for.
FLOPs are 4 * batch * heads * queries * keys * dim, half of that when causal. r is cuDNN's time over ours, and with
anchors (the best known kernel's rate over cuDNN's) r / a says how near that best we come. Decoding, one query or a few
per sequence, is bound by memory: GB/s are the bytes of K and V, which each must be read once.
"""
import csv
import itertools
import math
import statistics
import time

import gpu_timer
import results
import tilewright_library
import torch
from torch.nn.attention import SDPBackend, sdpa_kernel

MODEL_DIM = 2048  # heads x dim
TOKENS = 16384  # batch x length, at least one sequence
LENGTHS = [512, 1024, 2048, 4096, 8192, 16384, 32768]
# Of decoding: batch, heads, KV heads, queries, keys, head dim.
DECODE = [
    (1, 32, 8, 1, 1024, 128), (1, 32, 8, 1, 8192, 128), (1, 32, 8, 1, 131072, 128), (4, 64, 8, 1, 32768, 128),
    (16, 32, 8, 1, 8192, 128), (64, 32, 8, 1, 4096, 128), (128, 32, 8, 1, 1024, 128), (16, 64, 8, 1, 8192, 64),
    (16, 16, 2, 1, 8192, 256), (1, 128, 1, 1, 32768, 128), (8, 64, 4, 1, 16384, 128), (16, 16, 16, 1, 8192, 128),
    (8, 32, 8, 4, 8192, 128),
]
PEERS = {"cudnn": SDPBackend.CUDNN_ATTENTION, "flash_attention_2": SDPBackend.FLASH_ATTENTION}
LARGEST_ERROR = 1e-2  # of the norm: bf16 results of different kernels


def anchors_of(path):
    if not path:
        return {}
    with open(path, newline="") as file:
        return {(int(row["hdim"]), bool(int(row["causal"])), int(row["seqlen"])): float(row["best_over_cudnn"])
                for row in csv.DictReader(file) if row["kind"] == "fwd" and row["best_over_cudnn"]}


def ours_of(library, q, k, v, causal):
    """Our call on these tensors, its result, and what was planned."""
    o = torch.empty_like(q)
    attention = library.attention(
        *map(tilewright_library.strided, (q, k, v, o)), str(q.dtype).removeprefix("torch."), causal,
        alignment_bytes=16, device=b"cuda")
    attention.prepare()
    workspace = torch.empty(max(attention.workspace_bytes, 1), dtype=torch.uint8, device="cuda")
    call = attention.bound(*(t.data_ptr() for t in (q, k, v, o)), workspace.data_ptr(),
                           torch.cuda.current_stream().cuda_stream)
    call.keeps = attention, workspace
    return call, o, attention.text


def theirs_of(backend, q, k, v, causal):
    grouped = q.shape[1] != k.shape[1]

    def alone():
        with sdpa_kernel(backend):
            return torch.nn.functional.scaled_dot_product_attention(q, k, v, is_causal=causal, enable_gqa=grouped)

    return alone


def random_operand(batch, tokens, heads, dim):
    return torch.randn(batch, tokens, heads, dim, device="cuda", dtype=torch.bfloat16).transpose(1, 2)


def timed(library, q, k, v, causal, rounds, flash):
    """A row's results: everybody's time and rate on these operands, and how far ours is from cuDNN's."""
    ours, o, plan = ours_of(library, q, k, v, causal)
    o.fill_(math.nan)
    ours()
    flops = 4 * q.shape[0] * q.shape[1] * q.shape[2] * k.shape[2] * q.shape[3] / (2 if causal else 1)
    # The longest take seconds a round: fewer warm-ups are as warm.
    warm_ups = gpu_timer.WARM_UPS if flops < 4e12 else 3
    calls = {"tilewright": ours} | {name: theirs_of(backend, q, k, v, causal) for name, backend in PEERS.items()
                                    if name != "flash_attention_2" or flash}
    expected = calls["cudnn"]().float()
    error = ((o.float() - expected).norm() / expected.norm()).item()
    del expected
    times = [{name: gpu_timer.median_ms(call, warm_ups) for name, call in calls.items()} for _ in range(rounds)]
    row = {}
    for name in calls:
        milliseconds = statistics.median(one[name] for one in times)
        row[name + "_ms"] = round(milliseconds, 4)
        row[name + "_tflops"] = round(flops / milliseconds / 1e9, 1)
    row["r"] = round(statistics.median(one["cudnn"] / one["tilewright"] for one in times), 3)
    row["error"] = f"{error:.1e}"
    row["plan"] = plan
    if not error < LARGEST_ERROR:
        row["r"] = 0.0  # A wrong result has no rate.
        print(f"{tuple(q.shape)} on {tuple(k.shape)}, causal {causal}: results differ by {error} of their norm")
    return row


def point(library, dim, causal, tokens, args):
    heads, batch = MODEL_DIM // dim, max(1, TOKENS // tokens)
    torch.manual_seed(1)
    q, k, v = (random_operand(batch, tokens, heads, dim) for _ in range(3))
    row = {"dim": dim, "causal": int(causal), "tokens": tokens, "batch": batch, "heads": heads}
    return row | timed(library, q, k, v, causal, args.rounds, tokens <= args.flash_up_to)


def decode_point(library, shape, args):
    batch, heads, kv_heads, queries, keys, dim = shape
    torch.manual_seed(1)
    q = random_operand(batch, queries, heads, dim)
    k, v = (random_operand(batch, keys, kv_heads, dim) for _ in range(2))
    row = dict(zip(("batch", "heads", "kv_heads", "queries", "keys", "dim"), shape))
    row |= timed(library, q, k, v, False, args.rounds, args.flash_up_to > 0)
    kv_bytes = 2 * k.numel() * k.element_size()
    return row | {name.replace("_ms", "_gb_per_s"): round(kv_bytes / row[name] / 1e6)
                  for name in list(row) if name.endswith("_ms")}


def grid(args):
    """Every point asked for, a line each; rows as for the results file."""
    library = tilewright_library.Library(args.library)
    device = torch.cuda.get_device_name()
    made_by = {"device": device, "driver": results.driver(), "commit": args.commit or results.commit(),
               "kernel_compiler": results.pack_compiler(args.library), "torch": torch.__version__,
               "cudnn": torch.backends.cudnn.version()}
    print(f"tilewright {library.version}; " + ", ".join(f"{key} {value}" for key, value in made_by.items()))
    anchors = anchors_of(args.anchors)
    rows = []
    start = time.monotonic()

    def add(row):
        rows.append(row)
        print("  ".join(f"{key} {value}" for key, value in row.items() if key != "plan"), flush=True)

    with torch.no_grad():
        if args.decode:
            for shape in DECODE:
                add(decode_point(library, shape, args))
        else:
            for dim, causal, tokens in itertools.product(args.dims or [64, 128, 256], (False, True),
                                                         args.tokens or LENGTHS):
                row = point(library, dim, causal, tokens, args)
                if anchor := anchors.get((dim, causal, tokens)):
                    row["anchor"] = anchor
                    row["r_over_anchor"] = round(row["r"] / anchor, 3)
                add(row)
    columns = dict.fromkeys(key for row in rows for key in row)
    for kind in ("r", "r_over_anchor"):
        if kind in columns:
            ratios = [row[kind] for row in rows if kind in row]
            mean = statistics.geometric_mean(ratios) if min(ratios) > 0 else 0  # 0: of a wrong result
            print(f"{kind}: least {min(ratios)}, geometric mean {mean:.3f}")
    print(f"{len(rows)} points in {time.monotonic() - start:.0f} s; "
          f"{gpu_timer.median_ms.launched_late} timings whose launches came late")
    rows = [{column: row.get(column, "") for column in columns} | made_by for row in rows]
    what = "decode-bf16" if args.decode else "attention-bf16"
    results.write(args.out or results.default_path(device, what), rows)
