"""Predictions of samples by models that were fitted without them."""

from __future__ import annotations

import time
import warnings
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from numbers import Integral
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.base import clone
from sklearn.model_selection import KFold, ShuffleSplit, StratifiedKFold, StratifiedShuffleSplit
from sklearn.pipeline import Pipeline

from eigenfeat._base.types import Codes
from eigenfeat._base.validation import check_number, show
from eigenfeat.expansion.features import take_rows

__all__ = [*("HeldOut", "Part", "cross_predict", "held_out_parts", "origin", "target_numbers")]


@dataclass(frozen=True, eq=False)
class Part:
    """A model and the samples that were held out of its fit."""

    model: Any
    rows: Codes


@dataclass(frozen=True, eq=False)
class HeldOut:
    """Predictions of held-out samples, and the mean times of a fit and of its predictions."""

    rows: Codes  # ascending indices of the samples
    predicted: NDArray[Any]  # labels or numbers
    proba: NDArray[np.float64] | None  # probabilities of the classes of all samples
    parts: list[Part]
    fit_seconds: float
    predict_seconds: float


def held_out_parts(
    y: NDArray[Any],
    *,
    holdout: float | None = None,
    cv: int | None = None,
    random_state: int = 0,
    continuous: bool = False,
) -> list[tuple[Codes, Codes]]:
    """Indices of samples to fit on and to hold out, drawn at random and class by class.

    Either a share of the samples (`holdout`) is held out once, or each of `cv` folds. The labels y
    are numbers with `continuous`.
    """
    if (holdout is None) == (cv is None):
        raise ValueError("holdout: expected a share here or folds in cv, got both or neither")
    n = len(y)
    counts = Counter() if continuous else Counter(np.asarray(y).tolist())
    if counts and min(counts.values()) < 2:
        label = min(counts, key=counts.__getitem__)
        raise ValueError(
            f"{'cv' if holdout is None else 'holdout'}: expected two samples of each class, got "
            f"one of class {show(label)}"
        )
    if holdout is not None:
        if not 0 < check_number(holdout, "holdout") < 1:
            raise ValueError(f"holdout: expected a share between 0 and 1, got {holdout:g}")
        kind = ShuffleSplit if continuous else StratifiedShuffleSplit
        splitter: Any = kind(1, test_size=holdout, random_state=random_state)
    else:
        assert cv is not None
        most = max(counts.values(), default=n)
        if not isinstance(cv, Integral) or not 2 <= cv <= most:
            what = "samples" if continuous else "samples of the largest class"
            raise ValueError(
                f"cv: expected 2 to {most:,} folds, the number of {what}, got {show(cv)}"
            )
        kind = KFold if continuous else StratifiedKFold
        splitter = kind(cv, shuffle=True, random_state=random_state)
    try:
        with warnings.catch_warnings():  # of classes with fewer samples than folds
            warnings.filterwarnings("ignore", "The least populated class", UserWarning)
            return [(train, test) for train, test in splitter.split(np.zeros(n), y)]
    except ValueError as error:  # a share without a sample of each class
        raise ValueError(f"holdout: {error}") from None


def cross_predict(
    estimator: Any,
    X: Any,
    y: NDArray[Any],
    parts: Sequence[tuple[Codes, Codes]],
    sample_weight: NDArray[np.float64] | None = None,
    time_limit: float | None = None,
) -> HeldOut:
    """Fit a clone of an estimator for each of `held_out_parts`, and predict the held-out samples.

    A pipeline passes the weights to its last step. After `time_limit` seconds no further part is
    fitted. If a column of numbers has gaps in the held-out samples alone, the mean of the fitted
    samples replaces them, since a model may refuse gaps in columns that its fit found complete.
    """
    classes, begun = np.unique(y), time.perf_counter()
    found: list[Part] = []
    predictions, probabilities = [], []
    fit_seconds = predict_seconds = 0.0
    for train, test in parts:
        if found and time_limit is not None and time.perf_counter() - begun > time_limit:
            break
        weights = {}
        if sample_weight is not None:
            last = f"{estimator.steps[-1][0]}__" if isinstance(estimator, Pipeline) else ""
            weights = {f"{last}sample_weight": sample_weight[train]}
        given = take_rows(X, train)
        held = _without_new_gaps(given, take_rows(X, test))
        started = time.perf_counter()
        model = clone(estimator).fit(given, y[train], **weights)
        fitted = time.perf_counter()
        predictions.append(np.asarray(model.predict(held)))
        if callable(getattr(model, "predict_proba", None)):
            proba = np.zeros((len(test), len(classes)))
            proba[:, np.searchsorted(classes, model.classes_)] = model.predict_proba(held)
            probabilities.append(proba)
        fit_seconds += fitted - started
        predict_seconds += time.perf_counter() - fitted
        found.append(Part(model, test))
    rows = np.concatenate([part.rows for part in found])
    order = np.argsort(rows)
    return HeldOut(
        rows[order],
        np.concatenate(predictions)[order],
        np.concatenate(probabilities)[order] if probabilities else None,
        found,
        fit_seconds / len(found),
        predict_seconds / len(found),
    )


def _without_new_gaps(fitted: Any, held: Any) -> Any:
    """Held-out samples; means of `fitted` replace gaps in columns that are complete in `fitted`."""
    if hasattr(held, "isna"):  # a data frame
        new = held.isna().any() & ~fitted.isna().any()
        means = fitted.loc[:, new].select_dtypes("number").mean().astype(float)
        if not len(means):
            return held
        return held.astype(dict.fromkeys(means.index, float)).fillna(means.to_dict())
    if not isinstance(held, np.ndarray) or held.dtype.kind != "f":
        return held
    gaps = np.isnan(held)
    new = gaps & ~np.isnan(fitted).any(axis=0)
    return np.where(new, fitted.mean(axis=0), held) if new.any() else held


def target_numbers(y: Any) -> NDArray[np.float64]:
    """Targets of a regression as finite numbers."""
    try:
        numbers = np.asarray(y, dtype=np.float64)
    except (TypeError, ValueError):
        raise ValueError(f"y: expected numbers for a regression, got {show(y)}") from None
    if not np.isfinite(numbers).all():
        raise ValueError(f"y: expected finite numbers for a regression, got {show(y)}")
    return numbers


def origin(
    seen_in_fit: bool | None, holdout: float | None, cv: int | None, unit: str = "samples"
) -> tuple[str, str]:
    """Which samples figures come from, as a short name and as a sentence.

    `seen_in_fit` is None if it is not known whether the samples had a part in the model's fit;
    `unit` is what samples are called.
    """
    if holdout is not None:
        return "held out", (
            f"Figures come from {holdout:.0%} of the {unit}, predicted by a new fit of the model, "
            f"with its parameters, to the other {unit}."
        )
    if cv is not None:
        return "cross-validated", (
            f"Figures are cross-validated: the {unit} of each of {cv} folds are predicted by a new "
            f"fit of the model, with its parameters, to the {unit} of the other folds."
        )
    if seen_in_fit is None:
        return "not known", (
            f"Figures come from the saved model. Whether it was fitted to these {unit} is not "
            "known; if it was, the figures are too good."
        )
    if seen_in_fit:
        return "training", (
            f"Figures come from {unit} that the model was fitted to, and are too good."
        )
    return "not in the fit", (
        f"Figures come from {unit} that, as far as is known, had no part in the fit."
    )
