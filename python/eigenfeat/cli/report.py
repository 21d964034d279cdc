"""``eigenfeat report``: a page about a model and what it makes of rows in files."""

from __future__ import annotations

import argparse
import os
import time
from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from eigenfeat._base.extras import require
from eigenfeat.cli.models import opened
from eigenfeat.cli.output import Output, UsageError, check_folder
from eigenfeat.tables import FileRows

__all__ = ["report", "some_rows"]


def report(options: argparse.Namespace) -> int:
    """Write the page."""
    output = Output("report", options.json, options.progress)
    started = time.perf_counter()
    check_folder(options.output)
    require("matplotlib", "reports")
    model, rows = opened(options, None, labelled=True)
    X, y, n = some_rows(rows, options.max_rows, output)
    sources = {
        "Model": f"{options.model} ({os.path.getsize(options.model):,} bytes)",
        "Rows": ", ".join(map(str, getattr(options, "named", options.data))) + _drawn(len(y), n),
    }
    from eigenfeat.report import write_report

    shape = options.image_shape
    if isinstance(shape, tuple) and shape[0] * shape[1] != X.shape[1]:
        raise UsageError(
            f"--image-shape: expected {X.shape[1]} pixels, got {shape[0]} x {shape[1]}"
        )
    try:
        write_report(
            model, X, y, options.output, title=options.title, image_shape=shape, sources=sources
        )
    except ValueError as error:
        file, told = rows.sources[0].path, str(error)
        if told.startswith("model: "):
            file, told = options.model, told.removeprefix("model: ")
        raise ValueError(f"{file}: {told}") from error
    size = os.path.getsize(options.output)
    found = {"output": str(options.output), "rows": len(y), "of_rows": n}
    found |= {"skipped": rows.n_skipped, "seconds": time.perf_counter() - started}
    output.result(found, f"{options.output}: {len(y):,} rows{_drawn(len(y), n)}, {size:,} bytes")
    return 0


def _drawn(kept: int, n: int) -> str:
    return "" if kept == n else f" ({kept:,} drawn at random from {n:,})"


def some_rows(rows: FileRows, most: int, output: Output) -> tuple[Any, NDArray[Any], int]:
    """All rows, or `most` of them drawn at random in one pass, in their order; and their number."""
    rng = np.random.default_rng(0)
    X: Any = None
    y: NDArray[Any] = np.empty(0)
    keys: NDArray[Any] = np.empty(0)
    n = 0
    with output.rows("reading") as advance:
        for block, position in rows.blocks():
            fresh = rng.random(len(block))
            stack = sp.vstack if sp.issparse(block.X) else np.concatenate
            X = block.X.copy() if X is None else stack([X, block.X])
            y = np.concatenate([y, block.y]) if len(keys) else block.y.copy()
            keys = np.concatenate([keys, fresh])
            n += len(block)
            if len(keys) > most:
                kept = np.sort(np.argpartition(keys, most)[:most])
                X, y, keys = (X.tocsr() if sp.issparse(X) else X)[kept], y[kept], keys[kept]
            advance(len(block), rows.fraction(position))
    if n == 0:
        skipped = f"; {rows.n_skipped:,} bad rows were left out" if rows.n_skipped else ""
        raise ValueError(f"{rows.sources[0].path}: expected at least one row, got none{skipped}")
    return (X.tocsr() if sp.issparse(X) else X), y, n
