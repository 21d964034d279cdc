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
from eigenfeat._base.validation import check_number, check_whole, show
from eigenfeat.expansion.features import take_rows

__all__ = ["HeldOut", "Part", "cross_predict", "held_out_parts", "origin", "target_numbers"]


@dataclass(frozen=True, eq=False)
class Part:
    """A model and the samples that were held out of its fit."""

    model: Any
    rows: Codes  # indices of the samples


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

    Either a share of the samples (`holdout`) is held out once, or each of `cv` folds. With
    `continuous`, y are numbers instead of labels.
    """
    if holdout is not None and cv is not None:
        raise ValueError(f"cv: expected None with holdout, got {show(cv)}")
    n = len(y)
    counts = Counter() if continuous else Counter(np.asarray(y).tolist())
    if counts and min(counts.values()) < 2:
        label = min(counts, key=counts.__getitem__)
        raise ValueError(
            f"{'cv' if holdout is None else 'holdout'}: expected two samples of each class, got "
            f"one of class {show(label)}"
        )
    check_whole(random_state, "random_state", at_least=0, at_most=2**32 - 1)
    splitter: Any
    if holdout is not None:
        if not 0 < check_number(holdout, "holdout") < 1:
            raise ValueError(f"holdout: expected a share between 0 and 1, got {holdout:g}")
        kind = ShuffleSplit if continuous else StratifiedShuffleSplit
        splitter = kind(1, test_size=holdout, random_state=random_state)
        try:
            return list(splitter.split(np.zeros(n), y))
        except ValueError:
            what = "samples" if continuous else "samples of each class"
            raise ValueError(
                f"holdout: expected a share that leaves {what} on both sides, got {holdout:g} of "
                f"{n:,} samples"
            ) from None
    max_folds = max(counts.values(), default=n)
    if not isinstance(cv, Integral) or not 2 <= cv <= max_folds:
        what = "samples" if continuous else "samples of the largest class"
        raise ValueError(
            f"cv: expected 2 to {max_folds:,} folds, the number of {what}, got {show(cv)}"
        )
    fold_kind = KFold if continuous else StratifiedKFold
    splitter = fold_kind(cv, shuffle=True, random_state=random_state)
    with warnings.catch_warnings():  # about classes with fewer samples than folds
        warnings.filterwarnings("ignore", "The least populated class", UserWarning)
        return list(splitter.split(np.zeros(n), y))


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
    fitted. A model may refuse missing numbers in columns that were complete in its fit: such
    numbers are replaced by the mean of the column in the fit.
    """
    classes, begun = np.unique(y), time.perf_counter()
    fits: list[Part] = []
    predictions, probabilities = [], []
    fit_seconds = predict_seconds = 0.0
    for train, test in parts:
        if fits and time_limit is not None and time.perf_counter() - begun > time_limit:
            break
        weights = {}
        if sample_weight is not None:
            last = f"{estimator.steps[-1][0]}__" if isinstance(estimator, Pipeline) else ""
            weights = {f"{last}sample_weight": sample_weight[train]}
        X_train = take_rows(X, train)
        X_test = _without_new_gaps(X_train, take_rows(X, test))
        started = time.perf_counter()
        model = clone(estimator).fit(X_train, y[train], **weights)
        fitted = time.perf_counter()
        predictions.append(np.asarray(model.predict(X_test)))
        if callable(getattr(model, "predict_proba", None)):
            proba = np.zeros((len(test), len(classes)))
            proba[:, np.searchsorted(classes, model.classes_)] = model.predict_proba(X_test)
            probabilities.append(proba)
        fit_seconds += fitted - started
        predict_seconds += time.perf_counter() - fitted
        fits.append(Part(model, test))
    rows = np.concatenate([part.rows for part in fits])
    order = np.argsort(rows)
    return HeldOut(
        rows[order],
        np.concatenate(predictions)[order],
        np.concatenate(probabilities)[order] if probabilities else None,
        fits,
        fit_seconds / len(fits),
        predict_seconds / len(fits),
    )


def _without_new_gaps(X_train: Any, X_test: Any) -> Any:
    """Held-out samples; training means replace NaN in columns without NaN in training."""
    if hasattr(X_test, "isna"):  # a data frame
        new = X_test.isna().any() & ~X_train.isna().any()
        means = X_train.loc[:, new].select_dtypes("number").mean().astype(float)
        if not len(means):
            return X_test
        return X_test.astype(dict.fromkeys(means.index, float)).fillna(means.to_dict())
    if not isinstance(X_test, np.ndarray) or X_test.dtype.kind != "f":
        return X_test
    new = np.isnan(X_test) & ~np.isnan(X_train).any(axis=0)
    return np.where(new, X_train.mean(axis=0), X_test) if new.any() else X_test


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
    """The samples that measures come from, as a short name and as a sentence.

    `seen_in_fit` is None if it is not known whether the samples had a part in the model's fit;
    `unit` is the noun for samples.
    """
    if holdout is not None:
        return "held out", (
            f"Measures come from {holdout:.0%} of the {unit}, predicted by a new fit of the model, "
            f"with its parameters, to the other {unit}."
        )
    if cv is not None:
        return "cross-validated", (
            f"Measures are cross-validated: the {unit} of each of {cv} folds are predicted by a "
            f"new fit of the model, with its parameters, to the {unit} of the other folds."
        )
    if seen_in_fit is None:
        return "not known", (
            f"Measures come from the saved model. Whether it was fitted to these {unit} is not "
            "known; if it was, they are too good."
        )
    if seen_in_fit:
        return "training", (
            f"Measures come from {unit} that the model was fitted to, and are too good."
        )
    return "not in the fit", (
        f"Measures come from {unit} that, as far as is known, had no part in the fit."
    )
