"""Draw the charts of the documentation from the CSV files beside the scripts that measure them.

    python bench/charts.py [--only ranks early ...] [--output docs/images]

| chart | file | measured by |
|---|---|---|
| ranks | bench/tables.csv | bench/tables.py |
| mnist | bench/papers/mnist.csv | python -m bench.papers mnist |
| early | bench/peers/early.csv | bench/early.py |
| reliability | bench/early_reliability.csv | bench/early_reliability.py |
| series | bench/series.csv | bench/series.py |
| speed | bench/speed.csv | bench/run.py |
| files | bench/files.csv | bench/files.py |

Text is dark on white, and large enough for pictures that are 360 pixels wide.
"""

from __future__ import annotations

import argparse
import re
from collections.abc import Callable
from pathlib import Path

import matplotlib as mpl
import numpy as np
import pandas as pd
from adjustText import adjust_text
from matplotlib.axes import Axes
from matplotlib.figure import Figure

BENCH = Path(__file__).resolve().parent
OURS, PEER, SECOND = "#b3261e", "#4a5a68", "#1f6fb2"
DARK = "#1b1b1b"


def main() -> None:
    """Draw all charts, or those that are named."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--only", nargs="+", choices=list(CHARTS), default=list(CHARTS))
    parser.add_argument("--output", type=Path, default=BENCH.parent / "docs" / "images")
    options = parser.parse_args()
    mpl.rcParams.update(
        {
            "font.size": 12,
            "axes.titlesize": 12,
            "axes.titleweight": "bold",
            "axes.spines.top": False,
            "axes.spines.right": False,
            "axes.edgecolor": DARK,
            "axes.labelcolor": DARK,
            "text.color": DARK,
            "xtick.color": DARK,
            "ytick.color": DARK,
            "axes.grid": True,
            "grid.color": "#e4e4e4",
            "axes.axisbelow": True,
        }
    )
    for name in options.only:
        figure = Figure(figsize=(5.2, 4.0), layout="constrained", facecolor="white")
        CHARTS[name](figure.subplots())
        figure.savefig(options.output / f"bench_{name}.png", dpi=150)


def ranks(ax: Axes) -> None:
    """Mean rank of the errors over the tables, against the median time of a fit."""
    results = pd.read_csv(BENCH / "tables.csv")
    results = results[results["group"] == "shown"]
    every = results.groupby("model")["table"].nunique()
    results = results[results["model"].isin(every[every == every.max()].index)]
    by_split = results.pivot_table(index=["table", "split"], columns="model", values="error")
    rank = by_split.rank(axis=1).groupby("table").mean().mean()
    seconds = results.groupby("model")["fit_seconds"].median()
    ax.set(
        xscale="log",
        xlabel="seconds of a fit, median",
        ylabel="mean rank of the error",
        title=f"Defaults on {by_split.index.get_level_values('table').nunique()} tables",
    )
    ax.set(xlim=(seconds.min() / 2, 6 * seconds.max()), ylim=(rank.max() + 0.35, rank.min() - 0.5))
    _corner(ax, "more accurate, faster ↖", "left", "top")
    _scatter(ax, seconds, rank, {name: _is_ours(name) for name in rank.index})


def mnist(ax: Axes) -> None:
    """Test errors against the time of training."""
    table = pd.read_csv(BENCH / "papers" / "mnist.csv").set_index("model")
    ax.set(
        xscale="log",
        xlabel="seconds of training, two cores",
        ylabel="errors of 10,000 test digits",
        title="MNIST",
        xlim=(5, 20000),
        ylim=(40, 285),
    )
    _scatter(ax, table["train_seconds"], table["errors"], table["ours"].astype(bool).to_dict())


def early(ax: Axes) -> None:
    """Mean accuracy against mean earliness over the sets that all classifiers have."""
    table = pd.read_csv(BENCH / "peers" / "early.csv").replace({"classifier": EARLY_NAMES})
    table = table[table["classifier"].isin(EARLY_NAMES.values())]
    number = table["classifier"].nunique()
    counts = table.dropna(subset=["accuracy"]).groupby("problem")["classifier"].nunique()
    table = table[table["problem"].isin(counts[counts == number].index)]
    mean = table.groupby("classifier")[["earliness", "accuracy"]].mean() * 100
    ours = {name: name in ("ReliableClassifierCV", "MinimumCostClassifier") for name in mean.index}
    ax.set(
        xlabel="mean time of decision, % of the series",
        ylabel="accuracy of early labels, %",
        title=f"Early classification, {table['problem'].nunique()} sets",
    )
    ax.set(xlim=(0, 100), ylim=(60, 80))
    _corner(ax, "earlier, more accurate ↖", "left", "top")
    _scatter(ax, mean["earliness"], mean["accuracy"], ours)


def reliability(ax: Axes) -> None:
    """Share of early labels that are final, by requested reliability, with a dot for each set."""
    table = pd.read_csv(BENCH / "early_reliability.csv")
    asked = [0.5, 0.8, 0.9, 0.95, 0.99]
    rng = np.random.default_rng(0)
    for shift, rule, color, label in [
        (-0.2, "LDA, default, raw", SECOND, "model alone"),
        (0.0, "LDA, default, corrected", OURS, "corrected (default)"),
        (0.2, "LDA, prefixes, corrected", PEER, 'corrected, "prefixes"'),
    ]:
        some = table[(table["rule"] == rule) & table["tau"].isin(asked)]
        place = np.array([asked.index(tau) for tau in some["tau"]]) + shift
        place = place + rng.uniform(-0.05, 0.05, len(some))
        ax.plot(place, some["agreement"], "o", color=color, alpha=0.65, markersize=5, label=label)
    for place, tau in enumerate(asked):
        ax.hlines(tau, place - 0.35, place + 0.35, color=DARK, linewidth=2)
    ax.set(
        xticks=range(len(asked)),
        xticklabels=[f"{tau:g}" for tau in asked],
        xlabel="reliability asked for (bars)",
        ylabel="early labels that were final",
        title="Promised and realised, 21 sets",
        ylim=(0.3, 1.02),
    )
    ax.legend(frameon=False, loc="lower right", fontsize=11, handletextpad=0)


def series(ax: Axes) -> None:
    """Draw the error of two classifiers of series on each data set."""
    data = pd.read_csv(BENCH / "series.csv").pivot(
        index="set", columns="classifier", values="accuracy"
    )
    errors = 100 * (1 - data[["MultiRocketHydra", "ConvolutionClassifier"]])
    x, y = (errors[name] for name in errors)
    ax.plot([0, 50], [0, 50], color=PEER, lw=0.8)
    ax.scatter(x, y, color=OURS, s=30, zorder=2)
    apart = y[(y - x).abs() > 2.0]
    for name in apart.index:
        above = y[name] > x[name]
        ax.annotate(
            name,
            (x[name], y[name]),
            (-4, 18) if above else (7, 0),
            textcoords="offset points",
            va="bottom" if above else "center",
            fontsize=9,
        )
    ax.set(xlabel="error of MultiRocketHydra, %", ylabel="error of ConvolutionClassifier, %")
    _corner(ax, "below the line: ConvolutionClassifier\nis more accurate", "right", "bottom")


# Part of the chart of speeds: start of the task's name, our side, its peer, its peer's name.
PARTS = {
    "class moments": ("moments", "eigenfeat float32", "gather + ssyrk", "gather + ssyrk"),
    "class moments of bytes": ("moments", "eigenfeat uint8", "gather + ssyrk", "gather + ssyrk"),
    "90 eigenproblems": ("90 pencils", "eigenfeat auto", "scipy eigh gvx", "scipy.linalg.eigh"),
    "10 eigenproblems": ("ten pencils", "eigenfeat auto", "scipy eigh gvx", "scipy.linalg.eigh"),
    "expansion of features": ("transform", "eigenfeat", "numpy by blocks", "NumPy"),
    "logistic regression": ("logit to", "eigenfeat float64", "newton-cg float64", "newton-cg"),
    "multiclass linear SVM": ("SVM to", "eigenfeat", "liblinear", "liblinear"),
    "minima over balls": ("trust regions", "eigenfeat", "eigh and brentq", "SciPy"),
    "LDG": ("LDG without", "eigenfeat", "NumPy, sklearn", "NumPy + scikit-learn"),
}


def speed(ax: Axes) -> None:
    """How many times faster than the peer, by set of instructions; the least of all sizes."""
    table = pd.read_csv(BENCH / "speed.csv", keep_default_na=False)
    tiers = {"baseline": ("SSE2", "#b9c3cc"), "v3": ("AVX2", SECOND), "v4": ("AVX-512", OURS)}
    bars = {}
    for row, (task, ours, peer, _) in enumerate(reversed(PARTS.values())):
        some = table[table["task"].str.startswith(task)]
        seconds = some.pivot_table("best", ["tier", "task", "threads"], "implementation")
        peers = seconds.filter(regex=f"^{re.escape(peer)}").min(axis=1)
        times = (peers / seconds[ours]).groupby("tier").min()
        for number, (tier, (name, color)) in enumerate(tiers.items()):
            if tier in times:
                bars[name] = ax.barh(row + 0.25 * (1 - number), times[tier], 0.24, color=color)
    ax.set(
        yticks=range(len(PARTS)),
        yticklabels=[f"{part}\n{peer[3]}" for part, peer in reversed(PARTS.items())],
        xlabel="times faster than the peer",
        xscale="log",
        xlim=(1, 30),
    )
    ax.set_xticks([1, 2, 5, 10, 20], ["1", "2", "5", "10", "20"], minor=False)
    ax.set_xticks([], minor=True)
    ax.tick_params(axis="y", labelsize=9.5, length=0)
    ax.grid(axis="y", visible=False)
    names = [name for name, _ in tiers.values()]
    ax.figure.legend(
        [bars[name] for name in names],
        names,
        frameon=False,
        loc="outside upper right",
        ncols=3,
        fontsize=10.5,
    )


def files(ax: Axes) -> None:
    """Samples per second that are read and added to moments, by format."""
    table = pd.read_csv(BENCH / "files.csv").iloc[::-1]
    ax.barh(table["format"], table["samples_per_second"] / 1e6, 0.6, color=SECOND)
    for place, (rate, peak) in enumerate(
        zip(table["samples_per_second"] / 1e6, table["peak_megabytes"], strict=True)
    ):
        ax.text(rate + 0.07, place, f"{peak} MB", va="center", fontsize=11)
    ax.set(
        xlabel="million samples of 100 columns a second",
        title="Reading, and peak memory",
        xlim=(0, 4.9),
    )
    ax.grid(axis="y", visible=False)


def _scatter(ax: Axes, x: pd.Series, y: pd.Series, ours: dict[str, bool]) -> None:
    """Dots with names, ours in red; each name is placed where it covers least of the others."""
    for name in y.index:
        ax.plot(x[name], y[name], "o", color=OURS if ours[name] else PEER, markersize=8)
    texts = [
        ax.text(
            x[name],
            y[name],
            name,
            color=OURS if ours[name] else DARK,
            fontsize=10.5,
            fontweight="bold" if ours[name] else "normal",
        )
        for name in y.index
    ]
    arrows = {"arrowstyle": "-", "color": PEER, "lw": 0.6}
    adjust_text(texts, x[y.index], y, ax=ax, expand=(1.3, 1.7), arrowprops=arrows)


def _corner(ax: Axes, text: str, ha: str, va: str) -> None:
    at = (0.02 if ha == "left" else 0.98, 0.98 if va == "top" else 0.02)
    ax.text(*at, text, transform=ax.transAxes, ha=ha, va=va, fontsize=10, color="#5a5a5a")


def _is_ours(name: str) -> bool:
    return name.lower().startswith(("gem", "table", "eigenfeat"))


EARLY_NAMES = {
    "ReliableClassifierCV": "ReliableClassifierCV",
    "minimum cost, convolutions": "MinimumCostClassifier",
    "aeon CALIMERA": "CALIMERA",
    "aeon TEASER on forests": "TEASER",
    "aeon ProbabilityThreshold": "ProbabilityThreshold",
    "ECTS": "ECTS",
    "fixed time, 1-NN": "fixed time",
}
CHARTS: dict[str, Callable[[Axes], None]] = {
    "ranks": ranks,
    "mnist": mnist,
    "early": early,
    "reliability": reliability,
    "series": series,
    "speed": speed,
    "files": files,
}

if __name__ == "__main__":
    main()
