"""Results of searches in the form of scikit-learn's: a column a key, a candidate an entry."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

__all__ = ["cv_results"]


def cv_results(
    params: Sequence[dict[str, object]], scores: NDArray[np.float64], **columns: ArrayLike
) -> dict[str, Any]:
    """Columns for `cv_results_`, as of ``GridSearchCV``.

    Parameters
    ----------
    params : m mappings of names to values
        The candidates.
    scores : (m, s) array
        Their scores on s splits, the larger the better; NaN where a fit failed.
    columns : (m,) arrays
        Others, by name.

    Returns
    -------
    dict
        "params"; "param_NAME", lists, since files of models hold no masked arrays;
        "split0_test_score" ...;
        "mean_test_score" and "std_test_score"; "rank_test_score", from 1, of equals the same.
    """
    found: dict[str, Any] = {}
    for name in sorted({name for one in params for name in one}):
        found[f"param_{name}"] = [one.get(name) for one in params]
    found["params"] = [dict(one) for one in params]
    for split in range(scores.shape[1]):
        found[f"split{split}_test_score"] = scores[:, split]
    means = scores.mean(axis=1)
    worst = np.where(np.isnan(means), -np.inf, means)
    found["mean_test_score"], found["std_test_score"] = means, scores.std(axis=1)
    ranks = 1 + (worst[:, None] < worst[None, :]).sum(axis=1)
    return found | {"rank_test_score": ranks.astype(np.int32)} | columns
