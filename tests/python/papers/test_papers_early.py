"""`bench.papers early` and `eigenfeat demo early`: what they run, print and write."""

from __future__ import annotations

import csv
import io
from dataclasses import replace

import numpy as np
import pytest
from rich.console import Console
from scipy.stats import chi2
from sklearn.discriminant_analysis import LinearDiscriminantAnalysis

from bench.papers import early, early_tables
from bench.papers.baselines.early import ECTS
from bench.papers.early import METHODS
from bench.papers.literal_sets import by_the_letter
from bench.papers.protocol import Context
from bench.papers.runner import reproduce
from eigenfeat.demo import early as demo_early
from eigenfeat.early import (
    LocalQDA,
    MixtureCompletion,
    ReliableClassifier,
    early_scores,
)
from eigenfeat.early.set_rules import radius_of


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """Tiny files under the names of the archive's sets."""
    rng = np.random.default_rng(3)
    root = tmp_path_factory.mktemp("data")
    (root / "ucr").mkdir()
    for name in SETS:
        arrays = {}
        for part, n in (("train", 30), ("test", 40)):
            y = np.arange(n) % 3 + 1
            X = rng.standard_normal((n, 10)).cumsum(axis=1) / 3 + y[:, None] * np.linspace(0, 2, 10)
            arrays |= {f"X_{part}": X.astype(np.float32), f"y_{part}": y}
        np.savez(root / "ucr" / f"{name}.npz", **arrays)
    return root


SETS = ("ItalyPowerDemand", "MedicalImages")
EARLY = early.PROTOCOLS["early"]
EARLY = replace(EARLY, problems=[p for p in EARLY.problems if p.name in SETS])


def run(folder, output, context, protocol=EARLY, **options):
    text = io.StringIO()
    console = Console(file=text, width=200)
    trials = reproduce(protocol, folder, output, context, console=console, **options)
    return trials, text.getvalue()


@pytest.fixture(scope="module")
def finished(folder, tmp_path_factory):
    output = tmp_path_factory.mktemp("out")
    return (*run(folder, output, Context(quick=True, seed=4)), output)


def lines_of(path):
    with path.open(newline="") as file:
        return list(csv.DictReader(file))


def test_every_method_runs_on_its_sets(finished):
    trials, _, output = finished
    expected = [(name, m.name) for name in SETS for m, sets in METHODS if name in sets]
    assert [(t.problem, t.method) for t in trials] == expected
    for trial in trials:
        if "LDG" in trial.method:
            continue  # where the package has it
        assert not trial.failure
        if trial.nominal:
            assert set(trial.nominal) == set(early.WANTED)
            assert {p.n for p in trial.nominal.values()} == {20}
            assert [p.value for p in trial.points] == list(trial.taus)
            continue
        assert len(trial.points) >= 4
        slow = trial.method.startswith("local QDA, Chebyshev")
        assert {p.n for p in trial.points} == {early.QUICK_SLOW_ROWS if slow else 40}
    lines = lines_of(output / "early-quick.csv")
    assert {line["problem"] for line in lines} == set(SETS)
    assert set(lines[0]) == set(early_tables.FIELDS)


@pytest.mark.parametrize("mixture", [False, True])
@pytest.mark.parametrize("kind", ["linear", "local"])
def test_sets_by_the_letter_have_a_degree_for_each_missing_entry(kind, mixture):
    X, y = demo_early.signals(60, np.random.default_rng(0))
    X = X[:, :12]
    rows = np.where(np.arange(12) < 5, X[:6], np.nan)
    classifier = LinearDiscriminantAnalysis() if kind == "linear" else LocalQDA(8)
    tau = np.full(6, 0.9)
    for rule, radius in (("chebyshev", np.sqrt(7 / 0.1)), ("quadratic", np.sqrt(chi2.ppf(0.9, 7)))):
        completion = MixtureCompletion() if mixture else None
        model = ReliableClassifier(classifier, completion, rule, correct=False).fit(X, y)
        fitted = by_the_letter(model, rule).fitted_
        rule_input = fitted.rule_input(rows)
        np.testing.assert_allclose(radius_of(rule_input, fitted.rule.kind, tau), radius)
        # One set, about the mean: no best class but that of the mean, and nothing by parts.
        output = fitted.rule.decide(rule_input, tau)
        np.testing.assert_array_equal(output.best, rule_input.scores.argmax(axis=1))
        assert set(np.unique(output.reliability)) <= {0.0, 0.9}


def test_figures_are_those_of_the_estimators(finished, folder):
    trials, text, output = finished
    name = "ItalyPowerDemand"
    data = early.load(folder / "ucr" / f"{name}.npz", Context(quick=True, seed=4))
    with np.load(folder / "ucr" / f"{name}.npz") as file:
        assert sorted(map(tuple, data.X_test)) == sorted(map(tuple, file["X_test"].astype(float)))
    model = ReliableClassifier(LocalQDA(), rule="quadratic", correct=False).fit(
        data.X_train, data.y_train
    )
    ects = ECTS(0.2).fit(data.X_train, data.y_train)
    for method, knob, one, given in (
        ("local QDA, quadratic", 0.25, model, (0.25,)),
        ("ECTS", 0.2, ects, ()),
    ):
        found = early_scores(
            one.predict_early(data.X_test, *given),
            10,
            complete=one.predict(data.X_test),
            y=data.y_test,
        )
        (point,) = (
            p
            for t in trials
            if (t.problem, t.method) == (name, method)
            for p in t.points
            if p.value == knob
        )
        assert (point.reliability, point.accuracy) == (found.reliability, found.accuracy)
        assert (point.mean_time, point.harmonic_mean) == (found.mean_time, found.harmonic_mean)
        assert f"{found.reliability:.3f}" in text
        (line,) = (
            one
            for one in lines_of(output / "early-quick.csv")
            if (one["problem"], one["method"]) == (name, method) and float(one["value"]) == knob
        )
        assert float(line["mean_time"]) == pytest.approx(found.mean_time, abs=1e-6)
