"""The papers' experiments run from end to end on tiny files."""

from __future__ import annotations

import csv
import dataclasses
import io
from importlib.util import find_spec

import numpy as np
import papers_support
import pytest
from papers_support import PROTOCOLS
from rich.console import Console
from scipy.stats import chi2
from sklearn.discriminant_analysis import LinearDiscriminantAnalysis
from sklearn.linear_model import LogisticRegression

from bench.papers import __main__ as cli
from bench.papers import choosing, gem, measuring, recordings
from bench.papers.literal_sets import by_the_letter
from bench.papers.protocol import Context, Data, DataError, Method, Outcome, Rows, check_files
from bench.papers.runner import reproduce
from eigenfeat.demo.early import signals
from eigenfeat.early import LocalQDA, MixtureCompletion, ReliableClassifier
from eigenfeat.early.set_rules import radius_of

QUICK = Context(quick=True)


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return papers_support.write_all(tmp_path_factory.mktemp("data"))


CASES = {  # the number of problems, and the methods
    "mnist": (1, None),
    "speech": (1, None),
    "ldg": (2, None),
    "ldg-small": (1, None),
    "ldg-transfer": (1, None),
    "early": (1, ["LDA", "ECTS"]),
}


@pytest.mark.parametrize("name", [*CASES, pytest.param("defaults", marks=pytest.mark.long)])
def test_a_protocol_runs_from_end_to_end(name, folder, tmp_path):
    count, only = CASES.get(name, (None, None))
    problems = [p for p in PROTOCOLS[name].of(QUICK) if (folder / p.file).exists()]
    protocol = dataclasses.replace(PROTOCOLS[name], problems=problems[:count])
    given = {} if name == "early" else {"measure": measuring.run}
    console = Console(width=160, record=True, file=io.StringIO())
    outcomes = reproduce(protocol, folder, tmp_path, QUICK, only=only, console=console, **given)
    assert {o.problem for o in outcomes} == {problem.name for problem in protocol.problems}
    assert outcomes[0].method in console.export_text()
    with (tmp_path / f"{name}-quick.csv").open(newline="", encoding="utf-8") as file:
        lines = list(csv.DictReader(file))
    assert {line["method"] for line in lines} >= {o.method for o in outcomes if not o.members}
    for line in lines:
        if not line["method"].startswith("LightGBM") or find_spec("lightgbm"):
            assert line["failure"] == ""


def test_covertype_leaves_out_repeated_samples_and_standardises_by_the_training_samples(folder):
    data = gem.load_covertype(folder / "covtype_subset.npz", Context())
    assert (len(data.train), len(data.test())) == (405, 45)
    np.testing.assert_allclose(data.train.X[:, :10].mean(axis=0), 0, atol=1e-5)
    np.testing.assert_allclose(data.train.X[:, :10].std(axis=0), 1, atol=1e-4)
    assert set(np.unique(data.train.X[:, 10:])) == {0, 1}


def test_no_speaker_is_in_two_parts_of_speech(folder):
    data = gem.load_speech(folder / "fsdd.npz", Context())
    n = len(recordings.fsdd_frames(folder / "fsdd.npz").y) // 6
    assert (len(data.train), len(data.development), len(data.test())) == (4 * n, n, n)


def test_the_best_on_held_out_samples_is_trained_on_all(rng):
    y, calls = np.arange(120) % 3, []
    train = Rows((rng.standard_normal((120, 4)) + 3 * np.eye(3, 4)[y]).astype(np.float32), y)

    class Counting(LogisticRegression):
        def fit(self, X, y):
            calls.append((self.C, len(y)))
            return super().fit(X, y)

    method = Method("m", lambda c: Counting(), grid={"C": (1e-6, 1.0)})
    found = Outcome("problem", "m")
    model = choosing.train(
        method, Data(train, lambda: train), "cross_entropy", Context(), found, str
    )
    assert calls == [(1e-6, 100), (1.0, 100), (1.0, 120)]
    assert (found.parameters, found.n_candidates) == ({"C": 1.0}, 2)
    scores = choosing.score(model, train)
    given = model.predict_proba(train.X)[np.arange(120), y]
    assert scores.error == np.mean(model.predict(train.X) != y)
    assert scores.cross_entropy == pytest.approx(-np.log(given).mean())


@pytest.mark.parametrize("mixture", [False, True])
@pytest.mark.parametrize("classifier", [LinearDiscriminantAnalysis(), LocalQDA(8)])
def test_sets_by_the_letter_have_a_degree_for_each_missing_entry(classifier, mixture):
    X, y = signals(60, np.random.default_rng(0))
    X = X[:, :12]
    rows = np.where(np.arange(12) < 5, X[:6], np.nan)
    for rule, radius in (("chebyshev", np.sqrt(7 / 0.1)), ("quadratic", np.sqrt(chi2.ppf(0.9, 7)))):
        completion = MixtureCompletion() if mixture else None
        model = ReliableClassifier(classifier, completion, rule, correct=False).fit(X, y)
        fitted = by_the_letter(model, rule).fitted_
        rule_input = fitted.rule_input(rows)
        found = radius_of(rule_input, fitted.rule.kind, np.full(6, 0.9))
        np.testing.assert_allclose(found, radius)


def test_a_missing_or_strange_file_is_named(tmp_path, capsys):
    arguments = ["mnist", "--data", str(tmp_path), "--output", str(tmp_path / "out")]
    assert cli.main(arguments) == 1
    printed = capsys.readouterr().err
    assert f"{tmp_path / 'mnist.npz'} with arrays X_train: (60000, 784) pixels" in printed
    assert printed.rstrip().endswith("got no such file")
    assert len(printed.splitlines()) == 1
    np.savez(tmp_path / "mnist.npz", X_train=[0], y_train=[0])
    with pytest.raises(DataError, match="got no X_test, y_test"):
        check_files(PROTOCOLS["mnist"], tmp_path)
    assert not (tmp_path / "out").exists()
