"""`class_weight` of classifiers, searches and ensembles."""

import numpy as np
import pytest
from flat_gem import gem_classifier
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.datasets import load_breast_cancer
from sklearn.utils.class_weight import compute_sample_weight

from eigenfeat import GEMClassifier, GEMClassifierCV, GEMEnsemble
from eigenfeat.samples import ArrayBlocks

X, Y = load_breast_cancer(return_X_y=True)
X, Y = X[:300], np.array(["benign", "malignant"])[1 - Y[:300]]
RARE = np.flatnonzero((Y == "malignant") | (np.arange(300) % 9 == 0))


@pytest.mark.parametrize("factors", ["balanced", {"benign": 3.0}, {"benign": 0.5, "malignant": 2}])
def test_class_weights_are_weights_of_rows(factors):
    rows = RARE
    model = gem_classifier(n_directions=2, class_weight=factors).fit(X[rows], Y[rows])
    weight = compute_sample_weight(factors, Y[rows])
    same = gem_classifier(n_directions=2).fit(X[rows], Y[rows], weight)
    assert_allclose(model.predict_proba(X), same.predict_proba(X), rtol=1e-4)


@pytest.mark.parametrize("factors", ["balanced", {"benign": 3.0, "malignant": 1}])
def test_searches_and_ensembles_pass_class_weights_on(factors):
    model = gem_classifier(n_directions=1, class_weight=factors, temperature=1.0).fit(
        X[RARE], Y[RARE]
    )
    search = GEMClassifierCV(model, {"logit__penalty": [0.03]}).fit(X[RARE], Y[RARE])
    assert_allclose(search.predict_proba(X), model.predict_proba(X), atol=2e-3)
    several = GEMEnsemble(model, n_members=1).fit(X[RARE], Y[RARE])
    assert_allclose(several.predict_proba(X), model.predict_proba(X), atol=2e-3)


@pytest.mark.parametrize(
    ("factors", "message"),
    [
        ("equal", "class_weight"),
        ({"benign": -1.0}, "class_weight: expected positive weights"),
        ({"benign": np.nan}, "class_weight: expected positive weights"),
        ({"neither": 1.0}, "class_weight: expected labels of y, got 'neither'"),
    ],
)
def test_bad_weights_are_named(factors, message):
    with pytest.raises(ValueError, match=message):
        GEMClassifier(class_weight=factors).fit(X, Y)


def test_samples_may_lack_a_class_that_has_a_weight():
    factors = {"benign": 3.0, "malignant": 1.0, "unclear": 2.0}
    found = gem_classifier(class_weight=factors, temperature=1.0).fit(X, Y)
    expected = gem_classifier(class_weight={"benign": 3.0}, temperature=1.0).fit(X, Y)
    assert_array_equal(found.predict_proba(X), expected.predict_proba(X))


@pytest.mark.parametrize("factors", ["balanced", {"benign": 3.0}])
@pytest.mark.parametrize("weighted", [False, True])
def test_blocks_accept_class_weights(factors, weighted):
    weight = np.random.default_rng(0).integers(0, 4, len(Y)) if weighted else None
    options = {"n_directions": 2, "depth": 2, "class_weight": factors, "temperature": 1.0}
    memory = gem_classifier(**options, tol=1e-8).fit(X, Y, weight)
    blocks = ArrayBlocks(X, Y, weight, block_rows=70)
    found = gem_classifier(**options, tol=1e-8).fit(blocks)
    assert_allclose(found.predict_proba(X), memory.predict_proba(X), atol=1e-4)
    with pytest.raises(ValueError, match="class_weight: expected labels of y, got 'neither'"):
        gem_classifier(class_weight={"neither": 2.0}).fit(blocks)


def test_grids_refuse_class_weights():
    with pytest.raises(ValueError, match="grid: expected class_weight in the estimator"):
        GEMClassifierCV(grid={"class_weight": ["balanced", None]}).fit(X, Y)
