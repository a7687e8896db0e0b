"""bench/peers_cuda.py: times cuDNN, FlashAttention-2 and Tilewright on one GPU, in turn, on the same inputs.

cuDNN and FlashAttention-2 are PyTorch's. Inputs are [batch, tokens, heads, dim], bf16, normal; no LSE is asked for.
FLOPs are 4 * batch * heads * tokens^2 * dim, half of that when causal. r is cuDNN's time over ours, and with anchors
(the best known kernel's rate over cuDNN's) r / a says how near that best we come.
"""
import csv
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
    def call():
        return torch.nn.functional.scaled_dot_product_attention(q, k, v, is_causal=causal)

    def alone():
        with sdpa_kernel(backend):
            return call()

    return alone


def point(library, dim, causal, tokens, args):
    heads, batch = MODEL_DIM // dim, max(1, TOKENS // tokens)
    torch.manual_seed(1)
    q, k, v = (torch.randn(batch, tokens, heads, dim, device="cuda", dtype=torch.bfloat16).transpose(1, 2)
               for _ in range(3))
    ours, o, plan = ours_of(library, q, k, v, causal)
    o.fill_(math.nan)
    ours()
    # The longest take seconds a round: fewer warm-ups are as warm.
    warm_ups = gpu_timer.WARM_UPS if batch * heads * tokens**2 * dim < 1e12 else 3
    row = {"dim": dim, "causal": int(causal), "tokens": tokens, "batch": batch, "heads": heads}
    flops = 4 * batch * heads * tokens**2 * dim / (2 if causal else 1)
    calls = {"tilewright": ours} | {name: theirs_of(backend, q, k, v, causal) for name, backend in PEERS.items()
                                    if name != "flash_attention_2" or tokens <= args.flash_up_to}
    expected = calls["cudnn"]().float()
    error = ((o.float() - expected).norm() / expected.norm()).item()
    del expected
    rounds = [{name: gpu_timer.median_ms(call, warm_ups) for name, call in calls.items()} for _ in range(args.rounds)]
    for name in calls:
        milliseconds = statistics.median(times[name] for times in rounds)
        row[name + "_ms"] = round(milliseconds, 4)
        row[name + "_tflops"] = round(flops / milliseconds / 1e9, 1)
    row["r"] = round(statistics.median(times["cudnn"] / times["tilewright"] for times in rounds), 3)
    row["error"] = f"{error:.1e}"
    row["plan"] = plan
    if not error < LARGEST_ERROR:
        row["r"] = 0.0  # A wrong result has no rate.
        print(f"dim {dim} causal {causal} {tokens} tokens: results differ by {error} of their norm")
    return row


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
    with torch.no_grad():
        for dim in args.dims or [64, 128, 256]:
            for causal in (False, True):
                for tokens in args.tokens or LENGTHS:
                    row = point(library, dim, causal, tokens, args)
                    if anchor := anchors.get((dim, causal, tokens)):
                        row["anchor"] = anchor
                        row["r_over_anchor"] = round(row["r"] / anchor, 3)
                    rows.append(row)
                    print("  ".join(f"{key} {value}" for key, value in row.items() if key != "plan"), flush=True)
    columns = dict.fromkeys(key for row in rows for key in row)
    for kind in ("r", "r_over_anchor"):
        if kind in columns:
            least = min((row for row in rows if kind in row), key=lambda row: row[kind])
            print(f"least {kind}: {least[kind]} at dim {least['dim']} causal {least['causal']} {least['tokens']} tokens")
    print(f"{len(rows)} points in {time.monotonic() - start:.0f} s; "
          f"{gpu_timer.median_ms.launched_late} timings whose launches came late")
    rows = [{column: row.get(column, "") for column in columns} | made_by for row in rows]
    results.write(args.out or results.default_path(device, "attention-bf16"), rows)
