"""Accuracies over several splits beside the thesis's figures: tables and CSV files."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from bench.papers import figures, splits
from bench.papers.protocol import Context, Files, Outcome, Problem, Run
from bench.papers.splits import Score
from bench.papers.tables import mean_and_deviation, mean_fields, new_table
from bench.papers.three_nearest import best_or_tied

if TYPE_CHECKING:
    from rich.table import Table

Figures = Mapping[str, Mapping[str, str]]
Value = Callable[[Score], float]

OURS = ("LDG", "TransferLDG")
ABOVE, WITHIN, BELOW = "at or above", "within spread", "below"
LEGEND = (
    "Each cell: mean \u00b1 deviation over the splits, below it the thesis's figure, if it has "
    "one; * is best, or not significantly worse by a paired t-test (95%).\n"
    "The verdict is LDG's: at or above the thesis's mean to the digit printed, within one of our "
    "deviations of it (the thesis prints none), or below; without a figure, its place among these."
)
FIELDS = (
    *("problem", "method", "thesis_accuracy_percent", "accuracy", "accuracy_deviation", "splits"),
    *("accuracies", "dimensions", "thesis_few_accuracy_percent", "few_accuracy"),
    *("few_accuracy_deviation", "verdict", "n_train", "n_test", "thesis_seconds", "seconds"),
    *("peak_bytes", "parameters", "note", "failure", "quick", "threads", "seed"),
)
CURVE_FIELDS = ("problem", "method", "dimension", "accuracy", "accuracy_deviation", "splits")


def accuracy_of(score: Score) -> float:
    """Return the accuracy in the chosen dimension."""
    return score.accuracy


def few_of(score: Score) -> float:
    """Return the accuracy in one dimension less than there are classes."""
    return np.nan if score.few is None else score.few


def done_on(problem: Problem, run: Run) -> dict[str, Outcome]:
    """Return what has been measured on a problem, by method."""
    return {name: outcome for name, outcome in run.done(problem).items() if outcome.splits}


def accuracies(problem: Problem, run: Run, value: Value = accuracy_of) -> dict[str, list[float]]:
    """Return what each method that has run got on a problem, one number a split."""
    return {
        name: [value(score) for score in outcome.splits]
        for name, outcome in done_on(problem, run).items()
    }


def verdict(values: Sequence[float], printed: str) -> str:
    """Compare accuracies between 0 and 1 with the thesis's mean in percent; "" without one."""
    if not printed or not len(values):
        return ""
    percent = 100 * np.asarray(values)
    if round(float(percent.mean()), 1) >= float(printed):
        return ABOVE
    spread = float(np.std(percent, ddof=1)) if len(percent) > 1 else 0.0
    return WITHIN if float(percent.mean()) + spread >= float(printed) else BELOW


# ---- tables --------------------------------------------------------------------------------------


def tell_of_sets(
    title: str,
    problems: Sequence[Problem],
    run: Run,
    printed: Figures,
    seconds: Figures | None = None,
    value: Value = accuracy_of,
) -> Iterator[Any]:
    """Yield a table of accuracies, a line a data set, what it comes to, and a table of seconds."""
    begun = [problem for problem in problems if run.done(problem)]
    if not begun:
        return
    yield f"\n{title}"
    yield _accuracy_table(begun, run, printed, value)
    yield LEGEND
    if any(0 < len(outcome.splits) < splits.N_SPLITS for outcome in run.outcomes):
        yield "A quick run, of few splits and rows: it shows that all works, verdicts mean little."
    yield from _summary(begun, run, printed, value)
    if seconds is None:
        return
    yield "\nSeconds a split, choices included; below them the thesis's"
    yield _seconds_table(begun, run, seconds)
    for problem in begun:
        if problem.split:  # where the data is not the thesis's
            yield f"{problem.name}: {problem.split}"
    for outcome in run.outcomes:
        if outcome.failure:
            yield f"{outcome.problem}, {outcome.method} failed: {outcome.failure}"
        for text in outcome.warnings:
            yield f"{outcome.problem}, {outcome.method} warned: {text}"


def tell_of_sparsity(problem: Problem, run: Run) -> Iterator[Any]:
    """Yield how many columns the first directions have weight on."""
    done = done_on(problem, run)
    if not done:
        return
    yield f"\n{problem.title}"
    shown = min(8, min(len(score.nonzeros) for o in done.values() for score in o.splits))
    table = new_table(["", "accuracy %", *(f"{i}" for i in range(1, shown + 1)), "cosine", "s"])
    for name, outcome in done.items():
        counts = np.array([score.nonzeros[:shown] for score in outcome.splits])
        means = (f"{mean:.1f}" for mean in counts.mean(axis=0))
        right = _percent([score.accuracy for score in outcome.splits])
        cosine = np.mean([_cosine(score.overlaps) for score in outcome.splits])
        table.add_row(name, right, *means, f"{cosine:.2f}", f"{_seconds(outcome):.1f}")
    yield table
    yield (
        "Columns that each direction has weight on, from the first, and the mean absolute cosine "
        "of two directions; means over the splits."
    )


def _cosine(overlaps: Any) -> float:
    """Return the mean of what is off the diagonal."""
    n = len(overlaps)
    return float((overlaps.sum() - np.trace(overlaps)) / max(n * (n - 1), 1))


def _accuracy_table(problems: Sequence[Problem], run: Run, figures: Figures, value: Value) -> Table:
    names = _columns(problems, figures)
    table = new_table(["", "rows,\ntested", *names, "verdict"])
    for problem in problems:
        found = accuracies(problem, run, value)
        best = best_or_tied(found) if len(found) > 1 else set()
        printed = figures.get(problem.name, {})
        marks = {name: _percent(found[name]) + ("*" if name in best else " ") for name in found}
        cells = [_above(marks.get(name, ""), printed.get(name, ""), " ") for name in names]
        ours = next((name for name in OURS if name in found), "")
        said = verdict(found.get(ours, []), printed.get(ours, "")) or _among(ours, found, best)
        sizes = sorted({(o.n_train, o.n_test) for o in done_on(problem, run).values()})[:1]
        rows = "".join(f"{train:,}\n{test:,}" for train, test in sizes)
        table.add_row(problem.name, rows, *cells, said)
    return table


def _seconds_table(problems: Sequence[Problem], run: Run, figures: Figures) -> Table:
    names = _columns(problems, figures)
    table = new_table(["", *names, "most\nMB"])
    for problem in problems:
        done = done_on(problem, run)
        means = {name: f"{_seconds(outcome):.2f}" for name, outcome in done.items()}
        printed = figures.get(problem.name, {})
        cells = [_above(means.get(name, ""), printed.get(name, "")) for name in names]
        peak = max((outcome.peak_bytes for outcome in done.values()), default=0)
        table.add_row(problem.name, *cells, f"{peak / 2**20:,.0f}")
    return table


def _summary(
    problems: Sequence[Problem], run: Run, figures: Figures, value: Value
) -> Iterator[str]:
    """Yield what LDG comes to over all sets beside the thesis's, and how often who is best."""
    verdicts: Counter[str] = Counter()
    pairs, best, compared = [], Counter[str](), 0
    for problem in problems:
        found = accuracies(problem, run, value)
        ours = next((name for name in OURS if name in found), None)
        if ours is None:
            continue
        printed = figures.get(problem.name, {}).get(ours, "")
        verdicts[verdict(found[ours], printed)] += 1
        if printed:
            pairs.append((100 * float(np.mean(found[ours])), float(printed)))
        if len(found) > 1:
            compared += 1
            best.update(sorted(best_or_tied(found)))
    told = [f"{verdicts[kind]} {kind}" for kind in (ABOVE, WITHIN, BELOW) if verdicts[kind]]
    if told:
        mean, printed_mean = np.mean(pairs, axis=0)
        yield (
            f"LDG beside the thesis: {', '.join(told)}; mean over {len(pairs)} sets "
            f"{mean:.1f}, thesis {printed_mean:.1f}"
        )
    if compared:
        counts = ", ".join(f"{name} {count}" for name, count in best.most_common())
        yield f"Best or tied out of {compared}: {counts}"


def _among(ours: str, found: Mapping[str, Sequence[float]], best: set[str]) -> str:
    """Say where our accuracy is among those of the others, for want of a figure of the thesis."""
    if not ours or len(found) < 2:
        return ""
    others = max(float(np.mean(values)) for name, values in found.items() if name != ours)
    if float(np.mean(found[ours])) >= others:
        return "best of these"
    return "tied" if ours in best else "below"


def _columns(problems: Sequence[Problem], figures: Figures) -> list[str]:
    """Return the methods that may run, and those of the thesis that nothing here runs."""
    names = [method.name for problem in problems for method in problem.methods]
    names += [name for problem in problems for name in figures.get(problem.name, {})]
    return list(dict.fromkeys(names))


def _above(mean: str, printed: str, mark: str = "") -> str:
    return f"{mean}\n{printed}{mark}" if printed else mean


def _percent(values: Sequence[float]) -> str:
    return mean_and_deviation(100 * np.asarray(values), 1)


def _seconds(outcome: Outcome) -> float:
    return float(np.mean([score.seconds for score in outcome.splits]))


# ---- files ---------------------------------------------------------------------------------------


def lines(run: Run) -> Files:
    """Return one line a method and problem, and accuracies by dimension in a file beside it."""
    problems = {problem.name: problem for problem in run.protocol.problems}
    found = [_line(problems[one.problem], one, run.context) for one in run.outcomes]
    curves = [line for outcome in run.outcomes for line in _curve_lines(outcome)]
    return {"": (FIELDS, found), "-curves": (CURVE_FIELDS, curves)}


def _line(problem: Problem, outcome: Outcome, context: Context) -> dict[str, object]:
    small = problem.name in figures.TABLE_3_4
    tables = {
        "thesis_accuracy_percent": figures.TABLE_3_4 if small else figures.TABLE_3_1,
        "thesis_seconds": figures.TABLE_3_5 if small else figures.TABLE_3_1_SECONDS,
        "thesis_few_accuracy_percent": figures.TABLE_3_3,
    }
    printed = {
        name: table.get(problem.name, {}).get(outcome.method, "") for name, table in tables.items()
    }
    own = ("problem", "method", "n_train", "n_test", "peak_bytes", "failure")
    line: dict[str, object] = {
        **printed,
        "splits": len(outcome.splits),
        "note": problem.split,
        **{field: getattr(outcome, field) for field in own},
        **{field: getattr(context, field) for field in ("quick", "threads", "seed")},
    }
    if not outcome.splits:
        return line
    scores = [score.accuracy for score in outcome.splits]
    fews = [score.few for score in outcome.splits if score.few is not None]
    known = printed["thesis_accuracy_percent"]
    return line | {
        **mean_fields("accuracy", scores),
        **mean_fields("few_accuracy", fews),
        "verdict": verdict(scores, known) if outcome.method in OURS else "",
        "accuracies": json.dumps([round(score, 6) for score in scores]),
        "dimensions": json.dumps([score.dimension for score in outcome.splits]),
        "seconds": f"{_seconds(outcome):.3f}",
        "parameters": json.dumps([score.parameters for score in outcome.splits], default=str),
    }


def _curve_lines(outcome: Outcome) -> Iterator[dict[str, object]]:
    for m in sorted({m for score in outcome.splits for m in score.curve}):
        values = [score.curve[m] for score in outcome.splits if m in score.curve]
        own = {"problem": outcome.problem, "method": outcome.method, "dimension": m}
        yield {**own, **mean_fields("accuracy", values), "splits": len(values)}
