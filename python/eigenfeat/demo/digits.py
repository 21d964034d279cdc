"""The demonstration: four representations of real digits under one linear classifier."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from eigenfeat._base.types import Floats
from eigenfeat.expansion.features import expand
from eigenfeat.gem.gem import GEM

if TYPE_CHECKING:
    from matplotlib.figure import Figure
    from pandas import DataFrame

__all__ = ["compare", "load_images", "pictures"]

Array = NDArray[np.float64]
Labels = NDArray[np.int64]

PENALTIES = [1e-3, 1e-2, 1e-1, 1.0]  # candidates for C of the classifier
TEST_SHARE = 0.4  # share of the images in a test
N_DIRECTIONS = 5  # directions of a pair of digits
N_RANDOM = 450  # random directions, as many as GEM has for 90 pairs; each makes six columns
FIGURE_PAIRS = ((3, 2), (8, 5), (3, 5), (8, 0), (4, 9))  # pairs of Figure 1 of the GEM paper


def load_images() -> tuple[Array, Labels]:
    """scikit-learn's bundled digits: 1,797 images of 8 x 8 pixels in 0..1, and their labels."""
    from sklearn.datasets import load_digits

    X, y = load_digits(return_X_y=True)
    return X / 16.0, y.astype(np.int64)


def compare(
    X: Array, y: Labels, n_splits: int, seed: int, step: Callable[[str], object]
) -> DataFrame:
    """Measure test errors of logistic regression on four representations.

    Every method uses the same splits, with 60% of the samples for training, and standardised
    columns, and chooses `C` among four values on a quarter of the training samples. `step` is
    called with the name of each method before it is measured. The frame has a row for each method:
    number of columns, mean and standard deviation of the test error, seconds of a fit.
    """
    import pandas as pd
    from sklearn.linear_model import LogisticRegression
    from sklearn.model_selection import GridSearchCV, StratifiedShuffleSplit, cross_validate
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import StandardScaler
    from threadpoolctl import threadpool_limits

    model = make_pipeline(StandardScaler(), LogisticRegression(max_iter=500, tol=1e-3))
    held_out = StratifiedShuffleSplit(1, test_size=0.25, random_state=0)
    search = GridSearchCV(model, {"logisticregression__C": PENALTIES}, cv=held_out)
    splits = StratifiedShuffleSplit(n_splits, test_size=TEST_SHARE, random_state=seed)
    lines = {}
    # Products are small: several BLAS threads mostly wait for each other.
    with threadpool_limits(limits=1, user_api="blas"):
        for name, features in _representations(X.shape[1], seed).items():
            step(f"digits: {name}")
            method = make_pipeline(features, search)
            results = cross_validate(method, X, y, cv=splits, return_estimator=True)
            error = 100 * (1 - results["test_score"])
            lines[name] = {
                "columns": results["estimator"][0][-1].n_features_in_,
                "test error %": error.mean(),
                "\u00b1": error.std(),
                "seconds": results["fit_time"].mean(),
            }
    table = pd.DataFrame.from_dict(lines, orient="index")
    return table.rename_axis(columns="logistic regression on")


def _representations(d: int, seed: int) -> dict[str, Any]:
    """Transformers of images of d pixels; random features have as many columns as GEM features."""
    from sklearn.kernel_approximation import RBFSampler
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import FunctionTransformer, StandardScaler

    directions = np.random.default_rng(seed).standard_normal((d, N_RANDOM))
    project = FunctionTransformer(np.dot, kw_args={"b": directions})  # of Table 2 of the GEM paper
    return {
        "pixels": FunctionTransformer(),
        "random Fourier features": RBFSampler(
            gamma="scale", n_components=6 * N_RANDOM, random_state=seed
        ),
        "random directions": make_pipeline(
            project, StandardScaler(), FunctionTransformer(_expanded)
        ),
        "GEM": GEM(n_directions=N_DIRECTIONS, random_state=seed),
    }


def _expanded(projections: Array) -> Floats:
    count = projections.shape[1]
    return expand(projections, np.eye(count), np.zeros(count))


def pictures(X: Array, y: Labels, outcomes: DataFrame) -> dict[str, Figure]:
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


def _draw_errors(outcomes: DataFrame) -> Figure:
    """Draw a bar for the mean error rate of each method, with its deviation."""
    from eigenfeat.plotting.figures import ACCENT, MUTED, new_figure, plain

    figure = new_figure(7.0, 3.7)
    ax = figure.subplots()
    from_bottom = outcomes[::-1]
    colours = [ACCENT if name == "GEM" else MUTED for name in from_bottom.index]
    error, deviation = from_bottom["test error %"], from_bottom["\u00b1"]
    bars = ax.barh(from_bottom.index, error, 0.56, color=colours, xerr=deviation)
    ax.bar_label(bars, fmt="%.2f%%", label_type="center", color="white")
    ax.set_xlabel("test error in % (mean and standard deviation of the splits)")
    plain(ax)
    figure.suptitle("Logistic regression on four representations of digits")
    return figure
