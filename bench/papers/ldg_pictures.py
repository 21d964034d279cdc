"""Draws the pictures of LDG's experiments."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from bench.papers import families, settings, thesis
from bench.papers.families import Rules
from bench.papers.measuring import Outcome
from bench.papers.protocol import Context, Problem, Protocol
from bench.papers.split_table import accuracies
from bench.papers.splits import Table
from bench.papers.three_nearest import accuracy
from eigenfeat.plotting import ldg

if TYPE_CHECKING:
    from matplotlib.figure import Figure

__all__ = ["draw_sets", "draw_small", "draw_transfer"]

SHOWN = "wine"  # whose rows are drawn in one and two dimensions
WHOLE = ("all columns",)
EMBEDDED = (("LDG", families.ldg), ("PCA", families.pca), ("FDA", families.fisher))

Curves = dict[str, dict[int, list[float]]]


def draw_sets(
    protocol: Protocol, outcomes: Sequence[Outcome], context: Context, output: Path, folder: Path
) -> list[Path]:
    """Draw accuracy by dimension, sparsity of SparseLDG's directions, and embeddings."""
    figures: dict[str, Figure] = {}
    sparse = [problem for problem in protocol.problems if _is_sparse(problem)]
    panels = panels_of([p for p in protocol.problems if p not in sparse], outcomes)
    if panels:
        figures["accuracy"] = ldg.plot_accuracies(
            panels, "3-NN accuracy by dimension, Figures 3.4 and 3.5 of the thesis", WHOLE
        )
    for problem in sparse:
        figures |= _sparsity(problem, outcomes)
    for problem in protocol.problems:
        if problem.name == SHOWN and accuracies(problem, outcomes):
            figures["embeddings"] = _embeddings(problem, folder, context)
    return _save(figures, protocol, context, output)


def draw_small(
    protocol: Protocol, outcomes: Sequence[Outcome], context: Context, output: Path, folder: Path
) -> list[Path]:
    """Draw LDG among the others on every set."""
    found = {p.name: accuracies(p, outcomes) for p in protocol.problems}
    found = {name: methods for name, methods in found.items() if "LDG" in methods}
    if not found:
        return []
    printed = {name: float(thesis.TABLE_3_4[name]["LDG"]) for name in found}
    figure = ldg.plot_comparison(
        found, "LDG", printed, "Time series that are fewer than their samples, Table 3.4"
    )
    return _save({"accuracy": figure}, protocol, context, output)


def draw_transfer(
    protocol: Protocol, outcomes: Sequence[Outcome], context: Context, output: Path, folder: Path
) -> list[Path]:
    """Draw accuracy by dimension for every pair of domains."""
    panels = panels_of(protocol.problems, outcomes)
    if not panels:
        return []
    title = "Two labelled target rows a class: 3-NN accuracy by dimension, Figure 4.5"
    return _save({"accuracy": ldg.plot_accuracies(panels, title)}, protocol, context, output)


def panels_of(problems: Sequence[Problem], outcomes: Sequence[Outcome]) -> dict[str, Curves]:
    """Return accuracies by problem, method and dimension."""
    panels: dict[str, Curves] = {}
    for outcome in outcomes:
        for problem in problems:
            if problem.name == outcome.problem and outcome.splits:
                panels.setdefault(problem.title, {})[outcome.method] = _curve(outcome)
    return panels


def _curve(outcome: Outcome) -> dict[int, list[float]]:
    """Return accuracies by dimension, of those dimensions that every split has.

    A method without a choice may have kept another number of columns in each split; that is one
    point then, at the number of the first.
    """
    if all(len(score.curve) <= 1 for score in outcome.splits):
        return {outcome.splits[0].dimension: [score.accuracy for score in outcome.splits]}
    shared = set.intersection(*(set(score.curve) for score in outcome.splits))
    return {m: [score.curve[m] for score in outcome.splits] for m in sorted(shared)}


def _is_sparse(problem: Problem) -> bool:
    return any(method.name.startswith("SparseLDG") for method in problem.methods)


def _sparsity(problem: Problem, outcomes: Sequence[Outcome]) -> dict[str, Figure]:
    done = [o for o in outcomes if o.problem == problem.name and o.splits]
    if not done:
        return {}
    from matplotlib.figure import Figure

    shown = min(len(score.nonzeros) for o in done for score in o.splits)
    counts = {o.method: np.array([score.nonzeros[:shown] for score in o.splits]) for o in done}
    most = max(int(one.max()) for one in counts.values())
    curves = next(iter(panels_of([problem], outcomes).values()))
    figure = Figure(figsize=(12.0, 4.8), dpi=110, layout="constrained")
    left, right = figure.subplots(1, 2)
    ldg.plot_sparsity(counts, most, left, legend=False)
    ldg.plot_accuracy(curves, right, "3-NN accuracy by dimension", legend=False)
    handles, labels = left.get_legend_handles_labels()
    figure.legend(handles, labels, loc="outside lower center", ncols=3, frameon=False)
    figure.suptitle("Sparse directions on Wine, Figures 3.6 and 3.8 of the thesis")
    return {"sparsity": figure}


def _embeddings(problem: Problem, folder: Path, context: Context) -> Figure:
    """Draw test rows of the first split in two dimensions and in one, by three reductions."""
    from matplotlib.figure import Figure

    table: Table = problem.load(folder / problem.file, context)
    rows, codes, queries, query_codes = table.parts(context.seed)
    rules = Rules(gammas=settings.LDG_GAMMAS, at=5, most=2)
    figure = Figure(figsize=(11.0, 7.0), dpi=110, layout="constrained")
    grid = figure.subplots(2, len(EMBEDDED), height_ratios=[1.6, 1])
    for column, (name, build) in enumerate(EMBEDDED):
        _, model = next(build(context)(rows, codes, rules))
        for line, m in enumerate((2, 1)):
            known, asked = (model.transform(part)[:, :m] for part in (rows, queries))
            right = 100 * accuracy(known, codes, asked, query_codes)
            told = f"{name}, {m} dimension{'s' if m > 1 else ''}: {right:.0f}% right"
            ldg.plot_embedding(asked, query_codes + 1, grid[line, column], told, legend=False)
    handles, labels = grid[0, 0].get_legend_handles_labels()
    figure.legend(handles, labels, loc="outside lower center", ncols=5, frameon=False)
    figure.suptitle(
        f"{len(queries)} test rows of {problem.title} in two dimensions and in one, and how many "
        "are classified right by their 3 nearest training rows"
    )
    return figure


def _save(
    figures: dict[str, Figure], protocol: Protocol, context: Context, output: Path
) -> list[Path]:
    written = []
    for name, figure in figures.items():
        path = output / f"{protocol.name}{'-quick' if context.quick else ''}-{name}.png"
        figure.savefig(path)
        written.append(path)
    return written
