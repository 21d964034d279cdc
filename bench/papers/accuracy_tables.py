"""Accuracies over several splits beside the thesis's figures: tables and CSV files."""

import json
import warnings
from collections import Counter
from itertools import islice

import numpy as np

from bench.papers import figures
from bench.papers.tables import HOW, frame_of, mean_and_deviation, mean_fields, picked

SIGNIFICANCE = 0.05
PRINTED = {  # by quantity, set and method
    "accuracy": figures.TABLE_3_1 | figures.TABLE_3_4,
    "few": figures.TABLE_3_3,
    "seconds": figures.TABLE_3_1_SECONDS | figures.TABLE_3_5,
}
OURS = ("LDG", "TransferLDG")
UNION = "LDG and Reg. FDA"  # a method of ours, left out where methods of the thesis are counted
ABOVE, WITHIN, BELOW = "at or above", "within spread", "below"
LEGEND = (
    "Each cell: mean \u00b1 deviation over the splits, and the thesis's figure; * is best, or not "
    "significantly worse by a paired t-test (95%).\n"
    "Verdicts on LDG: at or above the thesis's mean (to the printed digits), within one of our "
    "standard deviations of it (the thesis prints no deviations), or below."
)


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
    tied = []
    for name, values in accuracies.items():
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # ignore warnings about constant differences
            p = ttest_rel(best, values).pvalue
        if np.mean(best) - np.mean(values) <= 1e-12 or p >= SIGNIFICANCE:
            tied.append(name)
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
    begun = [problem for problem in problems if done_on(problem, run)]
    if not begun:
        return
    rows, seconds, compared = [], [], {}
    for problem in begun:
        done, found = done_on(problem, run), accuracies(problem, run, value)
        compared[problem.name] = found
        printed, theirs = (PRINTED[kind].get(problem.name, {}) for kind in (value, "seconds"))
        tied = best_or_tied(_usual(found))
        cells = {
            name: mean_and_deviation(100 * np.asarray(accuracy), 1) + "*" * (name in tied)
            for name, accuracy in found.items()
        }
        sizes = next(f"{one.n_train:,} + {one.n_test:,}" for one in done.values())
        verdicts = [verdict(found[name], printed.get(name, "")) for name in OURS if name in found]
        row = {"set": problem.name, "rows + tested": sizes, **_beside(cells, printed)}
        rows.append(row | {"verdict": " ".join(verdicts)})
        means = {name: f"{_seconds(outcome):.2f}" for name, outcome in done.items()}
        seconds.append({"set": problem.name, **_beside(means, theirs)})
    yield f"\n{title}"
    yield frame_of(rows)
    yield LEGEND
    yield from _summary(compared, PRINTED[value])
    if value == "accuracy":
        yield "\nProcessor seconds per split, choices included, and the thesis's seconds"
        yield frame_of(seconds)
        for problem in begun:
            if problem.split:  # differs from the thesis's data
                yield f"{problem.name}: {problem.split}"


def tell_of_sparsity(problem, run):
    """Yield the number of columns with nonzero weight in each of the first directions."""
    rows = []
    for name, outcome in done_on(problem, run).items():
        nonzeros = zip(*(score.nonzeros for score in outcome.splits), strict=False)
        accuracy = [100 * score.accuracy for score in outcome.splits]
        cosine = np.mean([_cosine(score.overlaps) for score in outcome.splits])
        row = {"method": name, "accuracy %": np.mean(accuracy), "cosine": cosine}
        rows.append(row | {i: np.mean(counts) for i, counts in enumerate(islice(nonzeros, 8), 1)})
    if rows:
        yield f"\n{problem.title}"
        yield frame_of(rows)
        yield (
            "Mean absolute cosine of two directions, and number of columns with nonzero weight in "
            "each direction, from the first; means over the splits."
        )


def _cosine(overlaps):
    """Return the mean of the entries off the diagonal."""
    n = len(overlaps)
    return float((overlaps.sum() - np.trace(overlaps)) / max(n * (n - 1), 1))


def _summary(compared, printed):
    """Yield LDG's mean over all sets beside the thesis's, and how often each method is best.

    `compared` and `printed` have accuracies and the thesis's figures, by set and method.
    """
    pairs = [
        (found["LDG"], printed[name]["LDG"])
        for name, found in compared.items()
        if "LDG" in found and "LDG" in printed.get(name, {})
    ]
    if pairs:
        verdicts = Counter(verdict(*pair) for pair in pairs)
        told = ", ".join(f"{count} {kind}" for kind, count in verdicts.items())
        own = 100 * np.mean([np.mean(ours) for ours, _ in pairs])
        theirs = np.mean([float(figure) for _, figure in pairs])
        yield (
            f"LDG beside the thesis: {told}; mean over {len(pairs)} sets {own:.1f}, thesis "
            f"{theirs:.1f}"
        )
    usual = {name: _usual(found) for name, found in compared.items()}
    yield f"Best or tied {_counts(usual.values())}"
    swapped = [
        usual[data] | {"LDG": found[UNION]} for data, found in compared.items() if UNION in found
    ]
    if swapped:
        yield f"With {UNION!r} as LDG, best or tied {_counts(swapped)}"


def _usual(found):
    return {name: accuracy for name, accuracy in found.items() if name != UNION}


def _counts(compared):
    """Tell how often each method is best or tied, and its mean over its sets."""
    compared = [found for found in compared if len(found) > 1]
    best = Counter(name for found in compared for name in best_or_tied(found))
    means = {
        name: 100 * np.mean([np.mean(found[name]) for found in compared if name in found])
        for name in best
    }
    counts = (f"{name} {count} (mean {means[name]:.1f})" for name, count in best.most_common())
    return f"out of {len(compared)}: {', '.join(counts)}"


def _beside(ours, printed):
    """Return our cells, and the thesis's figures in brackets."""
    cells = {
        name: f"{cell} ({printed[name]})" if name in printed else cell
        for name, cell in ours.items()
    }
    return cells | {name: f"({figure})" for name, figure in printed.items() if name not in ours}


def _seconds(outcome):
    return float(np.mean([score.seconds for score in outcome.splits]))


# ---- the file ------------------------------------------------------------------------------------


def lines(run):
    """Return a line for each method and problem."""
    return [
        _line(problem, outcome, run.context)
        for problem in run.protocol.problems
        for outcome in run.done(problem).values()
    ]


def _line(problem, outcome, context):
    theirs = {
        kind: figures_of.get(problem.name, {}).get(outcome.method, "")
        for kind, figures_of in PRINTED.items()
    }
    line = {
        **picked(outcome, "problem", "method"),
        "thesis_accuracy_percent": theirs["accuracy"],
        "thesis_few_accuracy_percent": theirs["few"],
        "thesis_seconds": theirs["seconds"],
        "splits": len(outcome.splits),
        **picked(outcome, "n_train", "n_test", "peak_bytes"),
        "note": problem.split,
        "failure": outcome.failure,
        **picked(context, *HOW),
    }
    if not outcome.splits:
        return line
    scores = [score.accuracy for score in outcome.splits]
    shown = sorted({m for score in outcome.splits for m in score.curve})
    curve = {
        m: np.mean([score.curve[m] for score in outcome.splits if m in score.curve]) for m in shown
    }
    return line | {
        **mean_fields("accuracy", scores),
        **mean_fields("few_accuracy", [s.few for s in outcome.splits if not np.isnan(s.few)]),
        "accuracies": json.dumps([round(score, 6) for score in scores]),
        "dimensions": json.dumps([score.dimension for score in outcome.splits]),
        "curve": json.dumps({m: round(mean, 6) for m, mean in curve.items()}),
        "seconds": round(_seconds(outcome), 3),
        "parameters": json.dumps([score.parameters for score in outcome.splits], default=str),
    }
