"""The paper's experiments from end to end on tiny files: measurements and what is printed."""

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
from sklearn.linear_model import LogisticRegression

from bench.papers import __main__ as cli
from bench.papers import choosing, gem, measuring, recordings, runner
from bench.papers.protocol import (
    Context,
    Data,
    DataError,
    Method,
    Outcome,
    Rows,
    check_files,
)
from bench.papers.runner import reproduce

LINEAR = Method("logistic regression", choosing.standardised_logistic)
QUICK = Context(quick=True)


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return papers_support.write_all(tmp_path_factory.mktemp("data"))


@pytest.fixture
def console():
    return Console(width=120, record=True, file=io.StringIO())


def with_methods(protocol, *methods):
    """The protocol's first problem with other methods."""
    problem = dataclasses.replace(protocol.problems[0], methods=methods)
    return dataclasses.replace(protocol, problems=(problem,))


def lines_of(path):
    with path.open(newline="", encoding="utf-8") as file:
        return list(csv.DictReader(file))


# ---- every protocol ------------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["mnist", pytest.param("defaults", marks=pytest.mark.long)])
def test_a_protocol_runs_from_end_to_end(name, folder, tmp_path, console):
    protocol = PROTOCOLS[name]
    outcomes = reproduce(
        protocol, folder, tmp_path, QUICK, peers=True, console=console, measure=measuring.run
    )
    assert [(o.problem, o.method) for o in outcomes] == [
        (problem.name, method.name) for problem in protocol.problems for method in problem.methods
    ]
    text = console.export_text()
    for problem in protocol.problems:
        assert problem.title in text
        for figures in [m.paper for m in problem.methods] + list(problem.quoted.values()):
            assert figures.get("error", "") in text
    lines = lines_of(tmp_path / f"{name}-quick.csv")
    assert len(lines) >= len(outcomes)
    has_lightgbm = find_spec("lightgbm") is not None
    for line in lines:
        if line["method"].startswith("LightGBM") and not has_lightgbm:
            assert 'pip install "eigenfeat[bench]"' in line["failure"]
            continue
        assert line["failure"] == ""
        assert 0 <= float(line["error"]) < 0.6
        assert int(line["peak_bytes"]) > 2**20


def test_speech_tells_members_and_ensemble(folder, tmp_path, console):
    (outcome,) = reproduce(
        PROTOCOLS["speech"], folder, tmp_path, QUICK, console=console, measure=measuring.run
    )
    assert len(outcome.members) == 5
    members, ensemble = lines_of(tmp_path / "speech-quick.csv")
    assert (members["method"], members["runs"]) == ("GEM, mean of 5", "5")
    assert (ensemble["method"], ensemble["runs"]) == ("GEM (ensemble)", "1")
    entropies = [one.cross_entropy for one in outcome.members]
    assert float(members["cross_entropy"]) == pytest.approx(np.mean(entropies), abs=1e-6)
    deviation = float(members["cross_entropy_deviation"])
    assert deviation == pytest.approx(np.std(entropies, ddof=1), abs=1e-6)
    # By Jensen's inequality the geometric mean is at least as good as the members on average.
    assert outcome.scores.cross_entropy <= np.mean(entropies) + 1e-9


# ---- splits --------------------------------------------------------------------------------------


def test_covertype_leaves_out_repeated_rows_and_standardises_by_the_training_rows(folder):
    data = gem.load_covertype(folder / "covtype_subset.npz", Context())
    train, test = data.train, data.test()
    assert (len(train), len(test)) == (405, 45)
    assert train.X.dtype == np.float32
    np.testing.assert_allclose(train.X[:, :10].mean(axis=0), 0, atol=1e-5)
    np.testing.assert_allclose(train.X[:, :10].std(axis=0), 1, atol=1e-4)
    assert set(np.unique(train.X[:, 10:])) == {0, 1}
    other = gem.load_covertype(folder / "covtype_subset.npz", Context(seed=1))
    assert not np.array_equal(train.y, other.train.y)


def test_no_speaker_is_in_two_parts_of_speech(folder):
    data = gem.load_speech(folder / "fsdd.npz", Context())
    n = len(recordings.fsdd_frames(folder / "fsdd.npz").y) // 6
    assert (len(data.train), len(data.development), len(data.test())) == (4 * n, n, n)
    assert len(gem.load_speech(folder / "fsdd.npz", QUICK).train) == 4 * n // 6


# ---- choosing ------------------------------------------------------------------------------------


def rows(rng, n):
    y = np.arange(n) % 3
    return Rows((rng.standard_normal((n, 4)) + 3 * np.eye(3, 4)[y]).astype(np.float32), y)


def test_scores_are_errors_and_cross_entropy(rng):
    train = rows(rng, 90)
    model = LogisticRegression().fit(train.X, train.y)
    scores = choosing.score(model, train)
    given = model.predict_proba(train.X)[np.arange(90), train.y]
    assert scores.error == np.mean(model.predict(train.X) != train.y)
    assert scores.cross_entropy == pytest.approx(-np.log(given).mean())
    unseen = choosing.score(model, Rows(train.X[:2], np.array([0, 7])))
    assert 300 < unseen.cross_entropy < 400  # -log of the smallest float, over two


def test_the_best_on_held_out_rows_is_trained_on_all(rng):
    train, calls = rows(rng, 120), []

    class Counting(LogisticRegression):
        def fit(self, X, y):
            calls.append((self.C, len(y)))
            return super().fit(X, y)

    method = Method("m", lambda c: Counting(), grid={"C": (1e-6, 1.0)})
    found = Outcome("problem", "m")
    choosing.train(method, Data(train, lambda: train), "cross_entropy", Context(), found, str)
    assert calls == [(1e-6, 100), (1.0, 100), (1.0, 120)]
    assert (found.parameters, found.n_candidates) == ({"C": 1.0}, 2)
    calls.clear()
    held_out = Data(train, lambda: train, development=rows(rng, 30))
    choosing.train(method, held_out, "cross_entropy", Context(), found, str)
    assert calls == [(1e-6, 120), (1.0, 120), (1.0, 120)]


# ---- what is printed -----------------------------------------------------------------------------


def test_an_interrupt_keeps_what_is_finished(folder, tmp_path, console):
    methods = [dataclasses.replace(LINEAR, name=name) for name in ("first", "second", "third")]

    def interrupted(one, step):
        if one.method.name == "second":
            raise KeyboardInterrupt
        return measuring.run(one, step)

    protocol = with_methods(PROTOCOLS["defaults"], *methods)
    with pytest.raises(KeyboardInterrupt):
        reproduce(protocol, folder, tmp_path, QUICK, console=console, measure=interrupted)
    assert [line["method"] for line in lines_of(tmp_path / "defaults-quick.csv")] == ["first"]
    text = console.export_text()
    assert "first" in text
    assert "third" not in text


# ---- the command ---------------------------------------------------------------------------------


def test_the_command_prints_a_table_and_writes_a_file(folder, tmp_path, capsys, monkeypatch):
    monkeypatch.setitem(runner.reproduce.__kwdefaults__, "measure", measuring.run)
    arguments = ["defaults", "--data", str(folder), "--quick", "--only", "logistic"]
    arguments += ["--threads", "1", "--output", str(tmp_path / "new")]
    assert cli.main(arguments) == 0
    out = capsys.readouterr().out
    for problem in PROTOCOLS["defaults"].problems:
        assert problem.title in out
    assert len(lines_of(tmp_path / "new" / "defaults-quick.csv")) == 6


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
