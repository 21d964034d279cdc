"""The demonstration: four representations of real digits under one linear classifier."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from statistics import median_low
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from eigenfeat._base.types import Floats
from eigenfeat.gem.gem import GEM

if TYPE_CHECKING:
    from matplotlib.figure import Figure
    from rich.table import Table

__all__ = ["Outcome", "compare", "load_images", "pictures", "table"]

Array = NDArray[np.float64]
Labels = NDArray[np.int64]
Split = tuple[NDArray[np.intp], NDArray[np.intp]]  # indices of training and test samples
Features = tuple[Floats, Floats]

PENALTIES = (1e-3, 1e-2, 1e-1, 1.0)  # candidates for C of the classifier
TEST_SHARE = 0.4
N_DIRECTIONS = 5  # directions per pair; 90 pairs, two signs and three powers make 2,700 columns
FIGURE_PAIRS = ((3, 2), (8, 5), (3, 5), (8, 0), (4, 9))  # pairs of the paper's Figure 1

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


def load_images() -> tuple[Array, Labels]:
    """scikit-learn's bundled digits: 1,797 images of 8 x 8 pixels in 0..1, and their labels."""
    from sklearn.datasets import load_digits

    X, y = load_digits(return_X_y=True)
    return X / 16.0, y.astype(np.int64)


def compare(
    X: Array,
    y: Labels,
    n_splits: int,
    seed: int,
    n_directions: int = N_DIRECTIONS,
    advance: Callable[[str], None] = lambda step: None,
) -> dict[str, Outcome]:
    """Measure test errors of logistic regression on four representations.

    Every method uses the same splits and standardised columns, and chooses `C` among the same four
    values on a quarter of its training samples before it is trained on all of them.

    Parameters
    ----------
    X, y : samples and labels
    n_splits, seed : int
        Random splits into 60% for training and 40% for testing.
    n_directions : int
        Directions for each class pair. The random methods get the number of columns that GEM has.
    advance : callable
        Function that is called with the name of each finished step; each split has four steps.

    Returns
    -------
    dict of str to Outcome
        Results by method, in the order of the table.
    """
    from threadpoolctl import threadpool_limits

    outcomes = {name: Outcome() for name in (PIXELS, FOURIER, RANDOM, OURS)}
    # Products are small: several BLAS threads mostly wait for each other.
    with threadpool_limits(limits=1, user_api="blas"):
        for number, split in enumerate(_random_splits(y, n_splits, TEST_SHARE, seed)):
            for name, make in _representations(X, y, split, n_directions, seed + number):
                _measure(outcomes[name], make, y, split)
                advance(f"split {number + 1} of {n_splits}: {name}")
    return outcomes


def table(outcomes: Mapping[str, Outcome], title: str) -> Table:
    """Return a table of columns, test error (mean and standard deviation) and seconds."""
    from rich import box
    from rich.table import Table

    table = Table(title=title, box=box.SIMPLE_HEAD, title_justify="left", title_style="bold")
    table.add_column("logistic regression on")
    for heading in ("columns", "test error %", "\u00b1", "C", "seconds"):
        table.add_column(heading, justify="right")
    for name, outcome in outcomes.items():
        errors = 100 * np.array(outcome.errors)
        table.add_row(
            name,
            f"{outcome.n_columns:,}",
            f"{errors.mean():.2f}",
            f"{errors.std(ddof=1) if len(errors) > 1 else 0.0:.2f}",
            f"{median_low(outcome.penalties):g}",
            f"{np.mean(outcome.seconds):.2f}",
            style="bold green" if name == OURS else None,
        )
    return table


def pictures(X: Array, y: Labels, outcomes: dict[str, Outcome]) -> dict[str, Figure]:
    """Return pictures by name: test errors, leading directions of five pairs, and eigenvalues."""
    from eigenfeat import plotting

    # Enough directions to show spectra.
    gem = GEM(n_directions=15, threshold=1.0, scale="none").fit(X, y)
    filters = plotting.FiltersDisplay.from_estimator(gem, X, y, pairs=FIGURE_PAIRS)
    spectrum = plotting.SpectrumDisplay.from_estimator(gem)
    return {
        "errors": _draw_errors(outcomes),
        "filters": filters.figure_,
        "spectrum": spectrum.figure_,
    }


def _draw_errors(outcomes: Mapping[str, Outcome]) -> Figure:
    """Draw a bar for each method's mean error rate, and a circle for each split."""
    from eigenfeat.plotting.figures import new_figure, plain

    figure = new_figure(7.0, 3.7)
    ax = figure.subplots()
    for place, (name, outcome) in enumerate(reversed(list(outcomes.items()))):
        percent = 100 * np.asarray(outcome.errors)
        ax.barh(place, percent.mean(), 0.56, color="#b2182b" if name == OURS else "#9aa5b1")
        spread = np.linspace(-0.16, 0.16, len(percent)) if len(percent) > 1 else np.zeros(1)
        ax.plot(percent, place + spread, "o", ms=3.5, mfc="white", mec="black", mew=0.8)
        ax.text(percent.max(), place, f"  {percent.mean():.2f}%", va="center")
    ax.set_yticks(range(len(outcomes)), list(outcomes)[::-1])
    ax.set_xlim(0, 115 * max(max(outcome.errors) for outcome in outcomes.values()))
    ax.set_xlabel("test error in % (bars: mean, circles: single splits)")
    plain(ax)
    figure.suptitle("Logistic regression on four representations of digits")
    return figure


def _random_splits(y: Labels, n_splits: int, test_share: float, seed: int) -> Iterator[Split]:
    """Yield stratified random splits, determined by the seed."""
    from sklearn.model_selection import StratifiedShuffleSplit

    splitter = StratifiedShuffleSplit(n_splits, test_size=test_share, random_state=seed)
    yield from splitter.split(y[:, None], y)


def _representations(
    X: Array, y: Labels, split: Split, n_directions: int, seed: int
) -> Iterator[tuple[str, Callable[[], Features]]]:
    """Yield name and transformer of each method; GEM is first and sets the number of features."""
    train, test = X[split[0]], X[split[1]]
    gem = GEM(n_directions=n_directions, random_state=seed)

    def ours() -> Features:
        gem.fit(train, y[split[0]])
        return gem.transform(train), gem.transform(test)

    yield OURS, ours
    n_found = gem.directions_.shape[1]
    yield RANDOM, lambda: _random_directions(train, test, n_found, seed)
    yield FOURIER, lambda: _random_fourier(train, test, 6 * n_found, seed)
    yield PIXELS, lambda: (train, test)


def _random_directions(train: Array, test: Array, count: int, seed: int) -> Features:
    """Expand projections on Gaussian directions ("Random" in the paper's Table 2)."""
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


def _measure(outcome: Outcome, make: Callable[[], Features], y: Labels, split: Split) -> None:
    """Compute features, choose C, train on all training samples, and count test errors."""
    started = time.perf_counter()
    train, test = make()
    seconds = time.perf_counter() - started
    penalty = _choose_penalty(train, y[split[0]])
    started = time.perf_counter()
    model = _classifier(penalty).fit(train, y[split[0]])
    error = float(np.mean(model.predict(test) != y[split[1]]))
    outcome.errors.append(error)
    outcome.seconds.append(seconds + time.perf_counter() - started)
    outcome.penalties.append(penalty)
    outcome.n_columns = train.shape[1]


def _choose_penalty(features: Floats, labels: Labels) -> float:
    """Return the C with the fewest errors on a quarter of the samples; ties go to the smaller C."""
    ((train, test),) = _random_splits(labels, 1, 0.25, seed=0)
    scores = [
        _classifier(c).fit(features[train], labels[train]).score(features[test], labels[test])
        for c in PENALTIES
    ]
    return PENALTIES[int(np.argmax(scores))]


def _classifier(penalty: float) -> Any:
    from sklearn.linear_model import LogisticRegression
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import StandardScaler

    regression = LogisticRegression(C=penalty, max_iter=500, tol=1e-3)
    return make_pipeline(StandardScaler(), regression)
