"""Early classifiers as the thesis compares them: each run over its knob, and measured."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace
from functools import partial
from importlib import import_module
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.base import clone

from bench.papers import settings
from eigenfeat.incomplete import (
    ECTS,
    FixedTime,
    LocalQDA,
    MixtureCompletion,
    NotCertifiedError,
    ReliableClassifier,
    early_scores,
)

__all__ = ["METHODS", "EarlyData", "EarlyMethod", "Point", "Trial"]

Array = NDArray[Any]
Step = Callable[[str], None]


@dataclass(frozen=True, eq=False)
class EarlyData:
    """An official split: series and labels; `slow_rows` are as many as a slow method tests on."""

    X_train: Array
    y_train: Array
    X_test: Array
    y_test: Array
    slow_rows: int

    def first(self, count: int) -> EarlyData:
        """The same with the first test rows only; they are in random order."""
        return replace(self, X_test=self.X_test[:count], y_test=self.y_test[:count])


@dataclass(frozen=True)
class Point:
    """Figures of one run; `value` is that of the method's knob, seconds are per test row."""

    value: float
    n_test: int
    reliability: float
    accuracy: float
    mean_time: float
    earliness: float
    harmonic_mean: float
    seconds: float


@dataclass
class Trial:
    """What a method did on a set; `first_seconds` is the time per row of deciding at t = 1.

    For a calibrated one, by the agreement that is wanted: `taus` are those that were certified,
    `nominal` is what a tau of that agreement does on the same rows.
    """

    problem: str
    method: str
    points: list[Point] = field(default_factory=list)
    fit_seconds: float = 0.0
    features: int = 0
    first_seconds: float | None = None
    chosen: str = ""
    nominal: dict[float, Point] = field(default_factory=dict)
    taus: dict[float, float] = field(default_factory=dict)
    failure: str = ""


@dataclass(frozen=True)
class EarlyMethod:
    """A name, the knob's name, and what runs it: yields points into a trial.

    `sets` are those it is run on, None all of them.
    """

    name: str
    knob: str
    run: Callable[[EarlyData, Trial, int | None, Step], Iterator[Point]]
    sets: tuple[str, ...] | None = None


class Reliable:
    """`ReliableClassifier` over tau; the time to fit includes the choice of neighbours."""

    def __init__(
        self,
        kind: str,
        set: str = "quadratic",
        *,
        mixture: bool = False,
        ldg: bool = False,
        slow: bool = False,
        taus: tuple[float, ...] = settings.EARLY_TAUS,
    ) -> None:
        self.kind = kind
        self.set = set
        self.mixture = mixture
        self.ldg = ldg
        self.slow = slow
        self.taus = taus

    def __call__(
        self, data: EarlyData, trial: Trial, threads: int | None, step: Step
    ) -> Iterator[Point]:
        model = self.fitted(data, trial, threads, step)
        trial.features = data.X_train.shape[1]
        if model.features_ is not None:
            trial.features = int(model.features_.transform(data.X_train[:1]).shape[1])
        data = data.first(data.slow_rows) if self.slow else data
        trial.first_seconds = _first_seconds(model, data.X_test)
        complete = model.predict(data.X_test)
        for tau in self.taus:
            step(f"tau {tau:g}")
            decide = partial(model.predict_early, data.X_test, tau)
            yield _measured(data, complete, tau, decide)

    def fitted(
        self, data: EarlyData, trial: Trial, threads: int | None, step: Step
    ) -> ReliableClassifier:
        """The classifier, and in the trial how long it took and what was chosen."""
        step("training")
        model = ReliableClassifier(
            _classifier(self.kind, threads),
            MixtureCompletion(n_threads=threads) if self.mixture else None,
            self.set,
            features=_ldg(threads) if self.ldg else None,
            correct=False,  # the thesis's rules as they are
            n_threads=threads,
        )
        started = time.perf_counter()
        model.fit(data.X_train, data.y_train)
        trial.fit_seconds = time.perf_counter() - started
        trial.chosen = _told(model)
        return model


class Calibrated(Reliable):
    """Half of the test rows certify a tau for an agreement that is wanted, on half it is tried."""

    def __call__(
        self, data: EarlyData, trial: Trial, threads: int | None, step: Step
    ) -> Iterator[Point]:
        model = self.fitted(data, trial, threads, step)
        held = len(data.X_test) // 2
        rest = replace(data, X_test=data.X_test[held:], y_test=data.y_test[held:])
        complete = model.predict(rest.X_test)
        for wanted in settings.EARLY_WANTED:
            step(f"agreement {wanted:g}")
            decide = partial(model.predict_early, rest.X_test)
            trial.nominal[wanted] = _measured(rest, complete, wanted, partial(decide, wanted))
            try:
                model.calibrate(
                    data.X_test[:held], agreement=wanted, confidence=settings.EARLY_CONFIDENCE
                )
            except NotCertifiedError:
                continue
            trial.taus[wanted] = model.reliability_
            yield _measured(rest, complete, wanted, partial(decide, model.reliability_))


def fixed_qda(data: EarlyData, trial: Trial, threads: int | None, step: Step) -> Iterator[Point]:
    """Local QDA at fixed times; the number of neighbours is that of complete series."""
    step("training")
    started = time.perf_counter()
    chosen = LocalQDA(n_threads=threads).fit(data.X_train, data.y_train)
    trial.fit_seconds = time.perf_counter() - started
    trial.chosen = f"{chosen.n_neighbors_} neighbours"
    yield from _fixed(LocalQDA(chosen.n_neighbors_, n_threads=threads), data, step)


def fixed_nearest(
    data: EarlyData, trial: Trial, threads: int | None, step: Step
) -> Iterator[Point]:
    """The nearest neighbour at fixed times."""
    yield from _fixed(None, data, step)


def ects(data: EarlyData, trial: Trial, threads: int | None, step: Step) -> Iterator[Point]:
    """ECTS over its minimum support."""
    for support in settings.EARLY_SUPPORTS:
        step(f"support {support:g}")
        started = time.perf_counter()
        model = ECTS(support).fit(data.X_train, data.y_train)
        trial.fit_seconds = time.perf_counter() - started
        complete = model.predict(data.X_test)
        yield _measured(data, complete, support, partial(model.predict_early, data.X_test))


def _fixed(classifier: Any, data: EarlyData, step: Step) -> Iterator[Point]:
    d = data.X_train.shape[1]
    shares = np.ceil(np.array(settings.EARLY_SHARES) * d).astype(int)
    complete = None
    for at in np.unique(np.maximum(shares, 1))[::-1]:
        step(f"{at} samples")
        model = FixedTime(None if classifier is None else clone(classifier), int(at))
        model.fit(data.X_train, data.y_train)
        if complete is None:
            complete = model.predict(data.X_test)
        yield _measured(data, complete, int(at), partial(model.predict_early, data.X_test))


def _measured(data: EarlyData, complete: Array, value: float, decide: Callable[[], Any]) -> Point:
    started = time.perf_counter()
    early = decide()
    seconds = (time.perf_counter() - started) / len(data.y_test)
    found = early_scores(early, data.X_test.shape[1], complete=complete, y=data.y_test)
    assert found.reliability is not None
    assert found.accuracy is not None
    assert found.harmonic_mean is not None
    return Point(
        float(value),
        found.n,
        found.reliability,
        found.accuracy,
        found.mean_time,
        found.earliness,
        found.harmonic_mean,
        seconds,
    )


def _first_seconds(model: ReliableClassifier, X: Array) -> float:
    """Seconds a row to decide, or not, after one sample; tau as in the thesis's tables."""
    rows = np.full(X[: settings.EARLY_TIMED_ROWS].shape, np.nan)
    rows[:, 0] = X[: len(rows), 0]
    taken = []
    for _ in range(settings.EARLY_REPEATS + 1):  # the first builds what all later ones share
        started = time.perf_counter()
        model.decide(rows, settings.EARLY_TABLE_TAU)
        taken.append(time.perf_counter() - started)
    return min(taken[1:]) / len(rows)


def _classifier(kind: str, threads: int | None) -> Any:
    from sklearn.discriminant_analysis import LinearDiscriminantAnalysis
    from sklearn.svm import LinearSVC

    if kind == "local QDA":
        return LocalQDA(n_threads=threads)
    if kind == "linear SVM":
        return LinearSVC(max_iter=settings.EARLY_SVM_ITERATIONS)
    return LinearDiscriminantAnalysis(solver="lsqr", shrinkage="auto")


def _ldg(threads: int | None) -> Any:
    """LDG with its own choice of features and parameters, on columns as they are."""
    return import_module("eigenfeat.ldg").LDG(
        standardize=False, random_state=settings.SEED, n_threads=threads
    )


def _told(model: ReliableClassifier) -> str:
    count = getattr(model.classifier_, "n_neighbors_", None)
    return "" if count is None else f"{count} neighbours"


_THREE = ("SyntheticControl", "MedicalImages", "TwoPatterns")

METHODS = (
    EarlyMethod("local QDA, quadratic", "tau", Reliable("local QDA")),
    EarlyMethod("local QDA, box", "tau", Reliable("local QDA", "box"), _THREE),
    EarlyMethod(
        "local QDA, Chebyshev", "tau", Reliable("local QDA", "chebyshev", slow=True), _THREE
    ),
    EarlyMethod(
        "local QDA, quadratic, mixture", "tau", Reliable("local QDA", mixture=True), _THREE
    ),
    EarlyMethod("local QDA on LDG, quadratic", "tau", Reliable("local QDA", ldg=True)),
    EarlyMethod("linear SVM, quadratic", "tau", Reliable("linear SVM"), _THREE),
    EarlyMethod("linear SVM, box", "tau", Reliable("linear SVM", "box"), _THREE),
    EarlyMethod("linear SVM, Chebyshev", "tau", Reliable("linear SVM", "chebyshev"), _THREE),
    EarlyMethod(
        "linear SVM, quadratic, mixture", "tau", Reliable("linear SVM", mixture=True), _THREE
    ),
    EarlyMethod(
        "LDA, pairwise", "tau", Reliable("LDA", "pairwise", taus=settings.EARLY_PAIRWISE_TAUS)
    ),
    EarlyMethod("local QDA, quadratic, calibrated", "agreement", Calibrated("local QDA")),
    EarlyMethod("LDA, pairwise, calibrated", "agreement", Calibrated("LDA", "pairwise")),
    EarlyMethod("ECTS", "support", ects),
    EarlyMethod("fixed time, local QDA", "samples", fixed_qda),
    EarlyMethod("fixed time, 1-NN", "samples", fixed_nearest),
)
