"""Table 1 of the paper on max-margin data shifting: PCA of few faces of each of many people."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from sklearn.model_selection import StratifiedKFold

from bench.papers import mmds_data, mmds_settings
from bench.papers.mmds_shifting import Outcome, Shifter
from bench.papers.protocol import Context, Rows, read_arrays

__all__ = ["measure"]

MOST_FOLDS = 5
Prepare = Callable[[NDArray[np.float32]], NDArray[np.float32]]


class Choice(NamedTuple):
    """How rows are prepared (by number), the SVM's C, and how far rows are moved."""

    kind: int
    C: float
    scale: float


def _columns(X: NDArray[np.float32]) -> NDArray[np.float32]:
    """Standardised; rows of length 1 on average."""
    deviation = X.std(axis=0)
    centred = X - X.mean(axis=0)
    scaled: NDArray[np.float32] = centred / np.where(deviation > 0, deviation, 1)
    return scaled / np.sqrt(np.float32(X.shape[1]))


def _pixels(X: NDArray[np.float32]) -> NDArray[np.float32]:
    """As they are; rows of length 1 on average."""
    return X / np.sqrt((X.astype(np.float64) ** 2).sum(axis=1).mean()).astype(np.float32)


def _unit(X: NDArray[np.float32]) -> NDArray[np.float32]:
    """Every row of length 1: lights differ."""
    return X / np.linalg.norm(X, axis=1, keepdims=True)


def measure(faces: mmds_settings.Faces, folder: Path, context: Context) -> Outcome:
    """Accuracies of ten principal components of rows and of moved rows, over random splits.

    What is done to the rows before, the SVM's C and the size of the moves are chosen by folds of
    the training rows, as many as a class has rows and at most five.
    """
    X, y = read_arrays(folder / faces.file, *faces.arrays)
    ways: tuple[Prepare, ...] = (_columns,) if faces.paper is None else (_pixels, _unit)
    kinds = [Rows(way(X.astype(np.float32)), y.astype(np.int64)) for way in ways]
    full = mmds_settings.FACE_SPLITS
    splits = mmds_settings.QUICK_FACE_SPLITS if context.quick else full
    found = np.array(
        [_one_split(kinds, faces.per_class, seed, context.threads) for seed in range(splits)]
    )
    return Outcome(
        "Table 1",
        faces.name,
        "PCA",
        mmds_settings.FACE_COMPONENTS,
        float(np.mean(found[:, 0])),
        float(np.mean(found[:, 1])),
        float(np.median(found[:, 2])),
        paper_original=faces.paper[0] if faces.paper else None,
        paper_shifted=faces.paper[1] if faces.paper else None,
        deviation=float(np.std(found[:, 1], ddof=1)),
    )


def _one_split(
    kinds: list[Rows], per_class: int, seed: int, threads: int | None
) -> tuple[float, float, float]:
    """Accuracy of PCA, of PCA of moved rows, and how far these were moved."""
    splits = [mmds_data.few_of_each(rows, per_class, seed) for rows in kinds]
    scores: dict[Choice, list[float]] = {}
    for kind, split in enumerate(splits):
        for part in _folds(split.train, seed):
            for choice, score in _scores(kind, part, threads):
                scores.setdefault(choice, []).append(score)
    means = {choice: float(np.mean(values)) for choice, values in scores.items()}
    still = _best({choice: mean for choice, mean in means.items() if choice.scale == 0})
    moved = _best({choice: mean for choice, mean in means.items() if choice.scale > 0})
    accuracies = []
    for choice in (still, moved):
        train, test = _centred(splits[choice.kind])
        shifter = Shifter(train, choice.C, threads)
        accuracies.append(shifter.accuracy(_extractor(), choice.scale, test))
    return accuracies[0], accuracies[1], moved.scale


def _best(means: dict[Choice, float]) -> Choice:
    """The choice with the best mean; of equal ones that with the smallest move."""
    return max(means, key=lambda choice: (means[choice], -choice.scale))


def _scores(
    kind: int, part: mmds_data.Split, threads: int | None
) -> Iterator[tuple[Choice, float]]:
    train, held = _centred(part)
    for number, C in enumerate(mmds_settings.FACE_C):
        shifter = Shifter(train, C, threads)
        still = () if number else (0.0,)  # rows that stay do not depend on C
        for scale in (*still, *mmds_settings.FACE_SCALES):
            yield Choice(kind, C, scale), shifter.accuracy(_extractor(), scale, held)


def _folds(rows: Rows, seed: int) -> Iterator[mmds_data.Split]:
    fewest = int(np.unique(rows.y, return_counts=True)[1].min())
    folds = StratifiedKFold(min(max(fewest, 2), MOST_FOLDS), shuffle=True, random_state=seed)
    for fit, held in folds.split(rows.y[:, None], rows.y):
        yield mmds_data.Split(rows[fit], rows[held])


def _extractor() -> Any:
    return mmds_data.extractor("PCA", mmds_settings.FACE_COMPONENTS, quick=False)


def _centred(split: mmds_data.Split) -> tuple[Rows, Rows]:
    mean = split.train.X.mean(axis=0)
    return Rows(split.train.X - mean, split.train.y), Rows(split.test.X - mean, split.test.y)
