"""``eigenfeat report``: a page about a model and its predictions for the rows of files."""

from __future__ import annotations

import os
from datetime import datetime
from pathlib import Path
from types import SimpleNamespace

from eigenfeat._base.validation import counted
from eigenfeat.cli.files import (
    check_output,
    naming_files,
    opened_with_model,
    sample_rows,
    seen_in_fit,
)
from eigenfeat.cli.inspect import saved_versions
from eigenfeat.cli.output import Output, naming_options

__all__ = ["report"]

_PARAMETERS = ("image_shape", "holdout", "cv", "pos_label")  # options of `write_report`


def _model_file(path: str) -> str:
    """Name of a model's file, its size, its date, and the version that wrote it."""
    status = os.stat(path)
    day = datetime.fromtimestamp(status.st_mtime).date().isoformat()
    versions = saved_versions(Path(path))
    by = f" by eigenfeat {versions['eigenfeat']}" if "eigenfeat" in versions else ""
    return f"{path} ({status.st_size:,} bytes, written on {day}{by})"


def report(options: SimpleNamespace, output: Output) -> None:
    """Write the page."""
    check_output(options.output)
    model, rows = opened_with_model(options, labelled=True)
    check_output(options.output, options.model, rows)
    sample = sample_rows(options, rows, options.max_rows, output)
    y, n = sample.y, sample.n
    drawn = "" if len(y) == n else f" ({len(y):,} drawn at random from {n:,})"
    sources = {
        "Model": _model_file(options.model),
        "Rows": ", ".join(map(str, getattr(options, "named", options.data))) + drawn,
    }
    from eigenfeat.report import write_report

    with naming_options(*_PARAMETERS), naming_files(rows, options.model):
        write_report(
            model,
            sample.X,
            y,
            options.output,
            image_shape=options.image_shape,
            sources=sources,
            seen_in_fit=seen_in_fit(model, rows),
            holdout=options.holdout,
            cv=options.cv,
            random_state=options.seed,
            sample_weight=sample.weight,
            pos_label=options.pos_label,
        )
    size = os.path.getsize(options.output)
    result = {"output": str(options.output), "rows": len(y), "of_rows": n}
    result |= {"skipped": rows.n_skipped, "seconds": output.seconds}
    output.result(result, f"{options.output}: {counted(len(y), 'row')}{drawn}, {size:,} bytes")
