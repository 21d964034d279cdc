"""Chapter 5 of Parrish's thesis: early decisions on the archive's time series.

Each method runs with several values of its parameter, on six data sets of the thesis with their
official splits. Test series are put in random order, and the first `TEST_ROWS` of them are used.
"""

from __future__ import annotations

import time
import warnings
from dataclasses import dataclass, field, replace
from functools import partial
from timeit import repeat

import numpy as np
from numpy.typing import NDArray
from scipy.stats import beta
from sklearn.discriminant_analysis import LinearDiscriminantAnalysis
from sklearn.svm import LinearSVC
from threadpoolctl import threadpool_limits

from bench.papers import early_tables, pictures
from bench.papers.baselines.early import ECTS, FixedTime
from bench.papers.early_tables import PLAIN, REDUCED, TABLE_TAU
from bench.papers.protocol import Method, Outcome, Problem, Protocol, read_arrays
from eigenfeat.early import (
    EarlyScores,
    GaussianCompletion,
    LocalQDA,
    MixtureCompletion,
    ReliableClassifier,
    early_scores,
)
from eigenfeat.early.set_rules import ChebyshevSet, ConfidenceSet, QuadraticSet, SetRule
from eigenfeat.ldg import LDG

TAUS = (0.001, 0.1, 0.25, 0.9)
PAIRWISE_TAUS = (0.1, 0.25, 0.5, 0.7, 0.8, 0.9, 0.95, 0.99)
WANTED = (0.9, 0.95)  # agreements to calibrate for, on half of the test series
CONFIDENCE = 0.9
SUPPORTS = (0.0, 0.05, 0.1, 0.2, 0.4, 0.8)
SHARES = (0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9, 1.0)  # of a series, for fixed times
TEST_ROWS, QUICK_ROWS = 1_000, 60
# Test series of methods for which local QDA solves an eigenproblem for each series and step.
SLOW_ROWS, QUICK_SLOW_ROWS = 10, 2
TIMED_ROWS, REPEATS = 50, 3
SVM_ITERATIONS = 5_000

THREE = ("SyntheticControl", "MedicalImages", "TwoPatterns")
SETS = (
    *("SyntheticControl", "ItalyPowerDemand", "MedicalImages"),
    *("TwoPatterns", "ChlorineConcentration", "Wafer"),
)
QUICK_SETS = SETS[:3]
ARRAYS = {
    "X_train": "(n, d) series for training",
    "y_train": "(n,) labels",
    "X_test": "(m, d) series for testing",
    "y_test": "(m,) labels",
}


@dataclass(frozen=True, eq=False)
class Series:
    """An official split: series and labels, and the number of test series for slow methods."""

    X_train: NDArray[np.float64]
    y_train: NDArray[np.int64]
    X_test: NDArray[np.float64]
    y_test: NDArray[np.int64]
    slow_rows: int

    def part(self, rows):
        """Return the split with a part of the test series, which are in random order."""
        return replace(self, X_test=self.X_test[rows], y_test=self.y_test[rows])


@dataclass(frozen=True)
class Point(EarlyScores):
    """Scores of a run with a value of the method's parameter; seconds are per test series."""

    value: float
    seconds: float


@dataclass
class Trial(Outcome):
    """Results of a method on a set of series with `n_samples` samples.

    `knob` is the name of the parameter that varies, `first_step_seconds` the time per series of
    a decision at t = 1. Calibrated methods have, by wanted agreement, certified `taus`, and
    `nominal`, the scores of a tau that equals the agreement, on the same series.
    """

    n_samples: int = 0
    knob: str = ""
    points: list[Point] = field(default_factory=list)
    fit_seconds: float = 0.0
    features: int = 0
    first_step_seconds: float | None = None
    chosen: str = ""
    nominal: dict[float, Point] = field(default_factory=dict)
    taus: dict[float, float] = field(default_factory=dict)


def load(path, context):
    """Return a set's split with a part of its test series, in an order drawn by the seed."""
    X, y, X_test, y_test = read_arrays(path, *ARRAYS)
    limit = QUICK_ROWS if context.quick else TEST_ROWS
    limit = limit if context.rows is None else context.rows
    # Always shuffled, so that the first series are a random part.
    kept = np.random.RandomState(context.seed).permutation(len(y_test))[:limit]
    slow = QUICK_SLOW_ROWS if context.quick else SLOW_ROWS
    wide = X.astype(np.float64), X_test.astype(np.float64)
    return Series(wide[0], y, wide[1][kept], y_test[kept], slow)


def study(job, trial):
    """Fill in a trial: a point for each value of the parameter."""
    threads = job.context.threads
    data = job.load()
    trial.n_samples = data.X_train.shape[1]
    # Ignore the warnings of folds without a class and of the SVM's iterations.
    with threadpool_limits(threads), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for point in job.method.build(data, trial, threads):
            trial.points.append(point)  # one by one, so that an error keeps the points before it


# ---- the thesis's sets as they are printed -------------------------------------------------------


class LiteralChebyshev(ChebyshevSet):
    """(5.3) as printed: as many degrees of freedom as missing entries.

    The package's set has fewer degrees of freedom where the theorem allows it.
    """

    def degrees(self, rule_input):
        """Numbers (n,) of missing entries."""
        return rule_input.n_missing


class LiteralQuadratic(QuadraticSet):
    """(5.4) as printed, with the chi-square quantile, which needs uncorrelated entries.

    A mixture has one set, about its mean and with its variances.
    """

    any_distribution = True
    probability = ConfidenceSet.probability


LITERAL_SETS = {"chebyshev": LiteralChebyshev(), "quadratic": LiteralQuadratic()}

# ---- methods, which yield a point for each value of a parameter and set the trial's `knob` -------


def _timed_fit(model, data, trial):
    """Train, and set the trial's seconds of training."""
    started = time.perf_counter()
    model.fit(data.X_train, data.y_train)
    trial.fit_seconds = time.perf_counter() - started
    return model


def _neighbours(classifier):
    """Describe the chosen number of neighbours; the choice is part of the training."""
    count = getattr(classifier, "n_neighbors_", None)
    return "" if count is None else f"{count} neighbours"


def _fitted(data, trial, threads, kind, rule="quadratic", mixture=False, ldg=False, literal=False):
    model = ReliableClassifier(
        CLASSIFIERS[kind](threads),
        (MixtureCompletion if mixture else GaussianCompletion)(n_threads=threads),
        rule,
        # LDG chooses the number of features and its parameters; columns are not standardised.
        features=LDG(standardize=False, random_state=0, n_threads=threads) if ldg else None,
        correct=False,  # the thesis's rules, without the correction by held-out series
        n_threads=threads,
    )
    _timed_fit(model, data, trial)
    trial.chosen = _neighbours(model.classifier_)
    if literal:
        model.fitted_ = replace(model.fitted_, rule=SetRule(LITERAL_SETS[rule]))
    return model


CLASSIFIERS = {  # the beginning of a method's name: its classifier with this number of threads
    "local QDA": lambda threads: LocalQDA(n_threads=threads),
    "linear SVM": lambda threads: LinearSVC(max_iter=SVM_ITERATIONS),
    "LDA": lambda threads: LinearDiscriminantAnalysis(solver="lsqr", shrinkage="auto"),
}


def reliable(data, trial, threads, *, slow=False, taus=TAUS, **given):
    """`ReliableClassifier` over tau."""
    trial.knob = "tau"
    model = _fitted(data, trial, threads, **given)
    rows = data.X_train[:1]
    if model.features_ is not None:
        rows = model.features_.transform(rows)
    trial.features = rows.shape[1]
    asked = data.part(slice(data.slow_rows)) if slow else data
    trial.first_step_seconds = _first_step_seconds(model, asked.X_test)
    complete = model.predict(asked.X_test)
    for tau in taus:
        yield _measured(asked, complete, tau, partial(model.predict_early, asked.X_test, tau))


def calibrated(data, trial, threads, **given):
    """Certify a tau for each wanted agreement on half of the test series; test on the rest."""
    trial.knob = "agreement"
    model = _fitted(data, trial, threads, **given)
    held = len(data.X_test) // 2
    rest = data.part(slice(held, None))
    complete = model.predict(rest.X_test)
    traced = model.predict_early(data.X_test[:held], trace=True)
    wrong = traced.trace_label != model.predict(data.X_test[:held])[:, None]
    largest = np.where(wrong, traced.trace_reliability, 0.0).max(axis=1)
    for wanted in WANTED:
        decide = partial(model.predict_early, rest.X_test)
        trial.nominal[wanted] = _measured(rest, complete, wanted, partial(decide, wanted))
        tau = _certified_tau(largest, wanted)
        if tau < 1:
            trial.taus[wanted] = tau
            yield _measured(rest, complete, wanted, partial(decide, tau))


def _certified_tau(largest, wanted):
    """Return the smallest tau at which at most 1 - wanted of new series are decided wrongly.

    `largest` (n,) has, for each held-out series, the largest tau of a wrong decision. The bound
    holds with probability `CONFIDENCE`.
    """
    n = len(largest)
    shares = beta.ppf(1 - CONFIDENCE, np.arange(1, n + 1), np.arange(n, 0, -1))
    enough = np.sort(largest)[shares >= wanted]
    return np.clip(enough[0] * (1 + 1e-12), 1e-12, 1) if len(enough) else 1.0


def ects(data, trial, threads):
    """ECTS over its minimum support."""
    trial.knob = "support"
    for support in SUPPORTS:
        model = _timed_fit(ECTS(support), data, trial)
        complete = model.predict(data.X_test)
        yield _measured(data, complete, support, partial(model.predict_early, data.X_test))


def fixed(data, trial, threads, *, qda):
    """Local QDA, or the nearest neighbour, at fixed times.

    Complete series choose the number of neighbours.
    """
    trial.knob = "samples"
    classifier = complete = None
    if qda:
        chosen = _timed_fit(LocalQDA(n_threads=threads), data, trial)
        trial.chosen = _neighbours(chosen)
        classifier = LocalQDA(chosen.n_neighbors_, n_threads=threads)
    shares = np.ceil(np.array(SHARES) * data.X_train.shape[1]).astype(int)
    for at in np.unique(np.maximum(shares, 1))[::-1]:
        model = FixedTime(classifier, int(at)).fit(data.X_train, data.y_train)
        if complete is None:
            complete = model.predict(data.X_test)
        yield _measured(data, complete, int(at), partial(model.predict_early, data.X_test))


def _measured(data, complete, value, decide):
    started = time.perf_counter()
    early = decide()
    seconds = (time.perf_counter() - started) / len(data.y_test)
    found = early_scores(early, data.X_test.shape[1], complete=complete, y=data.y_test)
    return Point(**vars(found), value=float(value), seconds=seconds)


def _first_step_seconds(model, X):
    """Return the seconds per series of a decision after one sample, with the tau of the tables."""
    rows = np.full(X[:TIMED_ROWS].shape, np.nan)
    rows[:, 0] = X[: len(rows), 0]
    decide = partial(model.decide, rows, TABLE_TAU)
    decide()  # builds factorisations that later calls share
    return min(repeat(decide, number=1, repeat=REPEATS)) / len(rows)


def _named(name, sets=SETS, build=reliable, **given):
    """Return a method, named after its classifier, and the data on which it runs."""
    return Method(name, partial(build, kind=name.partition(",")[0], **given)), sets


METHODS = (
    _named(PLAIN),
    _named("local QDA, box", THREE, rule="box"),
    _named("local QDA, Chebyshev", THREE, rule="chebyshev", slow=True),
    _named("local QDA, quadratic, mixture", THREE, mixture=True),
    (Method(REDUCED, partial(reliable, kind="local QDA", ldg=True)), SETS),
    _named("linear SVM, quadratic", THREE),
    _named("linear SVM, box", THREE, rule="box"),
    _named("linear SVM, Chebyshev", THREE, rule="chebyshev"),
    _named("linear SVM, quadratic, mixture", THREE, mixture=True),
    # (5.3) and (5.4) as printed, with a single set for a mixture.
    _named("local QDA, quadratic, literal", THREE, literal=True),
    _named("local QDA, Chebyshev, literal", THREE, rule="chebyshev", slow=True, literal=True),
    _named("local QDA, quadratic, mixture, literal", THREE, mixture=True, literal=True),
    _named("linear SVM, quadratic, literal", THREE, literal=True),
    _named("linear SVM, Chebyshev, literal", THREE, rule="chebyshev", literal=True),
    _named("linear SVM, quadratic, mixture, literal", THREE, mixture=True, literal=True),
    _named("LDA, pairwise", rule="pairwise", taus=PAIRWISE_TAUS),
    _named("local QDA, quadratic, calibrated", build=calibrated),
    _named("LDA, pairwise, calibrated", build=calibrated, rule="pairwise"),
    (Method("ECTS", ects), SETS),
    (Method("fixed time, local QDA", partial(fixed, qda=True)), SETS),
    (Method("fixed time, 1-NN", partial(fixed, qda=False)), SETS),
)

# ---- problems ------------------------------------------------------------------------------------


PROBLEMS = tuple(
    Problem(
        name=name,
        title=name,
        split="official split",
        file=f"ucr/{name}.npz",
        arrays=ARRAYS,
        load=load,
        methods=tuple(method for method, sets in METHODS if name in sets),
        study=study,
        outcome=Trial,
        in_quick=name in QUICK_SETS,
    )
    for name in SETS
)
REPORTS = early_tables.lines, early_tables.tell, pictures.draw_early
PROTOCOLS = {"early": Protocol("early", PROBLEMS, *REPORTS, alone=False)}
