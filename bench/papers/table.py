"""Outcomes beside the paper's figures: a table for the terminal, and one CSV line each."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from bench.papers.choosing import Scores
from bench.papers.measuring import Outcome
from bench.papers.protocol import Context, Method, Paper, Problem
from bench.papers.writing import write_lines

if TYPE_CHECKING:
    from rich.table import Table

__all__ = ["FIELDS", "comparison", "heading", "remarks", "write_csv"]

METHOD = "method"
HEADINGS = {
    "paper": "paper\n%",
    "error": "error\n%",
    "paper_entropy": "paper\nCE",
    "entropy": "\nCE",
    "errors": "\nerrors",
    "directions": "direc-\ntions",
    "choose": "choose\ns",
    "train": "train\ns",
    "test": "test\ns",
    "peak": "peak\nMB",
}
FIELDS = (
    "problem",
    "method",
    "paper_error_percent",
    "paper_cross_entropy",
    "error",
    "error_deviation",
    "cross_entropy",
    "cross_entropy_deviation",
    "runs",
    "n_train",
    "n_test",
    "directions",
    "candidates",
    "choose_seconds",
    "train_seconds",
    "test_seconds",
    "peak_bytes",
    "parameters",
    "failure",
    "quick",
    "threads",
    "seed",
)


def comparison(problem: Problem, outcomes: Sequence[Outcome]) -> Table:
    """Return the table of one problem: a row for each method that was run or quoted."""
    from rich import box
    from rich.table import Table

    table = Table(box=box.SIMPLE_HEAD, pad_edge=False, padding=(0, 1, 0, 0))
    rows = list(_rows(problem, outcomes))
    cells = [_cells(*row, entropy=problem.objective == "cross_entropy") for row in rows]
    headings = [name for name in HEADINGS if any(row[name] for row in cells)]
    table.add_column(f"\n{METHOD}", no_wrap=True)
    for heading in headings:
        table.add_column(HEADINGS[heading], justify="right", no_wrap=True)
    for (_, _, outcome, _), row in zip(rows, cells, strict=True):
        style = "dim" if outcome is None else "red" if outcome.failure else None
        table.add_row(row[METHOD], *(row[heading] for heading in headings), style=style)
    return table


def remarks(problem: Problem, outcomes: Sequence[Outcome]) -> Iterator[str]:
    """Yield a line for what was chosen, for each failure and for each kind of warning."""
    for outcome in outcomes:
        if outcome.problem != problem.name:
            continue
        if outcome.failure:
            yield f"{outcome.method} failed: {outcome.failure}"
        if outcome.n_candidates > 1:
            pairs = ", ".join(f"{name} {value}" for name, value in outcome.parameters.items())
            yield f"{outcome.method}: {pairs}; chosen out of {outcome.n_candidates}"
        for text in outcome.warnings:
            yield f"{outcome.method} warned: {text}"


def write_csv(
    problems: Sequence[Problem], outcomes: Sequence[Outcome], context: Context, path: Path
) -> None:
    """Write one line for each row of ours; the file is replaced as a whole, or left as it was."""
    lines = (
        _line(name, paper, outcome, scores, context)
        for problem in problems
        for name, paper, outcome, scores in _rows(problem, outcomes)
        if outcome is not None
    )
    write_lines(path, FIELDS, lines)


def _rows(
    problem: Problem, outcomes: Sequence[Outcome]
) -> Iterator[tuple[str, Paper, Outcome | None, list[Scores]]]:
    """Yield name, paper's figures, outcome and scores of each row; an ensemble's members first."""
    done = {outcome.method: outcome for outcome in outcomes if outcome.problem == problem.name}
    for method in problem.methods:
        outcome = done.get(method.name)
        if outcome is None:
            yield from _not_run(method)
            continue
        if method.members is not None and outcome.members:
            name = f"{method.members.name}, mean of {len(outcome.members)}"
            yield name, method.members, outcome, outcome.members
        yield method.name, method.paper, outcome, [outcome.scores] if outcome.scores else []
    for paper in problem.quoted:
        yield paper.name, paper, None, []


def _not_run(method: Method) -> Iterator[tuple[str, Paper, None, list[Scores]]]:
    """Yield the paper's figures of a method that was not run."""
    if method.paper.error:
        yield method.name, method.paper, None, []


def heading(problem: Problem, outcomes: Sequence[Outcome]) -> str:
    """Return what stands above the table: the problem, its split and its sizes."""
    sizes = {(o.n_train, o.n_test) for o in outcomes if o.problem == problem.name and o.scores}
    told = [f"{train:,} rows for training, {test:,} for testing" for train, test in sorted(sizes)]
    return "\n".join([problem.title, problem.split, *told])


def _cells(
    name: str, paper: Paper, outcome: Outcome | None, scores: Sequence[Scores], *, entropy: bool
) -> dict[str, str]:
    """Return a row's text by heading, empty where there is nothing to say."""
    errors = _mean_and_deviation([100 * one.error for one in scores], 2)
    failed = outcome is not None and outcome.failure
    entropies = (paper.cross_entropy, _mean_and_deviation(_entropies(scores), 3))
    done = outcome is not None and outcome.scores is not None and name == outcome.method
    wrong = round(scores[0].error * outcome.n_test) if outcome and done else 0
    return {
        METHOD: name,
        "paper": paper.error,
        "error": "failed" if failed else errors,
        "paper_entropy": entropies[0] if entropy else "",
        "entropy": entropies[1] if entropy else "",
        "errors": f"{wrong:,}" if done and not entropy else "",
        **_measured(outcome if done else None),
    }


def _measured(outcome: Outcome | None) -> dict[str, str]:
    one = outcome or Outcome("", "")
    return {
        "directions": f"{one.directions:,}" if one.directions else "",
        "choose": f"{one.choose_seconds:.1f}" if one.n_candidates > 1 else "",
        "train": f"{one.train_seconds:.1f}" if outcome else "",
        "test": f"{one.test_seconds:.1f}" if outcome else "",
        "peak": f"{one.peak_bytes / 2**20:,.0f}" if outcome else "",
    }


def _entropies(scores: Sequence[Scores]) -> list[float]:
    return [one.cross_entropy for one in scores if one.cross_entropy is not None]


def _mean_and_deviation(values: Sequence[float], digits: int) -> str:
    if not values:
        return ""
    spread = f" ± {np.std(values, ddof=1):.{digits}f}" if len(values) > 1 else ""
    return f"{np.mean(values):.{digits}f}{spread}"


def _line(
    name: str, paper: Paper, outcome: Outcome, scores: Sequence[Scores], context: Context
) -> dict[str, object]:
    errors, entropies = [one.error for one in scores], _entropies(scores)
    figures = {
        "error": _mean(errors),
        "error_deviation": _deviation(errors),
        "cross_entropy": _mean(entropies),
        "cross_entropy_deviation": _deviation(entropies),
        "choose_seconds": f"{outcome.choose_seconds:.3f}",
        "train_seconds": f"{outcome.train_seconds:.3f}",
        "test_seconds": f"{outcome.test_seconds:.3f}",
        "parameters": json.dumps(outcome.parameters, default=str),
    }
    own = ("problem", "n_train", "n_test", "directions", "peak_bytes", "failure")
    return {
        "method": name,
        "paper_error_percent": paper.error,
        "paper_cross_entropy": paper.cross_entropy,
        "runs": len(scores),
        "candidates": outcome.n_candidates,
        **figures,
        **{field: getattr(outcome, field) for field in own},
        **{field: getattr(context, field) for field in ("quick", "threads", "seed")},
    }


def _mean(values: Sequence[float]) -> str:
    return f"{np.mean(values):.6f}" if values else ""


def _deviation(values: Sequence[float]) -> str:
    return f"{np.std(values, ddof=1):.6f}" if len(values) > 1 else ""
