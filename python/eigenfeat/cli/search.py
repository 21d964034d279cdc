"""``eigenfeat search``: parameters chosen by cross-validation on rows in files."""

from __future__ import annotations

import time
from collections.abc import Mapping
from types import SimpleNamespace
from typing import Any

import numpy as np
from sklearn.model_selection import GridSearchCV, ParameterGrid, StratifiedKFold
from sklearn.pipeline import make_pipeline

from eigenfeat.cli.inspect import plain
from eigenfeat.cli.kinds import full_name, grid_values, unfitted
from eigenfeat.cli.models import fit_whole, gathered
from eigenfeat.cli.options import check_output, files_of, open_labelled
from eigenfeat.cli.output import Output, UsageError
from eigenfeat.gem.search import GEMClassifierCV
from eigenfeat.models.saving import save
from eigenfeat.rows.estimator import keep_columns

__all__ = ["search"]

SHOWN = 10
OF_LDG = ("n_components", "gamma", "n_neighbors")


def search(options: SimpleNamespace) -> int:
    """Try candidates, and save the best one fitted to all rows."""
    output = Output("search", options.json, options.progress)
    started = time.perf_counter()
    grid = grid_values(options.grid)
    makes = {"gem": _gem, "ldg": _ldg, "reliable": _reliable, "shift": _shift}
    search = makes[options.model_kind](options, grid)
    reader = search._base() if isinstance(search, GEMClassifierCV) else search
    rows = open_labelled(options).prepared_for(reader, fitted=False)
    check_output(options.output, files_of(rows))
    whole = gathered(rows, options.memory * 1e9, output)
    if whole is None:
        raise ValueError("--memory: expected rows that fit into it, since search reads them often")
    fit_whole(search, rows, whole)
    model = _best(search)
    keep_columns(model, rows, model.n_features_in_)
    save(model, options.output)
    table = _table(search)
    result = {
        "output": str(options.output),
        "estimator": type(model).__name__,
        "rows": rows.n_rows,
        "skipped": rows.n_skipped,
        **_chosen(search),
        "results": table,
        "seconds": time.perf_counter() - started,
    }
    output.result(result, _text(result))
    return 0


# ---- searches ------------------------------------------------------------------------------------


def _gem(options: SimpleNamespace, grid: dict[str, list[Any]]) -> Any:
    base = unfitted(options)
    grid = _known(base, grid)
    scoring = "error" if options.scoring is None else options.scoring
    return GEMClassifierCV(
        base,
        grid or None,
        cv=options.cv,
        scoring={"accuracy": "error"}.get(scoring, scoring),
        random_state=options.parameters.get("random_state", 0),
    )


def _ldg(options: SimpleNamespace, grid: dict[str, list[Any]]) -> Any:
    _refuse_scoring(options)
    if options.cv is not None:
        raise UsageError("--cv: expected none with --model ldg, which leaves rows out by itself")
    if foreign := sorted(set(grid) - set(OF_LDG)):
        raise UsageError(f"--grid: expected {', '.join(OF_LDG)} with --model ldg, got {foreign[0]}")
    model = unfitted(options)
    model.set_params(**grid)
    return model


def _reliable(options: SimpleNamespace, grid: dict[str, list[Any]]) -> Any:
    from eigenfeat.incomplete import ReliableClassifierCV

    _refuse_scoring(options)
    taus = grid.pop("reliability", None)
    grid = _known(unfitted(options), grid)
    candidates: dict[str, Any] = {}
    for params in ParameterGrid(grid):
        one = unfitted(options).set_params(**params, correct=False)
        name = ", ".join(f"{key}={value}" for key, value in params.items()) or "as given"
        candidates[name] = one
    return ReliableClassifierCV(
        candidates,
        tau=None if taus is None else sorted(taus),
        n_folds=options.cv or 5,
        n_threads=options.threads,
    )


def _shift(options: SimpleNamespace, grid: dict[str, list[Any]]) -> Any:
    from eigenfeat.maxmargin import MulticlassSVM

    _refuse_scoring(options)
    base = unfitted(options)
    grid = _known(base, grid)
    if not grid:
        raise UsageError("--grid: expected parameters with --model shift, got none")
    steps = make_pipeline(base, MulticlassSVM())
    named = {f"maxmarginshift__{name}": values for name, values in grid.items()}
    folds = StratifiedKFold(options.cv or 5, shuffle=True, random_state=0)
    return GridSearchCV(steps, named, cv=folds, error_score="raise")


def _known(base: Any, grid: dict[str, list[Any]]) -> dict[str, list[Any]]:
    """The grid by full names of parameters; UsageError if one is none of the model."""
    return {full_name(base, name, f"--grid {name}"): values for name, values in grid.items()}


def _refuse_scoring(options: SimpleNamespace) -> None:
    if options.scoring is not None:
        raise UsageError(f"--scoring: expected none with --model {options.model_kind}")


# ---- results -------------------------------------------------------------------------------------


def _best(search: Any) -> Any:
    best = getattr(search, "best_estimator_", search)
    return best[0] if hasattr(best, "steps") else best


def _table(search: Any) -> list[dict[str, Any]]:
    """Candidates with their scores, best first."""
    tried = search.cv_results_
    if "params" not in tried:  # LDG, which tries its parameters one after the other
        return [
            {"params": {name: plain(value)}, "score": float(score)}
            for name in OF_LDG
            if np.ndim(tried.get(f"{name}_accuracy", 0)) == 1
            for value, score in zip(tried[name], tried[f"{name}_accuracy"], strict=True)
        ]
    order = np.argsort(-np.nan_to_num(tried["mean_test_score"], nan=-np.inf), kind="stable")
    return [
        {
            "params": {_option(name): plain(value) for name, value in tried["params"][at].items()},
            "score": float(tried["mean_test_score"][at]),
            "deviation": float(tried["std_test_score"][at]),
        }
        for at in order
        if np.isfinite(tried["mean_test_score"][at])
    ]


def _chosen(search: Any) -> dict[str, Any]:
    if hasattr(search, "best_params_"):
        params = {_option(name): plain(value) for name, value in search.best_params_.items()}
        return {"best_params": params, "best_score": float(search.best_score_)}
    return {"best_params": {name: plain(getattr(search, f"{name}_")) for name in OF_LDG}}


def _option(name: str) -> str:
    """The name that the command line has for a parameter of a nested estimator."""
    part, _, own = name.rpartition("__")
    return own if part in ("maxmarginshift", "gem", "logit") else name


def _text(result: dict[str, Any]) -> str:
    def settings(params: Mapping[str, Any]) -> str:
        return ", ".join(f"{name}={value}" for name, value in params.items()) or "as given"

    score = f"; score {result['best_score']:.4f}" if "best_score" in result else ""
    lines = [
        f"{result['output']}: {result['estimator']}, {result['rows']:,} rows; "
        f"{settings(result['best_params'])}{score}; {result['seconds']:.1f} s"
    ]
    lines += [
        f"  {one['score']:.4f}  {settings(one['params'])}" for one in result["results"][:SHOWN]
    ]
    if len(result["results"]) > SHOWN:
        lines.append(f"  ... and {len(result['results']) - SHOWN} more; --json prints all")
    return "\n".join(lines)
