"""Joint shifts, corrupted copies and max-margin PCA beside the single shift, over random splits.

Equations 4 to 7 and 12 to 15 of the paper on max-margin data shifting, which has no table of these
methods.
"""

import time
from functools import partial

import numpy as np
from sklearn.decomposition import PCA

from bench.papers import mmds_data
from bench.papers.mmds_data import EPOCHS, TOLERANCE, Split, centred, feature_accuracy
from bench.papers.protocol import Method, Problem, Protocol, Rows, seeds, subsample
from bench.papers.tables import HOW, frame_of, mean_fields, picked
from eigenfeat.maxmargin import MaxMarginPCA, MaxMarginShift, MulticlassSVM

MOVE_C = 0.1  # of the SVMs that move rows
CHOICE = {"scales": (0.0, 0.3, 0.6, 1.0, 1.5, 2.0), "cv": 3}
QUICK_CHOICE = {"scales": (0.0, 1.0), "cv": 2}
TEST_ROWS = 10_000
DIMENSIONS = (5, 10, 20)
STILL, ONCE = "PCA", "once"  # methods without a shift and with a single shift


def digits(folder, seed):
    """Split the digits into random halves."""
    given = mmds_data.load("Digits", folder, quick=False)
    X, y = (np.concatenate([getattr(rows, name) for rows in given]) for name in "Xy")
    return mmds_data.halves(Rows(X, y), 100 + seed)


def letters(folder, seed):
    """Load one of ten folds for training, and a subsample of the others for testing."""
    given = mmds_data.letters(folder, seed)
    return Split(given.train, subsample(given.test, TEST_ROWS, seed))


KINDS = (STILL, ONCE, "joint", "MaxMarginPCA", "corrupted")


def model(kind, n_components, context):
    """Make one of the compared methods."""
    pca = PCA(n_components, random_state=0)
    svm = MulticlassSVM(C=MOVE_C, tol=TOLERANCE, max_iter=EPOCHS, n_threads=context.threads)
    given = {"svm": svm, **(QUICK_CHOICE if context.quick else CHOICE)}
    if kind == STILL:
        return pca
    if kind == "MaxMarginPCA":
        return MaxMarginPCA(n_components, max_iter=30, **given)
    how = {"joint": {"moves": "joint", "tol": 1e-6}, "corrupted": {"moves": kind, "n_copies": 5}}
    return MaxMarginShift(pca, **how.get(kind, {}), **given)


def study(job, outcome):
    """Fill in an outcome: accuracy in percent and seconds of the fit for each split."""
    for seed in seeds(job.context):
        split = job.problem.load(job.folder, seed)
        train, test = centred(mmds_data.fewer(split) if job.context.quick else split)
        made = job.method.build(job.context)
        started = time.perf_counter()
        made.fit(train.X, train.y)
        seconds = time.perf_counter() - started
        read = feature_accuracy(made.transform, train, test, job.context.threads)
        outcome.splits.append((read, seconds))
        outcome.n_train, outcome.n_test = len(train), len(test)


def tell(run):
    """Yield a table of accuracies, and of gains over PCA and over the single shift by split."""
    yield frame_of(lines(run), *SHOWN)


SHOWN = (
    *("data", "method", "accuracy", "accuracy_deviation", f"over {STILL}", f"over {ONCE}"),
    *("mean_seconds", "splits"),
)


def lines(run):
    """Return a line for each outcome."""
    return [
        _line(outcome, run.done(problem), run.context)
        for problem in run.protocol.problems
        for outcome in run.done(problem).values()
    ]


def _line(outcome, done, context):
    line = {"data": outcome.problem, **picked(outcome, "method", "n_train", "n_test", "failure")}
    line |= picked(context, *HOW)
    if outcome.failure:
        return line
    right, seconds = np.transpose(outcome.splits)
    return line | {
        **mean_fields("accuracy", right),
        **{f"over {name}": _gain(outcome, done.get(name)) for name in (STILL, ONCE)},
        "mean_seconds": seconds.mean(),
        "splits": len(right),
        "accuracies": right.round(3).tolist(),
        "seconds": seconds.round(3).tolist(),
    }


def _gain(outcome, other):
    """Return the mean gain over another method on equal splits, and its standard error."""
    if other is None or other is outcome or other.failure:
        return ""
    gains = np.array([a - b for (a, _), (b, _) in zip(outcome.splits, other.splits, strict=True)])
    return f"{gains.mean():+.1f} ± {gains.std(ddof=1) / np.sqrt(len(gains)):.1f}"


def _problems():
    for load, (data, file) in zip(
        (mmds_data.mnist, digits, letters), mmds_data.FILES.items(), strict=True
    ):
        for dimension in DIMENSIONS:
            name = f"{data} {dimension}"
            methods = tuple(Method(kind, partial(model, kind, dimension)) for kind in KINDS)
            yield Problem(name, name, "", file, {}, load, methods, study=study)


PROTOCOLS = {"mmds-joint": Protocol("mmds-joint", tuple(_problems()), lines, tell, alone=False)}
