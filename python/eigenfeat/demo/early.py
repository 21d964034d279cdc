"""The demonstration of early decisions: simulated signals of three kinds, sample by sample."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from eigenfeat._base.types import Labels
from eigenfeat.early import (
    EarlyScores,
    MinimumCostClassifier,
    ReliableClassifier,
    StreamDecision,
    early_scores,
)

if TYPE_CHECKING:
    from matplotlib.figure import Figure
    from rich.console import Console
    from rich.table import Table

__all__ = [
    "KINDS",
    "Demonstration",
    "Look",
    "demonstrate",
    "looks_table",
    "pictures",
    "scores_table",
    "show",
    "signals",
]

Array = NDArray[np.float64]

KINDS = ("rises late", "returns", "swings")
LENGTH = 60
N_TRAIN, N_TEST = 200, 400
TAU = 0.95
BAR = 24  # width in characters of a tau of 1
MAX_LINES = 18  # of a signal's table, which skips looks but keeps the last


@dataclass(frozen=True)
class Look:
    """State of a stream after a number of samples."""

    seen: int
    value: float
    outlook: StreamDecision
    decided: bool


@dataclass(frozen=True, eq=False)
class Demonstration:
    """Results of the demonstration.

    `looks` are the states of `signal`, of class `kind`. `test` has the test signals and their
    classes, `scores` the scores of each method on them.
    """

    model: ReliableClassifier
    signal: Array
    kind: str
    looks: list[Look]
    test: tuple[Array, Labels]
    scores: dict[str, EarlyScores]


def signals(n: int, rng: np.random.Generator) -> tuple[Array, Labels]:
    """Return n noisy signals (n, 60) of three classes and their class names.

    All classes begin with equal means. The first class then diverges from the others, the second
    returns, and the third oscillates with increasing frequency.
    """
    t = np.linspace(0.0, 1.0, LENGTH)
    shapes = np.stack(
        [
            2.5 * np.clip(t - 0.35, 0, None) + 0.4 * t,
            np.where(t < 0.55, 1.2 * t, 1.2 * (1.1 - t)),
            0.4 * t + 0.8 * t * np.sin(22 * t**2),
        ]
    )
    code = rng.integers(0, len(KINDS), n)
    strength = rng.uniform(0.7, 1.3, (n, 1))
    noise = 0.12 * rng.standard_normal((n, LENGTH)) + 0.03 * rng.standard_normal(
        (n, LENGTH)
    ).cumsum(axis=1)
    return strength * shapes[code] + noise, np.array(KINDS)[code]


def demonstrate(seed: int) -> Demonstration:
    """Fit, follow one signal sample by sample, and compare with decisions by the cost of waiting.

    Parameters
    ----------
    seed : int
        Seed of the simulated signals.
    """
    from sklearn.discriminant_analysis import LinearDiscriminantAnalysis

    rng = np.random.default_rng(seed)
    X, y = signals(N_TRAIN, rng)
    test, truth = signals(N_TEST, rng)
    lda = LinearDiscriminantAnalysis(solver="lsqr", shrinkage="auto")
    model = ReliableClassifier(lda, reliability=TAU).fit(X, y)
    shown = _typical_signal(model, test)
    return Demonstration(
        model,
        test[shown],
        str(truth[shown]),
        _follow(model, test[shown]),
        (test, truth),
        _score_methods(model, (X, y), (test, truth)),
    )


def pictures(shown: Demonstration) -> dict[str, Figure]:
    """Return pictures by name: one signal that is decided, and the times of all decisions."""
    from eigenfeat import plotting

    decision = plotting.EarlyDecisionDisplay.from_estimator(shown.model, shown.signal)
    times = plotting.EarlyTimesDisplay.from_estimator(shown.model, *shown.test)
    return {"early-decision": decision.figure_, "early-times": times.figure_}


def _typical_signal(model: ReliableClassifier, signals: Array) -> int:
    """Return the index of a correctly decided signal with about the median time of decision."""
    early = model.predict_early(signals)
    final = np.flatnonzero(early.label == model.predict(signals))
    middle = np.median(early.time)
    return int(final[np.argmin(np.abs(early.time[final] - middle))])


def _follow(model: ReliableClassifier, signal: Array) -> list[Look]:
    """Push a signal into a stream until it is decided."""
    stream = model.stream()
    looks: list[Look] = []
    for seen, value in enumerate(signal, 1):
        decision = stream.push(value)
        outlook = stream.outlook() if decision is None else decision
        looks.append(Look(seen, float(value), outlook, decision is not None))
        if decision is not None:
            break
    return looks


def _score_methods(
    model: ReliableClassifier,
    train: tuple[Array, NDArray[Any]],
    test: tuple[Array, NDArray[Any]],
) -> dict[str, EarlyScores]:
    signals, truth = test

    def score(classifier: Any) -> EarlyScores:
        early = classifier.predict_early(signals)
        return early_scores(early, LENGTH, complete=classifier.predict(signals), y=truth)

    costs = MinimumCostClassifier(model.classifier, 0.5).fit(*train)
    return {f"reliable, tau {TAU:g}": score(model), "minimum cost": score(costs)}


# ---- output --------------------------------------------------------------------------------------


def show(shown: Demonstration, console: Console) -> None:
    """Print the decision about a signal step by step, certified shares, and the comparison."""
    plain = partial(console.print, highlight=False, markup=False, soft_wrap=True)
    plain(
        f'One signal of {LENGTH} samples, of the kind "{shown.kind}", at tau {TAU:g}', style="bold"
    )
    console.print(looks_table(shown.looks))
    plain("Shares of final labels certified by held-out training signals", style="bold")
    shares = zip(shown.model.classes_, shown.model.reliability_by_class_, strict=True)
    plain("  " + ", ".join(f"{kind}: {share:.3f}" for kind, share in shares))
    plain()
    plain("Test signals", style="bold")
    console.print(scores_table(shown.scores))


def looks_table(looks: Sequence[Look]) -> Table:
    """Return a table of the signal's label and largest tau after each sample."""
    table = _table("samples", "value", "would be", "for tau up to")
    every = max(1, -(-len(looks) // MAX_LINES))
    for look in looks:
        if look.seen % every and len(looks) - look.seen >= 3:
            continue
        sure = look.outlook.reliability
        bar = "\u2588" * round(BAR * sure)
        text = "decided" if look.decided else f"{sure:.2f}"
        table.add_row(
            str(look.seen),
            f"{look.value:.2f}",
            str(look.outlook.label),
            f"{bar} {text}",
            style="bold green" if look.decided else None,
        )
    return table


def scores_table(scores: Mapping[str, EarlyScores]) -> Table:
    """Return a table with a line of scores for each method."""
    table = _table("method", "reliability", "accuracy", "mean time", "harmonic mean")
    for name, score in scores.items():
        figures = (score.reliability, score.accuracy, score.harmonic_mean)
        shown = ["" if figure is None else f"{figure:.3f}" for figure in figures]
        time = f"{score.mean_time:.1f} of {LENGTH}"
        table.add_row(name, shown[0], shown[1], time, shown[2])
    return table


def _table(*columns: str) -> Table:
    from rich import box
    from rich.table import Table

    table = Table(box=box.SIMPLE_HEAD)
    for column in columns:
        text = column in ("method", "would be", "for tau up to")
        table.add_column(column, justify="left" if text else "right", no_wrap=True)
    return table
