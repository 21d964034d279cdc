"""``eigenfeat report``: a page about a model and what it makes of rows in files."""

from __future__ import annotations

import os
import time
from types import SimpleNamespace

from eigenfeat._base.extras import require
from eigenfeat.cli.models import opened
from eigenfeat.cli.options import check_output, files_of
from eigenfeat.cli.output import Output, UsageError
from eigenfeat.cli.sampled_rows import some_rows
from eigenfeat.rows.out_of_core import without_names

__all__ = ["report"]


def report(options: SimpleNamespace) -> int:
    """Write the page."""
    output = Output("report", options.json, options.progress)
    started = time.perf_counter()
    check_output(options.output)
    require("matplotlib", "reports")
    model, rows = opened(options, None, labelled=True)
    check_output(options.output, [options.model, *files_of(rows)])
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
    encoder = getattr(model, "columns_", None)
    if encoder is not None:  # the page is about the encoded columns
        model = without_names(model)
        model.feature_names_in_ = encoder.feature_names_
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
