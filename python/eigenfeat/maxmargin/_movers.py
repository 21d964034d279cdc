"""The three ways in which an SVM moves rows, behind one interface."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.utils import check_random_state

from eigenfeat._base import threads
from eigenfeat.maxmargin._corruption import corrupted_copies
from eigenfeat.maxmargin._joint import JointMoves, spread

__all__ = ["CorruptedRows", "JointlyMoved", "MovedRows"]

COARSE_TOL = 1e-4  # of the joint minimisations by which scales are compared


class MovedRows:
    """Samples that the SVM moves once: equation 9.

    Parameters
    ----------
    X : (n, d) array
        Samples.
    y : (n,) array
        Labels.
    weight : (n,) array
        Of the samples' losses; 0 for samples without a class, which stay. If all are 0, no sample
        moves.
    svm : MulticlassSVM
        Fitted to the known samples.
    learn : callable
        Fits the extractor to moved samples.
    """

    def __init__(
        self,
        X: NDArray[Any],
        y: NDArray[Any],
        weight: NDArray[np.float64],
        svm: Any,
        learn: Callable[[NDArray[Any]], Any],
    ) -> None:
        self.X, self.y, self.svm, self._learn = X, y, svm, learn
        self.known = weight > 0
        self.weight = weight[self.known]
        self.moves = np.zeros(X.shape)
        self.unit = 0.0
        labelled = X[self.known]
        if len(labelled):
            self.moves[self.known] = svm.dual_coef_ @ svm.class_coef_
            self.around = max(spread(labelled - labelled.mean(axis=0)), 1e-300)
            self.unit = spread(self.moves[self.known]) / self.around

    def sigma2_of(self, scale: float) -> float:
        """The sigma2 of moves of this size, relative to the labelled rows about their mean."""
        return scale / self.unit if self.unit > 0 else 0.0

    def rows(self, sigma2: float) -> NDArray[Any]:
        """The moved rows, of the type of the rows."""
        return self._moved_by(sigma2)

    def _moved_by(self, factor: float) -> NDArray[Any]:
        with np.errstate(over="ignore", invalid="ignore"):
            return (self.X + factor * self.moves).astype(self.X.dtype, copy=False)

    def features(self, sigma2: float) -> Any:
        """An extractor of the moved rows."""
        return self._learn(self.rows(sigma2))

    def relative_size(self, sigma2: float) -> float:
        """Size of the moves at the sigma2 whose rows were asked for last."""
        return sigma2 * self.unit


class JointlyMoved(MovedRows):
    """Rows that move together with the SVM: equation 7."""

    def __init__(self, *arguments: Any, max_iter: int, tol: float) -> None:
        super().__init__(*arguments)
        self.joint: JointMoves | None = None
        if self.unit > 0:
            n_threads = threads.resolve(self.svm.n_threads)
            X, y = self.X[self.known], self.y[self.known]
            self.joint = JointMoves(X, y, self.svm, max_iter, tol, n_threads, self.weight)
        self._path: list[tuple[float, float]] = []

    def sigma2_of(self, scale: float) -> float:
        """The sigma2 of moves of about this size: the search goes on from the last one's."""
        if self.joint is None or scale == 0.0:
            return 0.0
        if self._path and self._path[-1][0] == scale:
            return self._path[-1][1]
        # Moves of separable rows grow with the fourth root of sigma2.
        near = self._path[-1] if self._path else (0.08, 1.0 / self.unit)
        start = float(near[1] * np.clip((scale / near[0]) ** 4, 1e-12, 1e12))
        if not self._path:
            self.joint.start(self.svm.class_coef_, self.svm.dual_coef_)
        result = self.joint.reach(scale * self.around, start)
        sigma2 = self.joint.sigma2 if result else 0.0
        self._path.append((scale, sigma2))
        return sigma2

    def rows(self, sigma2: float) -> NDArray[Any]:
        """Rows moved from the start that the SVM is, whatever was asked for before."""
        self.moves[self.known] = 0.0
        if self.joint is not None and sigma2 > 0:
            self.joint.start(self.svm.class_coef_, self.svm.dual_coef_)
            self.joint.minimise(sigma2)
            self.moves[self.known] = self.joint.moves
        return self._moved_by(1.0)

    def features(self, sigma2: float) -> Any:
        """An extractor of rows moved as the search for `sigma2` left them."""
        if self.joint is None or not self._path or self._path[-1][1] != sigma2 or sigma2 == 0.0:
            return super().features(sigma2)
        self.moves[self.known] = self.joint.moves
        return self._learn(self._moved_by(1.0))

    def relative_size(self, sigma2: float) -> float:
        return spread(self.moves[self.known]) / self.around if self.unit > 0 else 0.0


class CorruptedRows(MovedRows):
    """Several copies of every row, of which those with a class are corrupted: equations 4 and 5."""

    def __init__(self, *arguments: Any, n_copies: int, random_state: Any) -> None:
        super().__init__(*arguments)
        self._n_copies = n_copies
        self._seed = int(check_random_state(random_state).randint(2**31))
        self._size = 0.0

    def sigma2_of(self, scale: float) -> float:
        """The variance of noise of this size."""
        if self.unit == 0.0:
            return 0.0
        return float((scale * self.around) ** 2 / self.X.shape[1])

    def rows(self, sigma2: float) -> NDArray[Any]:
        """Rows (n * n_copies, d), those of one row together."""
        copies = np.repeat(self.X[:, None, :], self._n_copies, axis=1)
        self._size = 0.0
        if self.unit > 0 and sigma2 > 0:
            X, y, n_threads = self.X[self.known], self.y[self.known], self.svm.n_threads
            random = np.random.RandomState(self._seed)
            given = (X, y, self.svm, sigma2, self._n_copies, random, threads.resolve(n_threads))
            made = corrupted_copies(*given, self.weight)
            self._size = spread((made - X[:, None, :]).reshape(-1, X.shape[1])) / self.around
            copies[self.known] = made
        return copies.reshape(-1, self.X.shape[1])

    def relative_size(self, sigma2: float) -> float:
        return self._size
