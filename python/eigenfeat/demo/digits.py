"""The demonstration: four representations of real digits under one linear classifier."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from statistics import median_low
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from eigenfeat._base.types import Floats
from eigenfeat.expansion.features import expand
from eigenfeat.gem.gem import GEM

if TYPE_CHECKING:
    from matplotlib.figure import Figure
    from rich.table import Table

__all__ = ["METHODS", "Outcome", "compare", "load_images", "pictures", "table"]

Array = NDArray[np.float64]
Labels = NDArray[np.int64]

PENALTIES = [1e-3, 1e-2, 1e-1, 1.0]  # candidates for C of the classifier
TEST_SHARE = 0.4
N_DIRECTIONS = 5  # directions per pair; 90 pairs, two signs and three powers make 2,700 columns
FIGURE_PAIRS = ((3, 2), (8, 5), (3, 5), (8, 0), (4, 9))  # pairs of the paper's Figure 1
METHODS = ("pixels", "random Fourier features", "random directions", "GEM")


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
    X: Array, y: Labels, n_splits: int, seed: int, step: Callable[[str], object] = len
) -> dict[str, Outcome]:
    """Measure test errors of logistic regression on four representations.

    Every method uses the same splits and standardised columns, and chooses `C` among the same four
    values on a quarter of its training samples before it is trained on all of them. The random
    methods have the number of columns that GEM has. 60% of the samples of each split are for
    training. `step` is called with the name of each step before it begins.
    """
    from sklearn.linear_model import LogisticRegression
    from sklearn.model_selection import GridSearchCV, StratifiedShuffleSplit
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import StandardScaler
    from threadpoolctl import threadpool_limits

    outcomes = {name: Outcome() for name in METHODS}
    model = make_pipeline(StandardScaler(), LogisticRegression(max_iter=500, tol=1e-3))
    held_out = StratifiedShuffleSplit(1, test_size=0.25, random_state=0)
    splits = StratifiedShuffleSplit(n_splits, test_size=TEST_SHARE, random_state=seed)
    # Products are small: several BLAS threads mostly wait for each other.
    with threadpool_limits(limits=1, user_api="blas"):
        for number, (train, test) in enumerate(splits.split(X, y)):
            features = _representations(X[train], y[train], seed + number)
            for name, found in zip(METHODS, features, strict=True):
                step(f"digits, split {number + 1} of {n_splits}: {name}")
                started = time.perf_counter()
                samples = found.fit_transform(X[train], y[train])
                seconds = time.perf_counter() - started
                search = GridSearchCV(model, {"logisticregression__C": PENALTIES}, cv=held_out)
                search.fit(samples, y[train])
                outcome = outcomes[name]
                outcome.errors.append(1 - search.score(found.transform(X[test]), y[test]))
                outcome.seconds.append(seconds + search.refit_time_)
                outcome.penalties.append(search.best_params_["logisticregression__C"])
                outcome.n_columns = samples.shape[1]
    return outcomes


def _representations(X: Array, y: Labels, seed: int) -> list[Any]:
    """Transformers of the methods; random features have as many columns as GEM features."""
    from sklearn.kernel_approximation import RBFSampler
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import FunctionTransformer, StandardScaler

    gem = GEM(n_directions=N_DIRECTIONS, random_state=seed).fit(X, y)
    count = gem.directions_.shape[1]
    directions = np.random.default_rng(seed).standard_normal((X.shape[1], count))
    project = FunctionTransformer(np.dot, kw_args={"b": directions})  # of the paper's Table 2
    return [
        FunctionTransformer(),
        RBFSampler(gamma="scale", n_components=6 * count, random_state=seed),
        make_pipeline(project, StandardScaler(), FunctionTransformer(_expanded)),
        gem,
    ]


def _expanded(projections: Array) -> Floats:
    count = projections.shape[1]
    return expand(projections, np.eye(count), np.zeros(count))


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
            style="bold green" if name == "GEM" else None,
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
        ax.barh(place, percent.mean(), 0.56, color="#b2182b" if name == "GEM" else "#9aa5b1")
        spread = np.linspace(-0.16, 0.16, len(percent)) if len(percent) > 1 else np.zeros(1)
        ax.plot(percent, place + spread, "o", ms=3.5, mfc="white", mec="black", mew=0.8)
        ax.text(percent.max(), place, f"  {percent.mean():.2f}%", va="center")
    ax.set_yticks(range(len(outcomes)), list(outcomes)[::-1])
    ax.set_xlim(0, 115 * max(max(outcome.errors) for outcome in outcomes.values()))
    ax.set_xlabel("test error in % (bars: mean, circles: single splits)")
    plain(ax)
    figure.suptitle("Logistic regression on four representations of digits")
    return figure
