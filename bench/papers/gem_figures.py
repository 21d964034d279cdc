"""Figures 1 and 2 of the GEM paper: eigenvectors of MNIST's pairs of digits, and projections."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np

from bench.papers.gem import load_mnist
from bench.papers.pictures import figure_of
from bench.papers.protocol import Method, Outcome, Problem, Protocol
from bench.papers.tables import frame_of
from eigenfeat import GEM
from eigenfeat.plotting import FiltersDisplay

PAIRS = ((3, 2), (8, 5), (3, 5), (8, 0), (4, 9))  # in the order of the rows of the paper's figure
RIDGE, TOP = 0.5, 5  # gamma, and number of eigenvectors per pair


@dataclass
class Directions(Outcome):
    """The model of all pairs, its samples, and a line for each direction of the five pairs."""

    model: Any = None
    rows: Any = None
    lines: list[dict[str, Any]] = field(default_factory=list)


def columns(model, pair):
    """Return the places of a pair's directions."""
    return np.flatnonzero((model.pairs_ == pair).all(axis=1))


def study(job, outcome):
    """Fit the eigenvectors of all pairs, and project the training rows on those of five pairs."""
    rows, threads = job.load().train, job.context.threads
    given = {"threshold": None, "scale": "none", "constant": False, "n_threads": threads}
    model = GEM(n_directions=TOP, ridge=RIDGE, **given).fit(rows.X, rows.y)
    outcome.model, outcome.rows, outcome.n_train = model, rows, len(rows)
    for pair in PAIRS:
        for rank, j in enumerate(columns(model, pair), 1):
            squares = (rows.X @ model.directions_[:, j]) ** 2
            line = {
                "pair": "{} {}".format(*pair),
                "rank": rank,
                "eigenvalue": model.eigenvalues_[j],
            }
            for digit in range(10):
                line[f"mean_square_of_{digit}"] = squares[rows.y == digit].mean()
            outcome.lines.append(line)


def lines(run):
    """Return a line for each direction."""
    return [line for outcome in run.outcomes for line in outcome.lines]


def tell(run):
    """Yield the eigenvalues of Figure 1, and the mean squares of Figure 2."""
    if found := lines(run):
        yield (
            f"Eigenvalues of the training rows, gamma {RIDGE}, and mean squares of projections by "
            "digit. On the first eigenvector of (3, 2), the paper has a mean square of 1 for twos, "
            "and the eigenvalue for threes; with the ridge, that of twos is below 1"
        )
        yield frame_of(found)


def draw(run):
    """Yield the two pictures."""
    for outcome in (o for o in run.outcomes if not o.failure):
        shown = FiltersDisplay.from_estimator(outcome.model, pairs=PAIRS, n_filters=TOP)
        yield "gem-figure-1.png", shown.figure_
        rows, model = outcome.rows, outcome.model
        column = columns(model, PAIRS[0])[0]
        values = rows.X @ model.directions_[:, column] + model.offset_[column]
        figure = figure_of(6.4, 4.2)
        figure.subplots().boxplot([values[rows.y == digit] for digit in range(10)])
        figure.axes[0].set_xticks(range(1, 11), range(10))
        figure.axes[0].set(xlabel="digit", ylabel="projection on the direction of (3, 2)")
        yield "gem-figure-2.png", figure


ARRAYS = {"X_train": "(60000, 784) pixels 0..255", "y_train": "(60000,) digits"}
MNIST = Problem(
    *("mnist", "MNIST", "training rows", "mnist.npz", ARRAYS, load_mnist),
    (Method("GEM", lambda context: None),),
    study=study,
    outcome=Directions,
)
PROTOCOLS = {"gem-figures": Protocol("gem-figures", (MNIST,), lines, tell, draw, alone=False)}
