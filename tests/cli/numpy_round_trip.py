"""tests/cli/numpy_round_trip.py: NumPy's files go through `tilewright run` and NumPy reads the result.

Exits 77 (skipped) where NumPy is not installed.
"""
import pathlib
import subprocess
import sys
import tempfile

try:
    import numpy as np
except ImportError:
    sys.exit(77)


def attention(q, k, v):
    """One head in fp64: [tokens, dim]."""
    scores = q @ k.T / np.sqrt(q.shape[1])
    p = np.exp(scores - scores.max(axis=1, keepdims=True))
    return p @ v / p.sum(axis=1, keepdims=True), np.log(p.sum(axis=1)) + scores.max(axis=1)


def check(command, folder, q, k, v, tolerance):
    files = {name: folder / f"{name}.npy" for name in ("q", "k", "v", "o", "lse")}
    for name, array in (("q", q), ("k", k), ("v", v)):
        np.save(files[name], array)
    flags = [word for name in "qkv" for word in (f"--{name}", files[name])]
    subprocess.run([command, "run", *flags, "--out", files["o"], "--lse", files["lse"]], check=True,
                   stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    o, lse = attention(*(array.astype(np.float64) for array in (q, k, v)))
    np.testing.assert_allclose(np.load(files["o"]).astype(np.float64), o, atol=tolerance)
    np.testing.assert_allclose(np.load(files["lse"]), lse, atol=1e-4)


def main():
    command = sys.argv[1]
    random = np.random.default_rng(1)
    with tempfile.TemporaryDirectory() as name:
        folder = pathlib.Path(name)
        for dtype, tolerance in (("<f4", 1e-5), (">f4", 1e-5), ("<f8", 1e-5), (">f8", 1e-5), ("<f2", 1e-2),
                                 (">f2", 1e-2)):
            q, k, v = (random.standard_normal(shape).astype(dtype) for shape in ((33, 16), (47, 16), (47, 8)))
            check(command, folder, q, k, v, tolerance)
            check(command, folder, np.asfortranarray(q), k, np.asfortranarray(v), tolerance)
    print("NumPy", np.__version__, "reads what we write, and we what it writes")


main()
