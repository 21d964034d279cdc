"""Accuracies over several splits beside the thesis's figures: tables and CSV files."""

from __future__ import annotations

import json
import warnings
from collections import Counter

import numpy as np

from bench.papers import figures
from bench.papers.tables import HOW, mean_and_deviation, mean_fields, new_table, picked

SIGNIFICANCE = 0.05
PRINTED = {  # by quantity, set and method
    "accuracy": figures.TABLE_3_1 | figures.TABLE_3_4,
    "few": figures.TABLE_3_3,
    "seconds": figures.TABLE_3_1_SECONDS | figures.TABLE_3_5,
}
OURS = ("LDG", "TransferLDG")
# Other choices of LDG's directions, which are left out of counts of the thesis's methods.
TRIED = ("LDG, 5 folds", "LDG, larger gamma", "LDG and Reg. FDA", "LDG or Reg. FDA")
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


class Comparison:
    """Outcomes and accuracies on a problem by method, and the thesis's figures.

    `ours` is the name of eigenfeat's method, "" if it has not run. `tied` are the best methods, if
    there are several.
    """

    def __init__(self, problem, run, value):
        self.problem, self.done = problem, done_on(problem, run)
        self.accuracies = accuracies(problem, run, value)
        self.printed = printed(value, problem)
        self.ours = next((name for name in OURS if name in self.accuracies), "")
        usual = {name: a for name, a in self.accuracies.items() if name not in TRIED}
        self.tied = best_or_tied(usual) if len(usual) > 1 else set()

    def verdict(self):
        """Compare our method with the thesis's figure or, without one, with the other methods."""
        own = self.accuracies.get(self.ours, [])
        if told := verdict(own, self.printed.get(self.ours, "")):
            return told
        if not self.ours or len(self.accuracies) < 2:
            return ""
        if np.mean(own) >= max(map(np.mean, self.accuracies.values())):
            return "best of these"
        return "tied" if self.ours in self.tied else "below"


def printed(kind, problem):
    """Return the thesis's figures of a problem, by method."""
    return PRINTED[kind].get(problem.name, {})


def done_on(problem, run):
    """Return the outcomes with results on a problem, by method."""
    return {name: outcome for name, outcome in run.done(problem).items() if outcome.splits}


def accuracies(problem, run, value="accuracy"):
    """Return the accuracies of each method on a problem, a number for each split.

    `value` is "accuracy", in the chosen dimension, or "few", in one dimension less than classes.
    """
    return {
        name: [getattr(score, value) for score in outcome.splits]
        for name, outcome in done_on(problem, run).items()
    }


def best_or_tied(accuracies):
    """Return the names of the best mean and of methods not significantly worse (paired t-test)."""
    from scipy.stats import ttest_rel

    best = max(accuracies.values(), key=np.mean, default=[])
    tied = set()
    for name, values in accuracies.items():
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # of constant differences
            p = ttest_rel(best, values).pvalue
        if np.mean(best) - np.mean(values) <= 1e-12 or p >= SIGNIFICANCE:
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


def tell_of_sets(title, problems, run, value="accuracy"):
    """Yield a table of accuracies, a line for each data set, a summary, and a table of seconds.

    Accuracies in `few` dimensions have no table of seconds, because the fits are those of the
    chosen dimensions.
    """
    begun = [Comparison(problem, run, value) for problem in problems if run.done(problem)]
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
    if run.context.quick:
        yield "A quick run, of few splits and rows: it shows that all works, verdicts mean little."
    yield from _summary([found for found in begun if found.ours])
    if value == "few":
        return
    table = new_table(["", *names, "most\nMB"])
    for found in begun:
        means = {name: f"{_seconds(outcome):.2f}" for name, outcome in found.done.items()}
        theirs = printed("seconds", found.problem)
        cells = [_above(means.get(name, ""), theirs.get(name, "")) for name in names]
        peak = max((outcome.peak_bytes for outcome in found.done.values()), default=0)
        table.add_row(found.problem.name, *cells, f"{peak / 2**20:,.0f}")
    yield "\nProcessor seconds a split, choices included; below them the thesis's seconds"
    yield table
    for found in begun:
        if found.problem.split:  # differs from the thesis's data
            yield f"{found.problem.name}: {found.problem.split}"


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
    sizes = sorted({(o.n_train, o.n_test) for o in found.done.values()})[:1]
    yield "".join(f"{train:,}\n{test:,}" for train, test in sizes)
    for name in names:
        own = _percent(found.accuracies.get(name, []))
        mark = "*" if name in found.tied else " "
        yield _above(own and own + mark, found.printed.get(name, ""), " ")
    yield found.verdict()


def _summary(begun):
    """Yield what LDG comes to over all sets beside the thesis's, and how often who is best."""
    printed = [found for found in begun if found.ours in found.printed]
    if printed:
        verdicts = Counter(found.verdict() for found in printed)
        told = [f"{verdicts[kind]} {kind}" for kind in (ABOVE, WITHIN, BELOW) if verdicts[kind]]
        own = 100 * np.mean([np.mean(found.accuracies[found.ours]) for found in printed])
        theirs = np.mean([float(found.printed[found.ours]) for found in printed])
        yield (
            f"LDG beside the thesis: {', '.join(told)}; mean over {len(printed)} sets "
            f"{own:.1f}, thesis {theirs:.1f}"
        )
    compared = [found.accuracies for found in begun if found.tied]
    tried = [name for name in TRIED if any(name in one for one in compared)]
    usual = [{n: v for n, v in one.items() if n not in TRIED} for one in compared]
    yield from _counted(usual, "Best or tied")
    for name in tried:  # in place of LDG
        swapped = [
            {n: one[name] if n == "LDG" else v for n, v in some.items()}
            for one, some in zip(compared, usual, strict=True)
            if name in one and "LDG" in some
        ]
        yield from _counted(swapped, f"With {name!r} as LDG, best or tied")


def _counted(compared, told):
    """Yield how often each method is best or tied, and its mean over the sets that all have."""
    compared = [one for one in compared if len(one) > 1]
    if not compared:
        return
    best = Counter(name for one in compared for name in best_or_tied(one))
    names = [name for name in dict.fromkeys(n for one in compared for n in one) if name in best]
    full = [one for one in compared if all(name in one for name in names)]
    means = {n: 100 * np.mean([np.mean(one[n]) for one in full]) for n in names} if full else {}
    counts = ", ".join(
        f"{name} {count}" + (f" (mean {means[name]:.1f})" if means else "")
        for name, count in best.most_common()
    )
    yield f"{told} out of {len(compared)}: {counts}"


def _above(mean, printed, mark=""):
    return f"{mean}\n{printed}{mark}" if printed else mean


def _percent(values):
    return mean_and_deviation(100 * np.asarray(values), 1)


def _seconds(outcome):
    return float(np.mean([score.seconds for score in outcome.splits]))


# ---- files ---------------------------------------------------------------------------------------


def lines(run):
    """Return a line for each method and problem, and a second file of accuracies by dimension."""
    done = [(p, one) for p in run.protocol.problems for one in run.done(p).values()]
    found = [_line(problem, outcome, run.context) for problem, outcome in done]
    curves = [line for _, outcome in done for line in _curve_lines(outcome)]
    return {"": (FIELDS, found), "-curves": (CURVE_FIELDS, curves)}


def _line(problem, outcome, context):
    theirs = {kind: printed(kind, problem).get(outcome.method, "") for kind in PRINTED}
    line = {
        "thesis_accuracy_percent": theirs["accuracy"],
        "thesis_few_accuracy_percent": theirs["few"],
        "thesis_seconds": theirs["seconds"],
        "splits": len(outcome.splits),
        "note": problem.split,
        **picked(outcome, "problem", "method", "n_train", "n_test", "peak_bytes", "failure"),
        **picked(context, *HOW),
    }
    if not outcome.splits:
        return line
    scores = [score.accuracy for score in outcome.splits]
    return line | {
        **mean_fields("accuracy", scores),
        **mean_fields("few_accuracy", [s.few for s in outcome.splits if not np.isnan(s.few)]),
        "verdict": verdict(scores, theirs["accuracy"]) if outcome.method in OURS else "",
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
