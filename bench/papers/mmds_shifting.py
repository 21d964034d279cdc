"""How rows are moved and read in the experiments on max-margin data shifting."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.model_selection import StratifiedShuffleSplit

from bench.papers.mmds_data import SEED
from bench.papers.protocol import Rows
from eigenfeat.maxmargin import MulticlassSVM

READ_C = 1.0  # of the SVM that reads the features
TOLERANCE, EPOCHS = 1e-2, 60  # also of the one that moves: the paper's stops at a fixed number, too
HELD_OUT = 0.2
FEW_ROWS, SPLITS_OF_FEW = 1_000, 6  # below so many rows one held-out part would say too little

Learn = Callable[[], Any]
Features = Callable[[NDArray[Any]], NDArray[Any]]


class Shifter:
    """Rows, and how an SVM moves them: fitted once, for every extractor and scale."""

    def __init__(self, rows: Rows, C: float, threads: int | None) -> None:
        self.rows, self.threads = rows, threads
        self.svm = _svm(rows.X, rows.y, C, threads)
        self.moves = (self.svm.dual_coef_ @ self.svm.class_coef_).astype(rows.X.dtype)
        spread = np.linalg.norm(rows.X - rows.X.mean(axis=0))
        self.unit = float(np.linalg.norm(self.moves) / spread)

    def moved(self, scale: float) -> NDArray[Any]:
        """Rows moved so far, relative to their spread."""
        if scale == 0.0 or self.unit == 0.0:
            return self.rows.X
        return self.rows.X + self.rows.X.dtype.type(scale / self.unit) * self.moves

    def accuracy(self, extractor: Any, scale: float, test: Rows) -> float:
        """Of a linear SVM on features of the rows as they are, in percent."""
        extractor.fit(self.moved(scale))
        return read_accuracy(extractor.transform, self.rows, test, self.threads)


def read_accuracy(features: Features, train: Rows, test: Rows, threads: int | None) -> float:
    """Accuracy of a linear SVM on standardised features, in percent."""
    known, new = features(train.X), features(test.X)
    mean, deviation = known.mean(axis=0), known.std(axis=0)
    deviation[deviation == 0] = 1
    model = _svm((known - mean) / deviation, train.y, READ_C, threads)
    return 100.0 * float(model.score((new - mean) / deviation, test.y))


Parts = Sequence[tuple[Shifter, Rows]]


def _svm(X: NDArray[Any], y: NDArray[np.int64], C: float, threads: int | None) -> MulticlassSVM:
    return MulticlassSVM(C=C, tol=TOLERANCE, max_iter=EPOCHS, n_threads=threads).fit(X, y)


def held_out(rows: Rows, C: float, threads: int | None) -> Parts:
    """Shifters of parts of the training rows, and the rows that were kept from them."""
    n = SPLITS_OF_FEW if len(rows) < FEW_ROWS else 1
    splitter = StratifiedShuffleSplit(n, test_size=HELD_OUT, random_state=SEED)
    splits = splitter.split(rows.y[:, None], rows.y)
    return [(Shifter(rows[train], C, threads), rows[held]) for train, held in splits]


def scores_of(parts: Parts, make: Learn, scale: float) -> NDArray[np.float64]:
    """Accuracies on held-out rows, one a split."""
    return np.array([shifter.accuracy(make(), scale, held) for shifter, held in parts])


def chosen_move(
    parts_of: Mapping[float, Parts], make: Learn, scales: Sequence[float]
) -> tuple[float, float]:
    """The SVM's C and the scale that are best on held-out rows; a scale of 0 for none.

    Rows stay unless the mean gain over that exceeds twice its standard error.
    """
    still = scores_of(next(iter(parts_of.values())), make, 0.0)
    tried = {
        (C, scale): scores_of(parts, make, scale)
        for C, parts in parts_of.items()
        for scale in scales
    }
    (C, scale), best = max(tried.items(), key=lambda one: float(one[1].mean()))
    gains = best - still
    error = gains.std(ddof=1) / np.sqrt(len(gains)) if len(gains) > 1 else 0.0
    return (C, scale) if gains.mean() > 2 * error else (C, 0.0)
