"""Early classifiers of this package with the interface of aeon (extra `aeon`).

Importing this module requires aeon; nothing else in the package imports it.
"""

from __future__ import annotations

from typing import Any, ClassVar

import numpy as np
from aeon.classification.early_classification import BaseEarlyClassifier
from numpy.typing import NDArray
from sklearn.base import clone
from sklearn.discriminant_analysis import LinearDiscriminantAnalysis

from eigenfeat._base.types import Estimator
from eigenfeat.incomplete.reliable import ReliableClassifier
from eigenfeat.incomplete.scores import harmonic_mean

__all__ = ["AeonEarlyClassifier"]

_Array = NDArray[np.float64]

SEEN, DECIDED, CODE, TIME = range(4)


class AeonEarlyClassifier(BaseEarlyClassifier):
    """Early classifier of this package with the interface of aeon.

    Series have one channel and equal lengths. `predict` evaluates every time, so that calls with
    longer and longer series decide as `predict_early` does.

    Parameters
    ----------
    estimator : estimator or None, default=None
        Estimator with `fit` and a `predict_early` that uses only the samples up to each time:
        `ReliableClassifier`, `ReliableClassifierCV`, `MinimumCostClassifier`, `ECTS`,
        `FixedTime`, `SPRT`. It is cloned. None: `ReliableClassifier` with shrinkage LDA.

    Attributes
    ----------
    estimator_ : estimator
        The fitted estimator.
    state_info : (n, 4) array of int
        State after the last call: number of samples seen, whether decided, index of the class, and
        number of samples at the decision.

    Raises
    ------
    ValueError
        If series are longer than those of `fit`, or updates are not the undecided series, in their
        order, with more samples than before.
    """

    _tags: ClassVar[dict[str, Any]] = {"X_inner_type": "numpy3D", "capability:multivariate": False}

    def __init__(self, estimator: Estimator | None = None) -> None:
        self.estimator = estimator
        super().__init__()

    def _fit(self, X: Any, y: Any) -> AeonEarlyClassifier:
        rule = LinearDiscriminantAnalysis(solver="lsqr", shrinkage="auto")
        given = ReliableClassifier(rule) if self.estimator is None else clone(self.estimator)
        self.estimator_ = given.fit(_rows_of(X), y)
        self._length = X.shape[2]
        return self

    def _predict(self, X: Any) -> tuple[NDArray[Any], NDArray[np.bool_]]:
        return self._labels(self._evaluated(X, None)[0])

    def _update_predict(self, X: Any) -> tuple[NDArray[Any], NDArray[np.bool_]]:
        return self._labels(self._evaluated(X, self.state_info)[0])

    def _predict_proba(self, X: Any) -> tuple[_Array, NDArray[np.bool_]]:
        return self._probabilities(*self._evaluated(X, None))

    def _update_predict_proba(self, X: Any) -> tuple[_Array, NDArray[np.bool_]]:
        return self._probabilities(*self._evaluated(X, self.state_info))

    def _score(self, X: Any, y: Any) -> tuple[float, float, float]:
        labels, _ = self._predict(X)
        earliness = float(self.state_info[:, TIME].mean()) / self._length
        accuracy = float(np.mean(labels == np.asarray(y)))
        return harmonic_mean(accuracy, earliness), accuracy, earliness

    def _evaluated(self, X: Any, before: Any) -> tuple[NDArray[np.int64], _Array]:
        """The state, which is stored, and whether series are decided."""
        rows = _rows_of(X)
        seen = rows.shape[1]
        if seen > self._length:
            raise ValueError(f"X: expected at most {self._length} samples, got {seen}")
        if before is not None:
            left = before[before[:, DECIDED] == 0]
            if len(left) != len(rows) or (len(left) and seen <= left[0, SEEN]):
                raise ValueError(
                    f"X: expected the {len(left)} undecided series with more samples than before, "
                    f"got {len(rows)} of {seen}"
                )
        # What is not known yet has no part in decisions that are made before.
        padding = np.repeat(rows[:, -1:], self._length - seen, axis=1)
        early = self.estimator_.predict_early(np.hstack([rows, padding]))
        decided = np.asarray(early.time) <= seen
        state = np.zeros((len(rows), 4), dtype=np.int64)
        state[:, SEEN], state[:, DECIDED] = seen, decided
        state[:, CODE] = np.searchsorted(self.classes_, early.label)
        state[:, TIME] = np.where(decided, early.time, 0)
        self.state_info = state
        return state, np.asarray(getattr(early, "reliability", np.ones(len(rows))))

    def _labels(self, state: NDArray[np.int64]) -> tuple[NDArray[Any], NDArray[np.bool_]]:
        decided = state[:, DECIDED] == 1
        named = np.asarray(self.classes_)[state[:, CODE]]
        if not decided.all():  # aeon's mark, in a type that holds it
            named = np.where(decided, named, np.array(-1, dtype=np.int64).astype(named.dtype))
        return named, decided

    def _probabilities(
        self, state: NDArray[np.int64], reliability: _Array
    ) -> tuple[_Array, NDArray[np.bool_]]:
        count = len(self.classes_)
        own = np.maximum(reliability, 1 / count)[:, None]
        chosen = np.eye(count)[state[:, CODE]] > 0
        out = np.where(chosen, own, (1 - own) / max(count - 1, 1))
        decided = state[:, DECIDED] == 1
        return np.where(decided[:, None], out, -1.0), decided

    @classmethod
    def _get_test_params(cls, parameter_set: str = "default") -> Any:
        from eigenfeat.incomplete.ects import ECTS

        return [{}, {"estimator": ECTS()}] if parameter_set == "default" else {}


def _rows_of(X: Any) -> _Array:
    return np.ascontiguousarray(X[:, 0], dtype=np.float64)
