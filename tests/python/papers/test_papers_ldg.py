"""The thesis's experiments on LDG, end to end on tiny files: splits, choices, tables, pictures."""

from __future__ import annotations

import csv
import dataclasses
import io
import json

import numpy as np
import papers_support
import pytest
from papers_support import PROTOCOLS
from rich.console import Console
from scipy import stats
from sklearn.neighbors import KNeighborsClassifier

from bench.papers import (
    families,
    ldg,
    measuring,
    splits,
)
from bench.papers.accuracy_tables import best_or_tied
from bench.papers.families import Rules, accuracy
from bench.papers.protocol import QUICK_SPLITS, Context
from bench.papers.runner import reproduce
from eigenfeat.ldg import LDG, RegularizedFisher

QUICK = Context(quick=True)
RULES = Rules(gammas=(0.2, 0.6, 1.0), at=1, most=5)
FOLDED = Rules(
    gammas=(0.1, 0.5),
    at=-1,
    ridges=(0.1, 10.0),
    steps=(-1, 0, 3),
    folds=3,
)


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return papers_support.write_all(tmp_path_factory.mktemp("data"))


@pytest.fixture
def console():
    return Console(width=160, record=True, file=io.StringIO())


def first_problems(name, count, last=0):
    problems = PROTOCOLS[name].problems
    chosen = problems[:count] + (problems[-last:] if last else ())
    return dataclasses.replace(PROTOCOLS[name], problems=chosen)


def run(protocol, folder, tmp_path, console, **options):
    return reproduce(
        protocol, folder, tmp_path, QUICK, console=console, measure=measuring.run, **options
    )


def lines_of(path):
    with path.open(newline="", encoding="utf-8") as file:
        return list(csv.DictReader(file))


def problem_rows(rng, n=60, d=8, k=3):
    codes = np.arange(n) % k
    return rng.standard_normal((n, d)) + 1.5 * np.eye(k, d)[codes], codes


# ---- end to end ----------------------------------------------------------------------------------


def test_table_3_1_is_printed_and_drawn(folder, tmp_path, console):
    protocol = first_problems("ldg", 2, last=1)
    outcomes = run(protocol, folder, tmp_path, console)
    assert [len(o.splits) for o in outcomes] == [QUICK_SPLITS] * 15
    text = console.export_text()
    for printed in (
        "71.3",
        "97.7",
        "135",
        "Table 3.1",
        "A quick run",
        "LDG beside the thesis",
        "Best or tied",
    ):
        assert printed in text
    for picture in ("accuracy", "sparsity", "embeddings"):
        assert (tmp_path / f"ldg-quick-{picture}.png").stat().st_size > 10_000
    lines = lines_of(tmp_path / "ldg-quick.csv")
    assert [(line["problem"], line["method"]) for line in lines] == [
        (o.problem, o.method) for o in outcomes
    ]
    for line, outcome in zip(lines, outcomes, strict=True):
        scores = [score.accuracy for score in outcome.splits]
        assert float(line["accuracy"]) == pytest.approx(np.mean(scores), abs=1e-6)
        assert float(line["accuracy_deviation"]) == pytest.approx(np.std(scores, ddof=1), abs=1e-6)
        assert np.array(json.loads(line["accuracies"])) == pytest.approx(scores, abs=1e-6)
        assert 0.3 < float(line["accuracy"]) <= 1
        assert (line["n_train"], line["n_test"], line["failure"]) == ("42", "18", "")
    curves = lines_of(tmp_path / "ldg-quick-curves.csv")
    of_pca = [c for c in curves if (c["problem"], c["method"]) == ("wine", "PCA")]
    assert [c["dimension"] for c in of_pca] == ["1", "2", "3", "4", "5", "6"]


def test_tables_of_few_samples_are_printed_and_drawn(folder, tmp_path, console):
    outcomes = run(first_problems("ldg-small", 1), folder, tmp_path, console)
    assert [o.method for o in outcomes] == [m.name for m in ldg.SMALL_METHODS if not m.peer]
    assert not any(outcome.failure for outcome in outcomes)
    text = console.export_text()
    for printed in ("Table 3.3", "Table 3.4", "87.7", "42.3", "3.5", "not at hand"):
        assert printed in text
    assert (tmp_path / "ldg-small-quick-accuracy.png").stat().st_size > 10_000
    line = lines_of(tmp_path / "ldg-small-quick.csv")[0]
    assert (line["thesis_accuracy_percent"], line["thesis_seconds"]) == ("87.7", "3.5")
    assert line["n_train"] == "18"


def test_transfer_is_printed_and_drawn(folder, tmp_path, console):
    protocol = first_problems("ldg-transfer", 2)
    outcomes = run(protocol, folder, tmp_path, console)
    assert [o.method for o in outcomes[:3]] == ["TransferLDG", "pooled PCA", "pooled FDA"]
    assert all((o.n_train, o.n_test) == (48, 32) for o in outcomes)
    assert [score.dimension for score in outcomes[0].splits] == [9, 9]
    assert [score.dimension for score in outcomes[2].splits] == [3, 3]
    assert "alpha" in outcomes[0].splits[0].parameters
    text = console.export_text()
    assert "amazon to webcam: TransferLDG on top in" in text
    assert "prints no figures" in text
    assert (tmp_path / "ldg-transfer-quick-accuracy.png").stat().st_size > 10_000


def test_digits_are_scattered_and_printed(folder, tmp_path, console):
    protocol = PROTOCOLS["ldg-digits"]
    pixels, scattered = protocol.problems[:3:2]
    protocol = dataclasses.replace(protocol, problems=(scattered,))
    outcomes = run(protocol, folder, tmp_path, console, only=["FDA"])
    assert [o.failure for o in outcomes] == [""]
    assert all((o.n_train, o.n_test) == (110, 90) for o in outcomes)
    domains = [problem.load(folder / problem.file, Context()) for problem in (pixels, scattered)]
    assert [d.Xs.shape for d in domains] == [(300, 256), (300, 2032)]


# ---- splits --------------------------------------------------------------------------------------


def test_splits_are_random_and_standardised_by_the_training_rows(folder, monkeypatch):
    table = ldg.load(folder / "uci_dermatology.npz", Context())
    rows, codes, queries, query_codes = table.parts(0)
    assert (rows.shape, queries.shape) == ((42, 6), (18, 6))
    np.testing.assert_allclose(rows[:, :5].mean(axis=0), 0, atol=1e-12)
    np.testing.assert_allclose(rows[:, :5].std(axis=0), 1, rtol=1e-12)
    assert np.isfinite(rows).all()
    assert np.isfinite(queries).all()
    again, other = table.parts(0), table.parts(1)
    np.testing.assert_array_equal(again[0], rows)
    assert not np.array_equal(other[1], codes)
    assert len(codes) + len(query_codes) == 60
    monkeypatch.setattr(ldg, "MOST_TRAINING", 30)
    monkeypatch.setattr(ldg, "MOST_TESTING", 7)
    fewer = ldg.load(folder / "uci_wine.npz", Context()).parts(0)
    assert (len(fewer[1]), len(fewer[3])) == (30, 7)


# ---- choices -------------------------------------------------------------------------------------


def test_ldg_is_chosen_as_its_own_rules_do(rng):
    X, codes = problem_rows(rng)
    queries, query_codes = problem_rows(rng)
    parts = splits.standardised(X, queries)
    score = splits.evaluate(
        families.ldg(Context()), parts[0], codes, parts[1], query_codes,
        dataclasses.replace(RULES, at=5, most=8),
    )  # fmt: skip
    model = LDG("greedy", gamma=[0.2, 0.6, 1.0], random_state=0).fit(parts[0], codes)
    assert score.parameters == {"gamma": model.gamma_, "n_neighbors": model.n_neighbors_}
    assert score.dimension == model.n_components_
    reduced = [model.transform(part) for part in parts]
    assert score.accuracy == accuracy(reduced[0], codes, reduced[1], query_codes)
    assert score.few == score.curve[2]
    assert sorted(score.curve) == list(range(1, 9))


def test_folds_choose_by_rows_that_had_no_part(rng):
    """Against a plain loop over folds, ridges and dimensions."""
    X, codes = problem_rows(rng, n=24, d=40)
    queries, query_codes = problem_rows(rng, n=30, d=40)
    score = splits.evaluate(
        families.regularized_fisher(Context()), X, codes, queries, query_codes, FOLDED
    )
    order = np.argsort(codes, kind="stable")
    hits = {}
    for number in range(3):
        asked = order[number::3]
        known = np.setdiff1d(np.arange(24), asked)
        for ridge in FOLDED.ridges:
            model = RegularizedFisher(ridge=ridge).fit(X[known], codes[known])
            near = KNeighborsClassifier(1).fit(model.transform(X[known]), codes[known])
            found = near.kneighbors(model.transform(X[asked]), 3, return_distance=False)
            votes = codes[known][found]
            decided = np.where(votes[:, 1] == votes[:, 2], votes[:, 1], votes[:, 0])
            hits[ridge] = hits.get(ridge, 0) + np.sum(decided == codes[asked])
    best = max(FOLDED.ridges, key=lambda ridge: (hits[ridge], ridge))
    assert score.parameters == {"ridge": best}
    assert score.dimension == 2
    model = RegularizedFisher(ridge=best).fit(X, codes)
    expected = accuracy(model.transform(X), codes, model.transform(queries), query_codes)
    assert score.accuracy == score.few == expected


def test_both_directions_are_fishers_and_ldgs_of_their_complement(rng):
    codes = np.repeat(np.arange(3), 12)
    X = rng.standard_normal((36, 40)) + 2 * np.eye(3)[codes] @ rng.standard_normal((3, 40))
    X -= X.mean(axis=0)
    rules = Rules(gammas=(), at=-1, ridges=(1.0, 10.0), steps=(-1, 0, 4), folds=3)
    found = list(families.ldg_and_fisher(Context())(X, codes, rules))
    assert len(found) == 2 * 3
    for given, model in found:
        B = model.components_
        np.testing.assert_allclose(B @ B.T, np.eye(len(B)), atol=1e-8)
        fisher = RegularizedFisher(ridge=given["ridge"]).fit(X, codes).components_
        np.testing.assert_allclose(fisher @ B[:2].T @ B[:2], fisher, atol=1e-8)


@pytest.mark.long
@pytest.mark.parametrize("method", ldg.SMALL_METHODS, ids=lambda method: method.name)
def test_every_method_of_few_rows_works_where_rows_are_very_few(method, rng):
    X, codes = problem_rows(rng, n=9, d=40)
    score = splits.evaluate(method.build(Context()), X, codes, X[:6], codes[:6], FOLDED)
    assert 0 <= score.accuracy <= 1
    assert score.dimension <= (40 if method.name == "ITML" else 8)  # its whole metric


# ---- what is printed -----------------------------------------------------------------------------


def test_the_best_and_those_not_significantly_worse():
    worse = [0.79, 0.83, 0.77, 0.82]
    values = {"a": [0.9, 0.92, 0.88, 0.9], "b": [0.89, 0.93, 0.87, 0.9], "c": worse}
    assert best_or_tied(values) == {"a", "b"}
    assert stats.ttest_rel(values["a"], worse).pvalue < 0.05
    assert best_or_tied({"a": [0.5, 0.7], "b": [0.4, 0.6]}) == {"a"}  # always a tenth better
    assert best_or_tied({"a": [0.5], "b": [0.5]}) == {"a", "b"}
    assert best_or_tied({}) == set()
