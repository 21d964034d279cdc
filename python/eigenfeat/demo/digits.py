"""The demonstration: four representations of real digits under one linear classifier."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from eigenfeat._base.types import Floats
from eigenfeat.demo.datasets import Images, Split, random_splits
from eigenfeat.demo.pictures import draw_errors, save_pictures
from eigenfeat.gem.gem import GEM

Array = NDArray[np.float64]
Features = tuple[Floats, Floats]

PENALTIES = (1e-3, 1e-2, 1e-1, 1.0)  # C of the classifier: every method chooses out of these
TEST_SHARE = 0.4
N_DIRECTIONS = 5  # a pair; with 90 pairs, two half waves and three powers: 2,700 columns
FIGURE_PAIRS = ((3, 2), (8, 5), (3, 5), (8, 0), (4, 9))  # those of the paper's Figure 1

PIXELS = "pixels"
FOURIER = "random Fourier features"
RANDOM = "random directions"
OURS = "GEM"


@dataclass
class Outcome:
    """Results of one method: test error rates, seconds and chosen C of each split, and columns."""

    errors: list[float] = field(default_factory=list)
    seconds: list[float] = field(default_factory=list)
    penalties: list[float] = field(default_factory=list)
    n_columns: int = 0


def compare(
    images: Images,
    n_splits: int,
    seed: int,
    n_directions: int = N_DIRECTIONS,
    advance: Callable[[str], None] = lambda step: None,
) -> dict[str, Outcome]:
    """Measure test errors of logistic regression on four representations.

    Every method uses the same splits and standardised columns, and chooses `C` among the same four
    values on a quarter of its training rows before it is trained on all of them.

    Parameters
    ----------
    images : Images
    n_splits, seed : int
        Random splits into 60% for training and 40% for testing.
    n_directions : int
        Directions for each class pair; the random methods get as many columns.
    advance : callable
        Function that is called with the name of each finished step; each split has four steps.

    Returns
    -------
    dict of str to Outcome
        Results by method, in the order of the table.
    """
    from threadpoolctl import threadpool_limits

    outcomes = {name: Outcome() for name in (PIXELS, FOURIER, RANDOM, OURS)}
    # The classifier's products are small: more BLAS threads would mostly wait for each other.
    with threadpool_limits(limits=1, user_api="blas"):
        for number, split in enumerate(random_splits(images.y, n_splits, TEST_SHARE, seed)):
            for name, make in _representations(images, split, n_directions, seed + number):
                _measure(outcomes[name], make, images.y, split)
                advance(f"split {number + 1} of {n_splits}: {name}")
    return outcomes


def fit_for_pictures(images: Images) -> GEM:
    """Fit GEM on all images, with enough directions to show spectra."""
    return GEM(n_directions=15, threshold=1.0, scale="none").fit(images.X, images.y)


def draw(images: Images, outcomes: dict[str, Outcome], folder: Path) -> list[tuple[Path, str]]:
    """Write the pictures as PNG files; return each file and what it shows.

    Raises
    ------
    OSError
        If the folder cannot be made or written to.
    """
    from eigenfeat import plotting

    folder.mkdir(parents=True, exist_ok=True)
    gem = fit_for_pictures(images)
    errors = {name: outcome.errors for name, outcome in outcomes.items()}
    comparison = draw_errors(errors, OURS)
    comparison.suptitle("Logistic regression on four representations of digits")
    filters = plotting.FiltersDisplay.from_estimator(
        gem, images.X, images.y, pairs=FIGURE_PAIRS, image_shape=images.shape
    )
    projections = plotting.ProjectionsDisplay.from_estimator(
        gem, images.X, images.y, pair=FIGURE_PAIRS[0]
    )
    spectrum = plotting.SpectrumDisplay.from_estimator(gem)
    pictures: dict[str, tuple[Any, str]] = {
        "errors": (comparison, "test errors of the four representations"),
        "filters": (filters.figure_, "leading directions of five class pairs"),
        "projections": (projections.figure_, "digits projected on one direction, class by class"),
        "spectrum": (spectrum.figure_, "eigenvalues of every class pair"),
    }
    return save_pictures(pictures, folder)


def _representations(
    images: Images, split: Split, n_directions: int, seed: int
) -> Iterator[tuple[str, Callable[[], Features]]]:
    """Yield each method's name and what makes its features; GEM goes first and sets the size."""
    train, test = images.X[split.train], images.X[split.test]
    gem = GEM(n_directions=n_directions, random_state=seed)

    def ours() -> Features:
        gem.fit(train, images.y[split.train])
        return gem.transform(train), gem.transform(test)

    yield OURS, ours
    n_found = gem.directions_.shape[1]
    yield RANDOM, lambda: _random_directions(train, test, n_found, seed)
    yield FOURIER, lambda: _random_fourier(train, test, 6 * n_found, seed)
    yield PIXELS, lambda: (train, test)


def _random_directions(train: Array, test: Array, count: int, seed: int) -> Features:
    """Expand projections on Gaussian directions as GEM does; "Random" in the paper's Table 2."""
    from eigenfeat.expansion.features import expand

    directions = np.random.RandomState(seed).standard_normal((train.shape[1], count))
    centre = train.mean(axis=0)
    directions /= np.sqrt(np.mean(((train - centre) @ directions) ** 2, axis=0))
    offset = -centre @ directions
    return expand(train, directions, offset), expand(test, directions, offset)


def _random_fourier(train: Array, test: Array, count: int, seed: int) -> Features:
    from sklearn.kernel_approximation import RBFSampler

    sampler = RBFSampler(gamma="scale", n_components=count, random_state=seed).fit(train)
    return sampler.transform(train), sampler.transform(test)


def _measure(
    outcome: Outcome, make: Callable[[], Features], y: NDArray[np.int64], split: Split
) -> None:
    """Make features, choose C, train on all training rows, and count errors on the test rows."""
    started = time.perf_counter()
    train, test = make()
    making = time.perf_counter() - started
    penalty = _choose_penalty(train, y[split.train])
    started = time.perf_counter()
    model = _classifier(penalty).fit(train, y[split.train])
    error = float(np.mean(model.predict(test) != y[split.test]))
    outcome.errors.append(error)
    outcome.seconds.append(making + time.perf_counter() - started)
    outcome.penalties.append(penalty)
    outcome.n_columns = train.shape[1]


def _choose_penalty(rows: Floats, labels: NDArray[np.int64]) -> float:
    """Return the C with the fewest errors on a quarter of the rows; the smaller one on a tie."""
    inner = next(iter(random_splits(labels, 1, 0.25, seed=0)))
    fit, held_out = (rows[inner.train], labels[inner.train]), (rows[inner.test], labels[inner.test])
    scores = [_classifier(c).fit(*fit).score(*held_out) for c in PENALTIES]
    return PENALTIES[int(np.argmax(scores))]


def _classifier(penalty: float) -> Any:
    from sklearn.linear_model import LogisticRegression
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import StandardScaler

    regression = LogisticRegression(C=penalty, max_iter=500, tol=1e-3)
    return make_pipeline(StandardScaler(), regression)
