"""Errors beside the GEM paper's figures: a table for the terminal, and one CSV line each."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from bench.papers.protocol import Context, Files, Outcome, Paper, Problem, Report, Run, Scores
from bench.papers.tables import mean_and_deviation, mean_fields, new_table

if TYPE_CHECKING:
    from rich.table import Table

Row = tuple[str, Paper, Outcome | None, list[Scores]]

HEADINGS = {
    "method": "\nmethod",
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
    *("problem", "method", "paper_error_percent", "paper_cross_entropy"),
    *("error", "error_deviation", "cross_entropy", "cross_entropy_deviation", "runs"),
    *("n_train", "n_test", "directions", "candidates"),
    *("choose_seconds", "train_seconds", "test_seconds", "peak_bytes"),
    *("parameters", "failure", "quick", "threads", "seed"),
)


def tell(run: Run) -> Iterator[Any]:
    """Yield each problem that was begun: its split and sizes, its table, and remarks."""
    for problem in run.protocol.problems:
        done = run.done(problem)
        if done:
            yield ""
            yield problem.title, "bold"
            yield from problem.split.splitlines()
            for train, test in sorted({(o.n_train, o.n_test) for o in done.values() if o.scores}):
                yield f"{train:,} rows for training, {test:,} for testing"
            yield comparison(problem, done)
            for outcome in done.values():
                yield from ((remark, "dim") for remark in _remarks(outcome))


def comparison(problem: Problem, done: Mapping[str, Outcome]) -> Table:
    """Return the table of one problem: a row for each method that was run or quoted."""
    rows = list(_rows(problem, done))
    cells = [_cells(*row, entropy=problem.objective == "cross_entropy") for row in rows]
    shown = [name for name in HEADINGS if any(row[name] for row in cells)]
    table = new_table([HEADINGS[name] for name in shown])
    for (_, _, outcome, _), row in zip(rows, cells, strict=True):
        style = "dim" if outcome is None else "red" if outcome.failure else None
        table.add_row(*(row[name] for name in shown), style=style)
    return table


def lines(run: Run) -> Files:
    """Return one line for each row of ours."""
    found = [
        _line(name, paper, outcome, scores, run.context)
        for problem in run.protocol.problems
        for name, paper, outcome, scores in _rows(problem, run.done(problem))
        if outcome is not None
    ]
    return {"": (FIELDS, found)}


REPORT = Report(tell, lines)


def _remarks(outcome: Outcome) -> Iterator[str]:
    """Yield what was chosen, a failure, and each kind of warning."""
    if outcome.failure:
        yield f"{outcome.method} failed: {outcome.failure}"
    if outcome.n_candidates > 1:
        pairs = ", ".join(f"{name} {value}" for name, value in outcome.parameters.items())
        yield f"{outcome.method}: {pairs}; chosen out of {outcome.n_candidates}"
    for text in outcome.warnings:
        yield f"{outcome.method} warned: {text}"


def _rows(problem: Problem, done: Mapping[str, Outcome]) -> Iterator[Row]:
    """Yield name, paper's figures, outcome and scores of each row; an ensemble's members first."""
    for method in problem.methods:
        outcome = done.get(method.name)
        if outcome is None:
            if method.paper.error:
                yield method.name, method.paper, None, []
            continue
        if method.members is not None and outcome.members:
            name = f"{method.members.name}, mean of {len(outcome.members)}"
            yield name, method.members, outcome, outcome.members
        yield method.name, method.paper, outcome, [outcome.scores] if outcome.scores else []
    for paper in problem.quoted:
        yield paper.name, paper, None, []


def _cells(
    name: str, paper: Paper, outcome: Outcome | None, scores: Sequence[Scores], *, entropy: bool
) -> dict[str, str]:
    """Return a row's text by heading, empty where there is nothing to say."""
    cells = dict.fromkeys(HEADINGS, "") | {"method": name, "paper": paper.error}
    cells["error"] = mean_and_deviation([100 * one.error for one in scores], 2)
    if entropy:
        cells["paper_entropy"] = paper.cross_entropy
        cells["entropy"] = mean_and_deviation(_entropies(scores), 3)
    if outcome is None:
        return cells
    if outcome.failure:
        cells["error"] = "failed"
    if outcome.scores is None or name != outcome.method:
        return cells
    if not entropy:
        cells["errors"] = f"{round(scores[0].error * outcome.n_test):,}"
    return cells | {
        "directions": f"{outcome.directions:,}" if outcome.directions else "",
        "choose": f"{outcome.choose_seconds:.1f}" if outcome.n_candidates > 1 else "",
        "train": f"{outcome.train_seconds:.1f}",
        "test": f"{outcome.test_seconds:.1f}",
        "peak": f"{outcome.peak_bytes / 2**20:,.0f}",
    }


def _entropies(scores: Sequence[Scores]) -> list[float]:
    return [one.cross_entropy for one in scores if one.cross_entropy is not None]


def _line(
    name: str, paper: Paper, outcome: Outcome, scores: Sequence[Scores], context: Context
) -> dict[str, object]:
    own = ("problem", "n_train", "n_test", "directions", "peak_bytes", "failure")
    seconds = ("choose_seconds", "train_seconds", "test_seconds")
    return {
        "method": name,
        "paper_error_percent": paper.error,
        "paper_cross_entropy": paper.cross_entropy,
        "runs": len(scores),
        "candidates": outcome.n_candidates,
        "parameters": json.dumps(outcome.parameters, default=str),
        **mean_fields("error", [one.error for one in scores]),
        **mean_fields("cross_entropy", _entropies(scores)),
        **{field: f"{getattr(outcome, field):.3f}" for field in seconds},
        **{field: getattr(outcome, field) for field in own},
        **{field: getattr(context, field) for field in ("quick", "threads", "seed")},
    }
