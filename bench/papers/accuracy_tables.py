"""Accuracies over several splits beside the thesis's figures: tables and CSV files."""

from __future__ import annotations

import json
from collections import Counter
from typing import NamedTuple

import numpy as np

from bench.papers import figures
from bench.papers.protocol import N_SPLITS, Problem
from bench.papers.tables import HOW, mean_and_deviation, mean_fields, new_table, picked

SIGNIFICANCE = 0.05
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
    *("peak_bytes", "parameters", "note", "failure", *HOW),
)
CURVE_FIELDS = ("problem", "method", "dimension", "accuracy", "accuracy_deviation", "splits")


class Found(NamedTuple):
    """What was measured on a problem: outcomes and accuracies by method, and the thesis's."""

    problem: Problem
    done: dict
    accuracies: dict[str, list[float]]
    printed: dict[str, str]

    @property
    def ours(self):
        """The name of our method, "" if it has not run."""
        return next((name for name in OURS if name in self.accuracies), "")

    def tied(self):
        """The best methods, if there are several."""
        return best_or_tied(self.accuracies) if len(self.accuracies) > 1 else set()


def done_on(problem, run):
    """Return what has been measured on a problem, by method."""
    return {name: outcome for name, outcome in run.done(problem).items() if outcome.splits}


def accuracies(problem, run, value="accuracy"):
    """Return what each method that has run got on a problem, one number a split.

    `value` is "accuracy", in the chosen dimension, or "few", in one less than there are classes.
    """
    return {
        name: [getattr(score, value) for score in outcome.splits]
        for name, outcome in done_on(problem, run).items()
    }


def best_or_tied(accuracies):
    """Return the best mean's name, and those not significantly worse by a paired t-test."""
    from scipy.stats import t

    best = max(accuracies.values(), key=np.mean, default=[])
    n = len(best)
    limit = float(t.ppf(1 - SIGNIFICANCE / 2, n - 1)) if n > 1 else np.inf
    tied = set()
    for name, values in accuracies.items():
        gaps = np.asarray(best) - np.asarray(values)
        error = float(np.std(gaps, ddof=1)) / np.sqrt(n) if n > 1 else 0.0
        # Without any spread a gap is what it is.
        if float(gaps.mean()) <= (limit * error if error > 0 else 1e-12):
            tied.add(name)
    return tied


def verdict(values, printed):
    """Compare accuracies between 0 and 1 with the thesis's mean in percent; "" without one."""
    if not printed or not len(values):
        return ""
    percent = 100 * np.asarray(values)
    if round(float(percent.mean()), 1) >= float(printed):
        return ABOVE
    spread = float(np.std(percent, ddof=1)) if len(percent) > 1 else 0.0
    return WITHIN if float(percent.mean()) + spread >= float(printed) else BELOW


# ---- tables --------------------------------------------------------------------------------------


def tell_of_sets(title, problems, run, printed, seconds=None, value="accuracy"):
    """Yield a table of accuracies, a line a data set, what it comes to, and a table of seconds."""
    begun = [
        Found(p, done_on(p, run), accuracies(p, run, value), printed.get(p.name, {}))
        for p in problems
        if run.done(p)
    ]
    if not begun:
        return
    names = [method.name for found in begun for method in found.problem.methods]
    names = list(dict.fromkeys(names + [name for found in begun for name in found.printed]))
    table = new_table(["", "rows,\ntested", *names, "verdict"])
    for found in begun:
        table.add_row(found.problem.name, *_cells(found, names))
    yield f"\n{title}"
    yield table
    yield LEGEND
    if any(0 < len(outcome.splits) < N_SPLITS for outcome in run.outcomes):
        yield "A quick run, of few splits and rows: it shows that all works, verdicts mean little."
    yield from _summary([found for found in begun if found.ours])
    if seconds is None:
        return
    table = new_table(["", *names, "most\nMB"])
    for found in begun:
        means = {name: f"{_seconds(outcome):.2f}" for name, outcome in found.done.items()}
        theirs = seconds.get(found.problem.name, {})
        cells = [_above(means.get(name, ""), theirs.get(name, "")) for name in names]
        peak = max((outcome.peak_bytes for outcome in found.done.values()), default=0)
        table.add_row(found.problem.name, *cells, f"{peak / 2**20:,.0f}")
    yield "\nSeconds a split, choices included; below them the thesis's"
    yield table
    for problem, *_ in begun:
        if problem.split:  # where the data is not the thesis's
            yield f"{problem.name}: {problem.split}"


def tell_of_sparsity(problem, run):
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


def _cosine(overlaps):
    """Return the mean of what is off the diagonal."""
    n = len(overlaps)
    return float((overlaps.sum() - np.trace(overlaps)) / max(n * (n - 1), 1))


def _cells(found, names):
    """Return the numbers of rows, each method's accuracy above the thesis's, and the verdict."""
    _, done, right, printed = found
    best, ours = found.tied(), found.ours
    marks = {name: _percent(right[name]) + ("*" if name in best else " ") for name in right}
    sizes = sorted({(o.n_train, o.n_test) for o in done.values()})[:1]
    yield "".join(f"{train:,}\n{test:,}" for train, test in sizes)
    for name in names:
        yield _above(marks.get(name, ""), printed.get(name, ""), " ")
    yield verdict(right.get(ours, []), printed.get(ours, "")) or _among(ours, right, best)


def _summary(begun):
    """Yield what LDG comes to over all sets beside the thesis's, and how often who is best."""
    verdicts, best = Counter(), Counter()
    pairs = []
    for found in begun:
        own, printed = found.accuracies[found.ours], found.printed.get(found.ours, "")
        verdicts[verdict(own, printed)] += 1
        if printed:
            pairs.append((100 * float(np.mean(own)), float(printed)))
        best.update(sorted(found.tied()))
    told = [f"{verdicts[kind]} {kind}" for kind in (ABOVE, WITHIN, BELOW) if verdicts[kind]]
    if told:
        mean, printed_mean = np.mean(pairs, axis=0)
        yield (
            f"LDG beside the thesis: {', '.join(told)}; mean over {len(pairs)} sets "
            f"{mean:.1f}, thesis {printed_mean:.1f}"
        )
    compared = sum(len(found.accuracies) > 1 for found in begun)
    if compared:
        counts = ", ".join(f"{name} {count}" for name, count in best.most_common())
        yield f"Best or tied out of {compared}: {counts}"


def _among(ours, found, best):
    """Say where our accuracy is among those of the others, for want of a figure of the thesis."""
    if not ours or len(found) < 2:
        return ""
    others = max(float(np.mean(values)) for name, values in found.items() if name != ours)
    if float(np.mean(found[ours])) >= others:
        return "best of these"
    return "tied" if ours in best else "below"


def _above(mean, printed, mark=""):
    return f"{mean}\n{printed}{mark}" if printed else mean


def _percent(values):
    return mean_and_deviation(100 * np.asarray(values), 1)


def _seconds(outcome):
    return float(np.mean([score.seconds for score in outcome.splits]))


# ---- files ---------------------------------------------------------------------------------------


def lines(run):
    """Return one line a method and problem, and accuracies by dimension in a file beside it."""
    problems = {problem.name: problem for problem in run.protocol.problems}
    found = [_line(problems[one.problem], one, run.context) for one in run.outcomes]
    curves = [line for outcome in run.outcomes for line in _curve_lines(outcome)]
    return {"": (FIELDS, found), "-curves": (CURVE_FIELDS, curves)}


def _line(problem, outcome, context):
    small = problem.name in figures.TABLE_3_4
    tables = {
        "thesis_accuracy_percent": figures.TABLE_3_4 if small else figures.TABLE_3_1,
        "thesis_seconds": figures.TABLE_3_5 if small else figures.TABLE_3_1_SECONDS,
        "thesis_few_accuracy_percent": figures.TABLE_3_3,
    }
    printed = {
        name: table.get(problem.name, {}).get(outcome.method, "") for name, table in tables.items()
    }
    line = {
        **printed,
        "splits": len(outcome.splits),
        "note": problem.split,
        **picked(outcome, "problem", "method", "n_train", "n_test", "peak_bytes", "failure"),
        **picked(context, *HOW),
    }
    if not outcome.splits:
        return line
    scores = [score.accuracy for score in outcome.splits]
    known = printed["thesis_accuracy_percent"]
    return line | {
        **mean_fields("accuracy", scores),
        **mean_fields("few_accuracy", [s.few for s in outcome.splits if not np.isnan(s.few)]),
        "verdict": verdict(scores, known) if outcome.method in OURS else "",
        "accuracies": json.dumps([round(score, 6) for score in scores]),
        "dimensions": json.dumps([score.dimension for score in outcome.splits]),
        "seconds": f"{_seconds(outcome):.3f}",
        "parameters": json.dumps([score.parameters for score in outcome.splits], default=str),
    }


def _curve_lines(outcome):
    for m in sorted({m for score in outcome.splits for m in score.curve}):
        values = [score.curve[m] for score in outcome.splits if m in score.curve]
        own = {**picked(outcome, "problem", "method"), "dimension": m, "splits": len(values)}
        yield {**own, **mean_fields("accuracy", values)}
