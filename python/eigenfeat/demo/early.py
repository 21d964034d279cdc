"""The demonstration of early decisions: simulated signals of three kinds, sample by sample."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from eigenfeat._base.types import Labels
from eigenfeat.early import MinimumCostClassifier, ReliableClassifier, early_scores

if TYPE_CHECKING:
    from matplotlib.figure import Figure
    from rich.console import Console
    from rich.table import Table

__all__ = ["KINDS", "show", "signals", "steps_table"]

Array = NDArray[np.float64]

KINDS = ("rises late", "returns", "swings")
LENGTH = 60  # values of a signal
N_TRAIN, N_TEST = 200, 400  # numbers of signals
TAU = 0.95  # required reliability
BAR = 24  # characters of the bar of tau 1


def signals(n: int, rng: np.random.Generator) -> tuple[Array, Labels]:
    """Return n noisy signals (n, 60) of three classes and their class names.

    The means of all classes begin at 0. The first mean rises late, the second rises and falls
    again, and the third oscillates with increasing frequency.
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


def show(seed: int, console: Console) -> dict[str, Figure]:
    """Follow the decision about one signal, and compare two early classifiers on test signals.

    Prints tables, and returns pictures by name: the signal, and the times of all decisions.
    """
    import pandas as pd
    from sklearn.discriminant_analysis import LinearDiscriminantAnalysis

    from eigenfeat.plotting import EarlyDecisionDisplay, EarlyTimesDisplay

    rng = np.random.default_rng(seed)
    X, y = signals(N_TRAIN, rng)
    test, truth = signals(N_TEST, rng)
    lda = LinearDiscriminantAnalysis(solver="lsqr", shrinkage="auto")
    with console.status("deciding"):
        model = ReliableClassifier(lda, reliability=TAU).fit(X, y)
        costs = MinimumCostClassifier(lda, 0.5).fit(X, y)
        early, complete = model.predict_early(test), model.predict(test)
    # A signal whose early label is final, decided at about the median time.
    final = np.flatnonzero(early.label == complete)
    at = int(final[np.argmin(np.abs(early.time[final] - np.median(early.time)))])
    plain = partial(console.print, highlight=False, markup=False, soft_wrap=True)
    plain(
        f'One signal of {LENGTH} samples, of the kind "{truth[at]}", at tau {TAU:g}', style="bold"
    )
    console.print(steps_table(model, test[at]))
    plain("Shares of final labels certified by held-out training signals", style="bold")
    shares = zip(model.classes_, model.reliability_by_class_, strict=True)
    plain("  " + ", ".join(f"{kind}: {share:.3f}" for kind, share in shares))
    plain()
    plain("Test signals", style="bold")
    scores = [
        early_scores(early, LENGTH, complete=complete, y=truth),
        early_scores(costs.predict_early(test), LENGTH, complete=costs.predict(test), y=truth),
    ]
    columns = {"reliability": "reliability", "accuracy": "accuracy"}
    columns |= {"mean_time": f"mean time (of {LENGTH})", "harmonic_mean": "harmonic mean"}
    table = pd.DataFrame(scores, index=[f"reliable, tau {TAU:g}", "minimum cost"])
    table = table[[*columns]].rename(columns=columns)
    plain(table.to_string(float_format="{:.3f}".format) + "\n")
    with console.status("drawing"):
        decision = EarlyDecisionDisplay.from_estimator(model, test[at])
        times = EarlyTimesDisplay.from_estimator(model, test, truth)
    return {"early-decision": decision.figure_, "early-times": times.figure_}


def steps_table(model: ReliableClassifier, signal: Array) -> Table:
    """Return a table of the label and its largest tau after each value, until the decision."""
    from rich import box
    from rich.table import Table

    table = Table(box=box.SIMPLE_HEAD)
    for column in ("samples", "value"):
        table.add_column(column, justify="right", no_wrap=True)
    for column in ("label", "for tau up to"):
        table.add_column(column, no_wrap=True)
    stream = model.stream()
    for seen, value in enumerate(signal, 1):
        decision = stream.push(value)
        if decision is None and seen % 2:
            continue
        outlook = stream.outlook() if decision is None else decision
        text = f"{outlook.reliability:.2f}" if decision is None else "decided"
        table.add_row(
            str(seen),
            f"{value:.2f}",
            str(outlook.label),
            f"{chr(0x2588) * round(BAR * outlook.reliability)} {text}",
            style="bold green" if decision else None,
        )
        if decision:
            break
    return table
