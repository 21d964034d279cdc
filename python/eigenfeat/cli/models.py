"""``eigenfeat search``, ``predict`` and ``transform``: estimators on files of rows."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Mapping
from itertools import repeat
from types import SimpleNamespace
from typing import Any

import numpy as np
import numpy.typing as npt
from sklearn.model_selection import ParameterGrid

from eigenfeat._base.validation import counted
from eigenfeat.cli.files import STANDARD, opened_with_model, rows_of
from eigenfeat.cli.inspect import plain
from eigenfeat.cli.kinds import full_name, grid_values, suited, unfitted
from eigenfeat.cli.output import Output, UsageError
from eigenfeat.cli.training import check_regression, fit_rows, of_task, read_training
from eigenfeat.cli.writers import check_writable, open_writer
from eigenfeat.gem.search import GEMClassifierCV
from eigenfeat.io.errors import OptionError
from eigenfeat.io.rows import FileRows
from eigenfeat.io.saving import save
from eigenfeat.samples.estimator import without_names

__all__ = ["predict", "search", "transform"]


# ---- search --------------------------------------------------------------------------------------

_MAX_SHOWN = 10  # candidates of a search that are printed


def search(options: SimpleNamespace, output: Output) -> None:
    """Try candidates, and save the best candidate, fitted to all rows."""
    if options.task == "regression":
        check_regression(options)
    base = unfitted(options)
    searched = _search(options, base, grid_values(options.grid))
    reader = base if options.model_kind == "gem" else searched
    training = read_training(options, searched, reader, options.output, output)
    rows = training.rows
    of_task(options, searched, training, output)
    fit_rows(options, searched, training, output)
    model = searched.best_estimator_
    training.keep(model)
    save(model, options.output)
    result: dict[str, Any] = {"output": str(options.output), "estimator": type(model).__name__}
    result |= {"rows": rows.n_rows, "skipped": rows.n_skipped}
    result |= {"best_params": _own_names(searched.best_params_)}
    result |= {"best_score": float(searched.best_score_), "results": _candidates(searched)}
    result |= {"seconds": output.seconds}
    output.result(result, _text(result))


def _candidates(searched: Any) -> list[dict[str, Any]]:
    """Parameters, score and deviation of each candidate, the best first, and which is chosen."""
    tried = [searched.cv_results_[name] for name in ("params", "mean_test_score", "std_test_score")]
    listed = [
        {"params": _own_names(params), "score": float(score), "deviation": float(deviation)}
        | {"chosen": place == searched.best_index_}
        for place, (params, score, deviation) in enumerate(zip(*tried, strict=True))
        if np.isfinite(score)
    ]
    return sorted(listed, key=lambda candidate: -candidate["score"])


def _search(options: SimpleNamespace, base: Any, grid: dict[str, list[Any]]) -> Any:
    """Unfitted search over a grid for the model that the options name."""
    grid = {
        full: [suited(base, full, value) for value in values]
        for name, values in grid.items()
        for full in [full_name(base, name, f"--grid {name}")]
    }
    if options.model_kind == "gem":
        seed = base.random_state
        return GEMClassifierCV(base, grid or None, cv=options.cv, random_state=seed)
    from eigenfeat.early import ReliableClassifierCV

    taus = grid.pop("reliability", None)
    candidates = {
        ", ".join(f"{key}={value}" for key, value in params.items()) or "as given": (
            unfitted(options).set_params(**params, correct=False)
        )
        for params in ParameterGrid(grid)
    }
    return ReliableClassifierCV(
        candidates,
        tau=None if taus is None else sorted(taus),
        n_folds=options.cv or 5,
        n_threads=options.threads,
    )


def _own_names(params: Mapping[str, Any]) -> dict[str, Any]:
    """Parameters by their names without the prefixes of `gem` and `logit`."""
    nested = ("gem__", "logit__")
    return {
        name.partition("__")[2] if name.startswith(nested) else name: plain(value)
        for name, value in params.items()
    }


def _text(result: dict[str, Any]) -> str:
    def settings(params: Mapping[str, Any]) -> str:
        return ", ".join(f"{name}={value}" for name, value in params.items()) or "as given"

    lines = [f"  {each['score']:.4f}  {settings(each['params'])}" for each in result["results"]]
    if len(lines) > _MAX_SHOWN:
        lines[_MAX_SHOWN:] = [f"  ... and {len(lines) - _MAX_SHOWN} more; --json prints all"]
    return "\n".join([
        f"{result['output']}: {result['estimator']}, {counted(result['rows'], 'row')}; "
        f"{settings(result['best_params'])}; score {result['best_score']:.4f}; "
        f"{result['seconds']:.1f} s",
        *lines,
    ])  # fmt: skip


# ---- predict and transform -----------------------------------------------------------------------


def predict(options: SimpleNamespace, output: Output) -> None:
    """Write the predictions of every row."""
    is_npy = options.output.suffix.lower() == ".npy"
    check_writable(options.output)
    methods = {"early": "predict_early", "coverage": "predict_interval", "proba": "predict_proba"}
    given = [name for name in methods if getattr(options, name)]
    if len(given) > 1:
        raise UsageError(f"--{given[1]}: expected none with --{given[0]}")
    if is_npy and (options.early or options.coverage):
        raise UsageError(f"--output: expected .csv or .parquet with --{given[0]}, got .npy")
    method = methods[given[0]] if given else "predict"
    model, rows = opened_with_model(options, method)
    model = without_names(model)
    classes = np.asarray(getattr(model, "classes_", []))
    if options.keep and (is_npy or options.skip_bad):
        other = ".npy" if is_npy else "--skip-bad"
        raise UsageError(f"--keep: expected none with {other}")
    if options.skip_bad and is_npy and not options.proba and classes.dtype.kind in "biu":
        raise UsageError(
            "--skip-bad: expected --proba or an output in .csv or .parquet, got .npy, in which "
            f"labels that are {classes.dtype} cannot be missing"
        )
    width = max([1, *(len(str(label)) for label in classes.tolist())])

    def plain_labels(labels: Any) -> npt.NDArray[Any]:
        """Labels as an array that a file can hold, of one type for all blocks."""
        labels = np.asarray(labels)
        return labels.astype(f"U{width}") if labels.dtype.kind in "OU" else labels

    has_reliability = hasattr(getattr(model, "best_estimator_", model), "decide")
    names = ["prediction"]
    if options.early:
        names += ["time", *["reliability"] * has_reliability]
    elif options.coverage:
        names += ["lower", "upper"]
    elif options.proba:
        names = names * (not is_npy) + [f"p_{label}" for label in classes.tolist()]

    def columns_of(X: Any) -> list[npt.NDArray[Any]]:
        if options.early:
            decisions = model.predict_early(X)
            columns = [plain_labels(decisions.label), np.asarray(decisions.time, dtype=float)]
            return columns + [np.asarray(decisions.reliability, dtype=float)] * has_reliability
        if options.coverage:
            return [np.asarray(model.predict(X)), model.predict_interval(X, options.coverage)]
        if not options.proba:
            return [plain_labels(model.predict(X))]
        proba = np.asarray(model.predict_proba(X))
        labels = plain_labels(classes[proba.argmax(axis=1)])
        return [proba] if is_npy else [labels, proba]

    kept = _kept(options, rows, names) if options.keep else None
    _write(options, output, rows, names, columns_of, {"classes": classes.tolist()}, kept)


def _kept(options: SimpleNamespace, rows: FileRows, names: list[str]) -> FileRows:
    """The columns that --keep names, in blocks of as many rows as those of `rows`.

    Their cells are read as categories, so that they are copied exactly.
    """
    only = {"columns": options.keep, "drop": (), "categorical": options.keep, "target": None}
    only |= {"block_rows": rows.block_rows, "na_values": (), "keep_default_na": False}
    try:
        kept = rows_of(SimpleNamespace(**vars(options) | only), labelled=False).frames()
    except OptionError as error:
        raise UsageError(f"--keep: {error.text}") from None
    if kept is None:
        raise UsageError("--keep: expected none with files of sparse samples")
    if twice := {*names} & {*kept.feature_names}:
        raise UsageError(f"--keep: expected a column of another name than {twice.pop()!r}")
    return kept


def transform(options: SimpleNamespace, output: Output) -> None:
    """Write the features of every row."""
    check_writable(options.output)
    model, rows = opened_with_model(options, "transform")
    try:
        names = [str(name) for name in model.get_feature_names_out()]
    except (AttributeError, ValueError):
        names = []
    model = without_names(model)
    if not names:
        probe = model.transform(np.zeros((1, model.n_features_in_)))
        names = [f"feature{j}" for j in range(probe.shape[1])]

    def columns_of(X: Any) -> list[npt.NDArray[Any]]:
        features = model.transform(X)
        return [features.toarray() if hasattr(features, "toarray") else np.asarray(features)]

    _write(options, output, rows, names, columns_of, {"columns": len(names)})


def _objects(frame: Any) -> list[npt.NDArray[Any]]:
    """The columns of a data frame as arrays of objects, with None for missing values."""
    columns = [frame[name].astype(object) for name in frame]
    return [column.where(column.notna(), None).to_numpy() for column in columns]


def _write(
    options: SimpleNamespace,
    output: Output,
    rows: FileRows,
    names: list[str],
    columns_of: Callable[[Any], list[npt.NDArray[Any]]],
    more: dict[str, Any],
    kept: FileRows | None = None,
) -> None:
    """Write the columns of each block, after the columns of `kept`."""
    standard, path = str(options.output) == STANDARD, options.output
    written = skipped = 0
    check_writable(path, options.model, rows)
    copied = repeat([]) if kept is None else (_objects(block.X) for block in kept)
    names = names if kept is None else [*kept.feature_names, *names]
    with open_writer(path, names) as write, output.rows(output.command) as advance:
        for (block, position), first in zip(rows.blocks(), copied, strict=False):
            missing = block.y if options.skip_bad and block.y.any() else None
            write(*first, *columns_of(block.X), missing=missing)
            written += len(block)
            skipped += 0 if missing is None else int(missing.sum())
            advance(len(block), position.fraction)
    result = {"output": str(path), "rows": written, "skipped": skipped, **more}
    result |= {"seconds": output.seconds, "rows_per_second": advance.rate}
    empty = f" ({counted(skipped, 'bad row')} left empty)" if skipped else ""
    text = counted(written, "row") + empty
    if standard:  # rows go to standard output, the summary to standard error
        output.result(result, f"eigenfeat: {text}", sys.stderr)
    else:
        output.result(result, f"{path}: {text}, {os.path.getsize(path):,} bytes")
