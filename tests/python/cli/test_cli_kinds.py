"""Models other than GEM on files, and searches."""

import json

import numpy as np
import pandas as pd
import pytest
from command_line import run
from sklearn.discriminant_analysis import LinearDiscriminantAnalysis

import eigenfeat as ef
from eigenfeat.early import ReliableClassifier


def fit(*more):
    return run("fit", "train.csv", "--target", "kind", "-o", "model.efm", "--json", *more)


def test_ldg_is_fitted_transforms_and_is_evaluated(insects):
    X, y = insects
    status, out, err = fit("--model", "ldg", "--set", "n_components=2", "--set", "gamma=0.4")
    assert (status, err) == (0, "")
    assert json.loads(out)["estimator"] == "LDG"
    model = ef.LDG(2, gamma=0.4, random_state=0).fit(X[:300], y[:300])
    assert run("transform", "model.efm", "test.csv", "-o", "found.npy")[0] == 0
    found = model.transform(X[300:])
    assert np.allclose(np.load("found.npy"), found, atol=1e-8)
    command = ["evaluate", "model.efm", "test.csv", "--target", "kind"]
    result = json.loads(run(*command, "--json")[1])
    distance = ((found[:, None] - found[None]) ** 2).sum(axis=2)
    np.fill_diagonal(distance, np.inf)
    right = 0
    for row, label in enumerate(y[300:]):
        near = y[300:][np.argsort(distance[row])[:3]].tolist()
        right += max(sorted(near), key=near.count) == label
    assert result["accuracy"] == pytest.approx(right / 200)
    assert "nearest neighbours" in run(*command)[1]
    printed = run("inspect", "model.efm")[1]
    assert "gamma: 0.4" in printed
    assert "components: 2" in printed


def test_early_decisions(insects):
    X, y = insects
    more = ("--model", "reliable", "--set", "reliability=0.8", "--set", "correct=false")
    assert json.loads(fit(*more)[1])["estimator"] == "ReliableClassifier"
    lda = LinearDiscriminantAnalysis(solver="lsqr", shrinkage="auto")
    model = ReliableClassifier(lda, reliability=0.8, correct=False)
    model.fit(X[:300], y[:300])
    assert run("predict", "model.efm", "test.csv", "--early", "-o", "found.csv")[0] == 0
    found = pd.read_csv("found.csv")
    early = model.predict_early(X[300:])
    assert list(found) == ["prediction", "time", "reliability"]
    assert found["prediction"].tolist() == early.label.tolist()
    assert found["time"].tolist() == early.time.tolist()
    assert early.time.min() < 4
    result = json.loads(run("evaluate", "model.efm", "test.csv", "--target", "kind", "--json")[1])
    assert result["early"]["accuracy"] == pytest.approx((early.label == y[300:]).mean())
    assert result["early"]["mean_time"] == pytest.approx(early.time.mean())
    agreement = (early.label == model.predict(X[300:])).mean()
    assert result["early"]["agreement"] == pytest.approx(agreement)
    printed = run("evaluate", "model.efm", "test.csv", "--target", "kind")[1]
    assert "decided early: accuracy" in printed
    assert run("predict", "model.efm", "test.csv", "-o", "whole.csv")[0] == 0
    assert pd.read_csv("whole.csv")["prediction"].tolist() == model.predict(X[300:]).tolist()


@pytest.mark.filterwarnings("default")
def test_row_numbers_of_models_without_categories_warn(insects):
    frame = pd.read_csv("train.csv")
    frame.assign(insect=np.arange(len(frame))).to_csv("numbered.csv", index=False)
    given = ("--target", "kind", "-o", "model.efm", "--model", "ldg")
    status, _, err = run("fit", "numbered.csv", *given)
    assert status == 0
    assert err.startswith("warning: columns of whole numbers that look like row numbers")
    assert "('insect')" in err
    assert run("fit", "numbered.csv", *given, "--drop", "insect")[::2] == (0, "")


def test_a_shift_with_an_extractor(insects):
    more = ("--extractor", "pca", "--set", "extractor__n_components=2", "--set", "sigma2=0.5")
    found = json.loads(fit("--model", "shift", *more)[1])
    assert (found["estimator"], found["classes"]) == ("MaxMarginShift", ["ant", "bee", "moth"])
    model = ef.load("model.efm")
    assert (model.sigma2, model.extractor.n_components) == (0.5, 2)
    assert run("transform", "model.efm", "test.csv", "-o", "found.npy")[0] == 0
    assert np.load("found.npy").shape == (200, 2)
    assert "extractor: PCA" in run("inspect", "model.efm")[1]
    assert run("evaluate", "model.efm", "test.csv", "--target", "kind")[0] == 0
    page = ("report", "model.efm", "test.csv", "--target", "kind", "-o", "page.html")
    assert run(*page)[0] == 0


def search(*more):
    command = ("search", "train.csv", "--target", "kind", "-o", "best.efm", *more)
    status, out, err = run(*command, "--json")
    assert err == ""
    return status, json.loads(out)


def test_search_of_gem_is_the_search_in_memory(insects):
    X, y = insects
    status, found = search("--grid", "penalty=0.03,3", "--grid", "n_directions=1,2", "--cv", "3")
    assert status == 0
    grid = {"logit__penalty": [0.03, 3], "gem__n_directions": [1, 2]}
    theirs = ef.GEMClassifierCV(grid=grid, cv=3).fit(X[:300], y[:300])
    assert found["best_params"] == {
        name.rpartition("__")[2]: value for name, value in theirs.best_params_.items()
    }
    assert found["best_score"] == pytest.approx(theirs.best_score_, abs=1e-6)
    assert len(found["results"]) == 4
    scores = [one["score"] for one in found["results"]]
    assert scores == sorted(scores, reverse=True)
    best = ef.load("best.efm")
    assert isinstance(best, ef.GEMClassifier)
    assert {name: best.get_params()[name] for name in grid} == theirs.best_params_
    more = ("-o", "best.efm", "--grid", "depth=1,2")
    printed = run("search", "train.csv", "--target", "kind", *more)[1]
    assert "depth=1" in printed
    assert "depth=2" in printed


def test_a_search_keeps_parameters_by_name(insects):
    more = ("--set", "powers=[1, 2]", "--seed", "3")
    assert search("--grid", "ridge=0.1,0.3", "--grid", "scale=none", *more)[0] == 0
    best = ef.load("best.efm")
    assert ([*best.gem.powers], best.gem.scale, best.random_state) == ([1, 2], "none", 3)


def test_searches_of_ldg_and_of_early_classifiers(insects):
    assert fit("--model", "ldg", "--set", "n_components=1,2", "--set", "gamma=0.4")[0] == 0
    model = ef.LDG([1, 2], gamma=0.4, random_state=0).fit(insects[0][:300], insects[1][:300])
    assert ef.load("model.efm").n_components_ == model.n_components_
    more = ("--grid", "rule=pairwise,box", "--grid", "reliability=0.1,0.9")
    status, found = search("--model", "reliable", *more)
    assert (status, found["estimator"], len(found["results"])) == (0, "ReliableClassifier", 4)
