"""Weights of samples in every estimator: repetitions, at any scale, never a negative variance."""

from __future__ import annotations

import numpy as np
import pytest
from every_estimator import ESTIMATORS, Y, good_rows, new
from flat_gem import gem_classifier, with_params
from numpy.testing import assert_allclose
from random_tables import DEFAULTS, OF_EPOCHS
from sklearn.utils.validation import has_fit_parameter

import eigenfeat as ef
from eigenfeat._base.validation import usual_weights

WEIGHTED = [
    name
    for name in ESTIMATORS
    if has_fit_parameter(new(name)[0], "sample_weight")
    and not name.startswith("Reliable")
    and name != "GEMClassifier, pool"  # its folds divide repeated samples
]
# Folds, drawn samples and held-out samples differ where samples are repeated; a weight of a hinge
# loss is no repetition of a sample that an extractor is fitted to.
DRAWN = {"GEMClassifierCV", "GEMEnsemble", "JointGEMClassifier"}
DRAWN |= {name for name in WEIGHTED if name.startswith(("MaxMargin", "GEMClassifier, clusters"))}
TOLERANCES = {
    "GEMClassifier": 1e-2,
    "GEMClassifier, deep": 1e-2,
    "MulticlassSVM": 0.05,
    "MulticlassSVM, warm": 0.05,
    "CalibratedLeastSquares": 1e-4,
}
COUNTS = np.random.default_rng(0).integers(1, 4, len(Y))


def outputs(name, X, y, weight):
    model = new(name)[0]
    if "GEMClassifier" in name and name != "GEMClassifierCV":
        with_params(model, temperature=1.0)
        if "views" in model.get_params():
            model.views = "gem"
    elif name.startswith("MultinomialLogit"):
        model.set_params(tol=1e-9)
    model.fit(X, y, sample_weight=weight)
    rows = good_rows(name)
    for method in ("predict_proba", "decision_function", "transform", "predict"):
        if hasattr(model, method):
            return np.asarray(getattr(model, method)(rows), dtype=float)
    return np.asarray(model.conditional_mean(rows)) if hasattr(model, "conditional_mean") else None


@pytest.mark.parametrize("name", [name for name in WEIGHTED if name not in DRAWN])
def test_weights_are_repetitions(name):
    rows = good_rows(name)
    weighted = outputs(name, rows, Y, COUNTS)
    if weighted is None:
        pytest.skip("it has no outputs of samples")
    repeated = outputs(name, np.repeat(rows, COUNTS, axis=0), np.repeat(Y, COUNTS), None)
    tolerance = TOLERANCES.get(name, 1e-5) * np.abs(weighted).max()
    assert_allclose(weighted, repeated, rtol=0, atol=tolerance)


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
@pytest.mark.parametrize("name", WEIGHTED)
def test_weights_of_any_size(name):
    for unit in (1e-290, 1e290):
        found = outputs(name, good_rows(name), Y, unit * COUNTS)
        assert found is None or np.isfinite(found).all()


@pytest.mark.parametrize("name", sorted(OF_EPOCHS))
def test_weights_of_epochs_are_repetitions_in_any_unit(name):
    rng = np.random.default_rng(0)
    X, y, count = rng.standard_normal((40, 3, 30)), np.arange(40) % 3, rng.integers(0, 4, 40)
    X[y == 1, 0] *= 2
    repeated = DEFAULTS[name]().fit(np.repeat(X, count, axis=0), np.repeat(y, count)).transform(X)
    for unit in (1.0, 1e-290, 1e290):
        found = DEFAULTS[name]().fit(X, y, sample_weight=unit * count).transform(X)
        assert_allclose(found, repeated, rtol=0, atol=1e-10)
    for unit in (1e-12, 1e12):
        found = DEFAULTS[name]().fit(unit * X, y, sample_weight=count).transform(unit * X)
        assert_allclose(found, repeated, rtol=0, atol=1e-9)


def test_extreme_weights_become_usual_by_a_power_of_two():
    weight = np.array([0.0, 3e-300, 5e-310, 1e300])
    found = usual_weights(weight)
    assert 1 <= found[3] < 2
    assert found[0] == 0 < found[2] <= found[1] < 1e-290
    small = usual_weights(weight[:3])
    assert_allclose(small[1:] / small[1], weight[1:3] / weight[1], rtol=1e-10)
    usual = np.array([1e-30, 2.0, 1e10])
    assert usual_weights(usual) is usual


@pytest.mark.parametrize("unit", [1e-290, 1e290])
def test_blocks_take_them_too(unit):
    rows = good_rows("MultinomialLogit")
    whole = ef.MultinomialLogit(tol=1e-9).fit(rows, Y, unit * COUNTS)
    for kind in (ef.MultinomialLogit(tol=1e-9), gem_classifier(n_directions=1)):
        blocks = ef.rows.ArrayBlocks(rows, Y, unit * COUNTS, block_rows=17)
        found = kind.fit(blocks).predict_proba(rows)
        assert np.isfinite(found).all()
        if isinstance(kind, ef.MultinomialLogit):
            assert_allclose(found, whole.predict_proba(rows), rtol=0, atol=1e-6)


@pytest.mark.parametrize("seed", range(2))
@pytest.mark.parametrize(
    "kind",
    [
        ef.FisherLDA,
        ef.GEM,
        ef.GEMClassifier,
        ef.rayleigh.QuadraticDiscriminant,
        ef.rayleigh.RayleighPCA,
    ],
)
def test_a_constant_column_has_no_negative_variance(kind, seed):
    rng = np.random.default_rng(seed)
    X = np.column_stack([np.full(40, 0.1), rng.standard_normal(40), rng.standard_normal(40)])
    y, weight = np.arange(40) % 2, rng.random(40)
    kind().fit(X, y, sample_weight=weight)
    moments = ef.ClassMoments().update(X, y, weight)
    assert all(np.diag(moments.covariance(c)).min() >= 0 for c in (0, 1))


def test_balanced_classes_of_the_svm_count_weights():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(90, 4))
    y = rng.choice(["a", "b", "c"], 90, p=[0.6, 0.3, 0.1])
    X[y == "a", 0] *= 2
    X[y == "b", 1] += 1
    weight = rng.integers(0, 4, 90)
    how = {"class_weight": "balanced", "tol": 1e-7}
    one = ef.MulticlassSVM(**how).fit(X, y, sample_weight=weight)
    two = ef.MulticlassSVM(**how).fit(np.repeat(X, weight, axis=0), np.repeat(y, weight))
    assert_allclose(one.decision_function(X), two.decision_function(X), rtol=0, atol=1e-3)
    tenfold = ef.MulticlassSVM(**how).fit(X, y, sample_weight=np.where(y == "c", 10, 1))
    same = ef.MulticlassSVM(C=1.0, tol=1e-7, class_weight="balanced")
    same.fit(np.repeat(X, np.where(y == "c", 10, 1), 0), np.repeat(y, np.where(y == "c", 10, 1)))
    assert_allclose(tenfold.coef_, same.coef_, rtol=0, atol=1e-3)
