"""Table 1 of the paper on max-margin data shifting: PCA of few rows of each of many people."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from sklearn.discriminant_analysis import LinearDiscriminantAnalysis
from sklearn.model_selection import StratifiedKFold

from bench.papers.mmds_data import Split, extractor, few_of_each
from bench.papers.mmds_shifting import Shifter, read_accuracy
from bench.papers.protocol import Job, Rows, read_rows

FACE_SPLITS, QUICK_FACE_SPLITS = 10, 2
FACE_COMPONENTS = 10
FACE_C = (10.0, 1000.0)  # few rows of few differences
FACE_SCALES = (0.3, 0.6, 1.0, 2.0, 4.0)
MOST_FOLDS = 5

Array = NDArray[np.float32]


class Choice(NamedTuple):
    """How rows are prepared (by number), the SVM's C, and how far rows are moved."""

    kind: int
    C: float
    scale: float


def columns(X: Array) -> Array:
    """Standardised; rows of length 1 on average."""
    deviation = X.std(axis=0)
    scaled: Array = (X - X.mean(axis=0)) / np.where(deviation > 0, deviation, 1)
    return scaled / np.sqrt(np.float32(X.shape[1]))


def pixels(X: Array) -> Array:
    """As they are; rows of length 1 on average."""
    return X / np.sqrt((X.astype(np.float64) ** 2).sum(axis=1).mean()).astype(np.float32)


def unit(X: Array) -> Array:
    """Every row of length 1: lights differ."""
    return X / np.linalg.norm(X, axis=1, keepdims=True)


def by_faces(
    job: Job, outcome: Any, *, arrays: tuple[str, str], per_class: int, ways: Sequence[Any]
) -> None:
    """Accuracies of ten principal components of rows and of moved rows, over random splits.

    What is done to the rows before, the SVM's C and the size of the moves are chosen by folds of
    the training rows, as many as a class has rows and at most five.
    """
    rows = read_rows(job.folder / job.problem.file, *arrays)
    kinds = [Rows(way(rows.X), rows.y) for way in ways]
    splits = QUICK_FACE_SPLITS if job.context.quick else FACE_SPLITS
    threads = job.context.threads
    found = np.array([_one_split(kinds, per_class, seed, threads) for seed in range(splits)])
    outcome.original, outcome.shifted = (float(one) for one in np.mean(found[:, :2], axis=0))
    outcome.scale = float(np.median(found[:, 2]))
    outcome.deviation = float(np.std(found[:, 1], ddof=1))


def faces_by_lda(
    job: Job, outcome: Any, *, arrays: tuple[str, str], per_class: int, ways: Sequence[Any]
) -> None:
    """Accuracies of ten components of linear discriminant analysis, by the same splits.

    What is done to the rows before is chosen by folds of the training rows; the first where a
    fold has one row of each class.
    """
    rows = read_rows(job.folder / job.problem.file, *arrays)
    kinds = [Rows(way(rows.X), rows.y) for way in ways]
    splits = QUICK_FACE_SPLITS if job.context.quick else FACE_SPLITS
    found = []
    for seed in range(splits):
        parts = [few_of_each(one, per_class, seed) for one in kinds]
        means = [
            np.mean([_by_lda(part, job.context.threads) for part in _folds(split.train, seed)])
            for split in parts
        ]
        found.append(_by_lda(parts[int(np.argmax(np.nan_to_num(means)))], job.context.threads))
    outcome.original = outcome.shifted = float(np.mean(found))  # supervised: rows are not moved
    outcome.scale, outcome.deviation = 0.0, float(np.std(found, ddof=1))


def _by_lda(split: Split, threads: int | None) -> float:
    train, test = centred(split)
    if len(train) == len(np.unique(train.y)):
        return np.nan  # nothing varies within a class
    count = min(FACE_COMPONENTS, len(np.unique(train.y)) - 1)
    lda = LinearDiscriminantAnalysis(n_components=count).fit(train.X, train.y)
    return read_accuracy(lda.transform, train, test, threads)


def _one_split(
    kinds: list[Rows], per_class: int, seed: int, threads: int | None
) -> tuple[float, float, float]:
    """Accuracy of PCA, of PCA of moved rows, and how far these were moved."""
    splits = [few_of_each(rows, per_class, seed) for rows in kinds]
    scores: dict[Choice, list[float]] = {}
    for kind, split in enumerate(splits):
        for part in _folds(split.train, seed):
            for choice, score in _scores(kind, part, threads):
                scores.setdefault(choice, []).append(score)
    # The best mean; of equal ones that with the smallest move.
    means = {choice: (float(np.mean(one)), -choice.scale) for choice, one in scores.items()}
    still = max((choice for choice in means if choice.scale == 0), key=means.__getitem__)
    moved = max((choice for choice in means if choice.scale > 0), key=means.__getitem__)
    accuracies = []
    for choice in (still, moved):
        train, test = centred(splits[choice.kind])
        shifter = Shifter(train, choice.C, threads)
        accuracies.append(shifter.accuracy(_ten(), choice.scale, test))
    return accuracies[0], accuracies[1], moved.scale


def _scores(kind: int, part: Split, threads: int | None) -> Iterator[tuple[Choice, float]]:
    train, held = centred(part)
    for number, C in enumerate(FACE_C):
        shifter = Shifter(train, C, threads)
        still = () if number else (0.0,)  # rows that stay do not depend on C
        for scale in (*still, *FACE_SCALES):
            yield Choice(kind, C, scale), shifter.accuracy(_ten(), scale, held)


def _folds(rows: Rows, seed: int) -> Iterator[Split]:
    fewest = int(np.unique(rows.y, return_counts=True)[1].min())
    folds = StratifiedKFold(min(max(fewest, 2), MOST_FOLDS), shuffle=True, random_state=seed)
    for fit, held in folds.split(rows.y[:, None], rows.y):
        yield Split(rows[fit], rows[held])


def _ten() -> Any:
    return extractor("PCA", FACE_COMPONENTS, quick=False)


def centred(split: Split) -> tuple[Rows, Rows]:
    mean = split.train.X.mean(axis=0)
    return Rows(split.train.X - mean, split.train.y), Rows(split.test.X - mean, split.test.y)
