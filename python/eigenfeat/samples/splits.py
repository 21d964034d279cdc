"""Cross-validation: checked splits, and results in scikit-learn's form."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from numbers import Integral
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.model_selection import check_cv

from eigenfeat._base.types import Codes, Labels, Rows
from eigenfeat._base.validation import show

__all__ = ["checked_splits", "cv_results"]

_EXPECTED = "a number of folds, a splitter, or pairs of sample numbers (train, held out)"


def checked_splits(cv: Any, X: Rows, y: Labels) -> Iterator[tuple[Codes, Codes]]:
    """Yield the indices of training and held-out samples of each split.

    `cv` is a number of folds, a splitter, or pairs of indices or masks, as in scikit-learn. Errors
    name `cv`.
    """
    if isinstance(cv, Integral):
        if not 2 <= int(cv) <= len(y):
            raise ValueError(
                f"cv: expected 2 to {len(y)} folds, the number of samples, got {show(cv)}"
            )
    elif not hasattr(cv, "split") or isinstance(cv, str):
        cv = _pairs(cv, len(y))
    try:
        yield from check_cv(cv, y, classifier=True).split(X, y)
    except ValueError as error:
        raise ValueError(f"cv: expected {_EXPECTED}, got {show(cv)}: {error}") from None


def _pairs(cv: Any, n: int) -> list[tuple[Codes, Codes]]:
    """Convert pairs of masks or of indices, which may be negative, to pairs of indices."""
    numbers = np.arange(n)

    def chosen(part: Any) -> Codes:
        part = np.asarray(part)
        return numbers[part if part.size else part.astype(np.intp)].ravel()

    try:
        pairs = [(chosen(train), chosen(held_out)) for train, held_out in cv]
    except (TypeError, ValueError, IndexError) as error:
        raise ValueError(f"cv: expected {_EXPECTED}, got {show(cv)}: {error}") from None
    if not pairs:
        raise ValueError(f"cv: expected {_EXPECTED}, got {show(cv)}")
    return pairs


def cv_results(
    params: Sequence[dict[str, object]], scores: NDArray[np.float64], **columns: ArrayLike
) -> dict[str, Any]:
    """Columns of `cv_results_` as in ``GridSearchCV``, followed by `columns`.

    `scores` (m, s) of m candidates on s splits: larger is better, NaN is a failed fit.
    Parameters are lists, because files of models cannot contain masked arrays.
    """
    result: dict[str, Any] = {}
    for name in sorted({name for candidate in params for name in candidate}):
        result[f"param_{name}"] = [candidate.get(name) for candidate in params]
    result["params"] = [dict(candidate) for candidate in params]
    for split in range(scores.shape[1]):
        result[f"split{split}_test_score"] = scores[:, split]
    means = scores.mean(axis=1)
    ranked = np.where(np.isnan(means), -np.inf, means)
    result["mean_test_score"], result["std_test_score"] = means, scores.std(axis=1)
    ranks = 1 + (ranked[:, None] < ranked[None, :]).sum(axis=1)
    return result | {"rank_test_score": ranks.astype(np.int32)} | columns
