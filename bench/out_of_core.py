"""GEMClassifier on a file larger than memory need be: peak against the formula, time against RAM.

``python bench/out_of_core.py --gigabytes 0.5`` writes a float32 file into a temporary folder and
fits it twice, each in a process of its own: as a memory-mapped array, block by block, and as an
array in memory. The peak is that of the process's own pages (RssAnon, sampled), less what it had
before the fit; pages of the file are the system's cache, which it takes back when it wants to.
With ``--search`` it is `GEMClassifierCV`, two ridges by two penalties, that is fitted.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import tempfile
import threading
import time
from pathlib import Path
from typing import Any

import numpy as np

CLASSES = 10


def own_bytes() -> int:
    """Bytes of memory of this process that no file backs (Linux)."""
    for line in Path("/proc/self/status").read_text().splitlines():
        if line.startswith("RssAnon:"):
            return 1024 * int(line.split()[1])
    return 0


class Peak:
    """The most memory there was, looked at a hundred times a second."""

    def __enter__(self) -> Peak:
        self.before = self.most = own_bytes()
        self._ended = threading.Event()
        self._thread = threading.Thread(target=self._watch, daemon=True)
        self._thread.start()
        return self

    def _watch(self) -> None:
        while not self._ended.wait(0.01):
            self.most = max(self.most, own_bytes())

    def __exit__(self, *_: object) -> None:
        self._ended.set()
        self._thread.join()


def write_rows(path: Path, n: int, d: int) -> np.ndarray:
    """Rows of ten classes, each with a covariance of its own; the labels are returned."""
    random = np.random.default_rng(0)
    mixing = random.standard_normal((CLASSES, d, d)).astype(np.float32) / np.sqrt(d)
    labels = random.integers(0, CLASSES, n).astype(np.int8)
    out = np.memmap(path, dtype=np.float32, mode="w+", shape=(n, d))
    for begin in range(0, n, 20_000):
        some = slice(begin, min(begin + 20_000, n))
        rows = random.standard_normal((some.stop - begin, d), dtype=np.float32)
        for c in range(CLASSES):
            members = labels[some] == c
            rows[members] = rows[members] @ mixing[c] + 0.5 * rows[members]
        out[some] = rows
    out.flush()
    return labels


def formula(
    n: int, d: int, k: int, directions: int, features: int, gram_rows: int, search: bool
) -> dict:
    """Bytes of the parts, as the user guide has them; float32 rows in a file."""
    p = features + 1
    sample = min(gram_rows, n)
    width = max(d, directions)
    return {
        "rows of a block to train on": min(64_000_000, 4 * n * d) if search else 0,
        "projections of a piece": min(32_000_000, 4 * n * width),
        "moments": 16 * k * d * d,
        "Gram matrix": min(4 * sample * (d + directions), 12 * p * p),
        "metric": 6 * p * p,
        "search": 8 * 40 * p * k,
        "labels and draws": (70 if search else 25) * n,
    }


def run(arguments: argparse.Namespace) -> None:
    """In a process of its own: fit, and print what it took as JSON."""
    from eigenfeat import GEM, GEMClassifier, GEMClassifierCV

    shape = (arguments.rows, arguments.columns)
    X: Any = np.memmap(arguments.path, dtype=np.float32, mode="r", shape=shape)
    y = np.load(str(arguments.path) + ".labels.npy")
    model: Any = GEMClassifier(
        views="gem", gem=GEM(n_directions=arguments.directions), n_threads=arguments.threads
    )
    if arguments.search:
        model = GEMClassifierCV(model, {"gem__ridge": [0.1, 0.5], "logit__penalty": [0.1, 0.03]})
    # Libraries take their own buffers at the first fit, whatever the rows.
    model.fit(np.array(X[:2000]), y[:2000])
    with Peak() as peak:
        started = time.perf_counter()
        if arguments.inner == "memory":
            X = np.array(X)
        model.fit(X, y)
        seconds = time.perf_counter() - started
    some = slice(0, 20_000)
    fitted = model.best_estimator_ if arguments.search else model
    result = {
        "seconds": seconds,
        "peak": peak.most - peak.before,
        "directions": len(fitted.layers_[-1].offset),
        "features": fitted.logit_.n_features_in_,
        "iterations": int(fitted.logit_.n_iter_[0]),
        "objective": fitted.logit_.objective_,
        "error": float(np.mean(model.predict(np.array(X[some])) != y[some])),
    }
    print(json.dumps(result))


def measured(arguments: argparse.Namespace, path: Path, n: int, kind: str) -> dict[str, Any]:
    command = [sys.executable, __file__, "--inner", kind, "--path", str(path), "--rows", str(n)]
    for name in ("columns", "directions", "threads"):
        command += [f"--{name}", str(getattr(arguments, name))]
    command += ["--search"] * arguments.search
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode:
        raise SystemExit(done.stderr)
    found: dict[str, Any] = json.loads(done.stdout)
    return found


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--gigabytes", type=float, default=0.25)
    parser.add_argument("--columns", type=int, default=200)
    parser.add_argument("--directions", type=int, default=2)
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--search", action="store_true", help="choose among four candidates")
    parser.add_argument("--folder", help="where the file goes; by default the temporary folder")
    parser.add_argument("--inner", choices=("file", "memory"), help=argparse.SUPPRESS)
    parser.add_argument("--path", help=argparse.SUPPRESS)
    parser.add_argument("--rows", type=int, help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.inner:
        run(arguments)
        return
    d = arguments.columns
    n = int(arguments.gigabytes * 1e9 / (4 * d))
    with tempfile.TemporaryDirectory(dir=arguments.folder) as folder:
        path = Path(folder) / "rows"
        np.save(str(path) + ".labels.npy", write_rows(path, n, d))
        found = {kind: measured(arguments, path, n, kind) for kind in ("file", "memory")}
    widths = found["file"]["directions"], found["file"]["features"]
    parts = formula(n, d, CLASSES, *widths, gram_rows=20_000, search=arguments.search)
    print(f"{n} rows of {d} float32 columns, {4e-6 * n * d:.0f} MB; {CLASSES} classes")
    for kind, values in found.items():
        print(
            f"{kind:>7}: {values['seconds']:7.1f} s, {values['iterations']} iterations, "
            f"peak {values['peak'] / 1e6:6.0f} MB, objective {values['objective']:.6g}, "
            f"training error {100 * values['error']:.2f}%"
        )
    print(f"formula: {sum(parts.values()) / 1e6:.0f} MB")
    for name, size in parts.items():
        print(f"  {name:<28}{size / 1e6:8.1f} MB")


if __name__ == "__main__":
    main()
