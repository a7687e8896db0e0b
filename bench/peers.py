#!/usr/bin/env python3
"""bench/peers.py: times PyTorch's attention and Tilewright's side by side, on this CPU or GPU.

    python3 -m venv ../venv && ../venv/bin/pip install torch
    ../venv/bin/python bench/peers.py --library build/src/libtilewright.so [--out results.csv]
    ../venv/bin/python bench/peers.py --library build/src/libtilewright.so --device cuda [--anchors best.csv]
"""
import argparse
import importlib
import pathlib


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--library", required=True)
    parser.add_argument("--device", choices=["cpu", "cuda"], default="cpu")
    parser.add_argument("--tokens", type=int, nargs="*", help="lengths; otherwise the whole grid")
    parser.add_argument("--dims", type=int, nargs="*", help="head dims; otherwise the whole grid")
    parser.add_argument("--out", type=pathlib.Path, help="on a GPU otherwise bench/results/<device>/<date>-<what>.csv")
    cpu = parser.add_argument_group("on a CPU")
    cpu.add_argument("--threads", type=int, help="otherwise all")
    cpu.add_argument("--repeats", type=int, default=7)
    cpu.add_argument("--tile", type=lambda text: tuple(map(int, text.split("x"))), help="forced, as 128x64")
    cuda = parser.add_argument_group("on a GPU")
    cuda.add_argument("--anchors", type=pathlib.Path, help="CSV of the best known rates over cuDNN's")
    cuda.add_argument("--flash-up-to", type=int, default=16384, metavar="TOKENS",
                      help="the longest that FlashAttention-2 is timed at; 0: never")
    cuda.add_argument("--decode", action="store_true", help="one query or a few over many keys (13 shapes), instead of the grid")
    cuda.add_argument("--rounds", type=int, default=1, help="how often each is timed, in turn")
    cuda.add_argument("--commit", help="otherwise this tree's")
    args = parser.parse_args()
    importlib.import_module("peers_" + args.device).grid(args)


if __name__ == "__main__":
    main()
