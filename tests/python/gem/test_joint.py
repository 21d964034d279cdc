"""Joint training of layers and logit. tests/cpp checks single steps."""

import numpy as np
import pytest
from flat_gem import gem_classifier, joint_classifier, with_params
from numpy.testing import assert_allclose, assert_array_equal
from scipy.sparse import csr_matrix
from sklearn.datasets import load_digits
from sklearn.exceptions import ConvergenceWarning
from sklearn.metrics import log_loss

from eigenfeat import GEMClassifierCV, GEMEnsemble
from eigenfeat.samples import ArrayBlocks, GeneratedBlocks

X, Y = load_digits(return_X_y=True)
TRAIN, TEST = slice(0, 900), slice(900, None)
SMALL = {"n_directions": 2, "powers": (1,), "threshold": None}


def waves(n, seed):
    """Two classes with a curved border, which few directions of GEM approximate poorly."""
    rng = np.random.default_rng(seed)
    rows = rng.uniform(-2, 2, (n, 2))
    return rows, (rows[:, 1] > np.sin(6 * rows[:, 0])).astype(int)


@pytest.mark.parametrize(("depth", "expansion"), [(1, "with_input"), (2, "shifted")])
def test_epochs_lower_loss_and_errors(depth, expansion):
    options = {"depth": depth, "expansion": expansion, "threshold": None}
    (rows, y), (new, y_new) = waves(4000, 0), waves(4000, 1)
    before = gem_classifier(**options).fit(rows, y)
    after = joint_classifier(epochs=40, perturbation=0.01, **options).fit(rows, y)
    for part, labels in ((rows, y), (new, y_new)):
        losses = [log_loss(labels, m.predict_proba(part)) for m in (before, after)]
        assert losses[1] < 0.93 * losses[0]
        assert after.score(part, labels) > before.score(part, labels)
    assert after.temperature_ == 1.0
    for one, other in zip(before.layers_, after.layers_, strict=True):
        assert_array_equal(one.pairs, other.pairs)
        assert not np.array_equal(one.directions, other.directions)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("expansion", ["auto", "with_input"])
def test_origin_and_unit_of_columns_do_not_matter(dtype, expansion):
    options = SMALL | {"epochs": 2, "scale": "columns", "expansion": expansion}
    rng = np.random.default_rng(0)
    rows = X[TRAIN][:400, 2:6].astype(dtype) + rng.random((400, 4)).astype(dtype)
    unit, origin = np.array([1, 64, 0.125, 2], dtype), np.array([0, 500, 1, -30], dtype)
    one = joint_classifier(**options).fit(rows, Y[:400])
    other = joint_classifier(**options).fit(rows * unit + origin, Y[:400])
    probabilities = other.predict_proba(rows * unit + origin)
    # Steps do not shrink with the gradient: rounding of a tiny gradient may change some entries.
    assert np.abs(one.predict_proba(rows) - probabilities).mean() < 0.01


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_directions_ignore_constant_columns(dtype):
    rows = np.column_stack([X[TRAIN][:300], np.full(300, 0.3)]).astype(dtype)
    if dtype == np.float64:
        rows[::2, -1] = 0.1 + 0.2  # constant up to rounding
    model = joint_classifier(epochs=2, **SMALL).fit(rows, Y[:300])
    constant = np.ptp(rows, axis=0) < 1e-12
    assert constant.sum() > 3
    assert not model.layers_[0].directions[constant].any()


def test_coefficients_change_for_features_in_other_units():
    rows, y = waves(2000, 0)
    rows = np.hstack([rows, 1e7 * np.random.default_rng(1).standard_normal((len(rows), 1))])
    options = {"expansion": "with_input", "scale": "columns", "threshold": None}
    before = gem_classifier(**options).fit(rows, y)
    after = joint_classifier(epochs=2, perturbation=0.0, **options).fit(rows, y)
    moved = np.abs(before.logit_.coef_ - after.logit_.coef_) > 0
    assert moved.mean() > 0.9


def test_two_classes_weights_and_sparse_rows():
    two = np.flatnonzero(Y < 2)
    rows, y = X[two], np.array(["no", "yes"])[Y[two]]
    weight = np.random.default_rng(0).integers(1, 4, len(y))
    options = SMALL | {"epochs": 3, "scale": "none"}
    one = joint_classifier(**options).fit(rows, y, weight)
    assert one.logit_.coef_.shape[0] == 1
    sparse = joint_classifier(**options).fit(csr_matrix(rows), y, weight)
    assert_allclose(one.predict_proba(rows), sparse.predict_proba(rows), atol=1e-4)
    assert one.score(rows, y) == 1.0


def test_without_directions_there_is_nothing_to_train():
    model = joint_classifier(threshold=1e9, epochs=2).fit(X[TRAIN], Y[TRAIN])
    plain = gem_classifier(threshold=1e9, temperature=1.0).fit(X[TRAIN], Y[TRAIN])
    assert_array_equal(model.predict_proba(X), plain.predict_proba(X))


def test_ensembles_and_searches():
    ensemble = GEMEnsemble(joint_classifier(epochs=2, **SMALL), n_members=2)
    ensemble.fit(X[:500], Y[:500])
    assert ensemble.score(X[TEST], Y[TEST]) > 0.9
    search = GEMClassifierCV(
        joint_classifier(epochs=2, n_directions=2), {"logit__penalty": [0.1, 0.03]}, cv=2
    ).fit(X[TRAIN], Y[TRAIN])
    assert search.best_estimator_.epochs == 2
    assert search.best_estimator_.temperature_ == 1.0
    assert search.score(X[TEST], Y[TEST]) > 0.9


def test_blocks_of_an_array_give_nearly_the_same_model():
    options = SMALL | {"epochs": 2, "scale": "none"}
    weight = np.random.default_rng(0).random(900) + 0.5
    one = joint_classifier(**options).fit(X[TRAIN], Y[TRAIN], weight)
    other = joint_classifier(**options).fit(ArrayBlocks(X[TRAIN], Y[TRAIN], weight, block_rows=200))
    assert_allclose(one.predict_proba(X), other.predict_proba(X), atol=1e-2)


def test_other_blocks_are_refused_before_the_work():
    model = joint_classifier(epochs=1, **SMALL)
    blocks = GeneratedBlocks([(X[TRAIN], Y[TRAIN])])
    with pytest.raises(ValueError, match="X: expected samples that can be read in any order"):
        model.fit(blocks)
    assert not hasattr(model, "layers_")


def test_held_out_samples_give_the_temperature():
    rng = np.random.default_rng(0)
    rows = rng.standard_normal((6000, 30))
    y = (rows[:, 0] + 2 * rng.standard_normal(6000) > 0).astype(int)
    (rows, new), (y, y_new) = np.split(rows, [2000]), np.split(y, [2000])
    options = {"epochs": 30, "threshold": None, "perturbation": 0.0, "penalty": 1e-4}
    model = joint_classifier(**options, temperature="auto").fit(rows, y)
    assert model.temperature_ > 1.5
    plain = joint_classifier(**options).fit(rows, y)
    losses = [log_loss(y_new, one.predict_proba(new)) for one in (model, plain)]
    assert losses[0] < 0.9 * losses[1]
    assert joint_classifier(**options, temperature=3.0).fit(rows, y).temperature_ == 3


def test_few_samples_and_classes_of_one_sample_are_all_used():
    rows, y = waves(1000, 0)
    assert joint_classifier(epochs=2, temperature="auto").fit(rows, y).temperature_ == 1.0
    rows, y = waves(1600, 0)
    y[:3] = 2, 3, 4
    model = joint_classifier(epochs=2, temperature="auto", ridge=1.0).fit(rows, y)
    assert model.classes_.tolist() == [0, 1, 2, 3, 4]


def test_a_loss_that_grows_is_warned_of():
    rows, y = waves(500, 0)
    model = joint_classifier(epochs=4, learning_rate=1e3, perturbation=0.0)
    with pytest.warns(ConvergenceWarning, match="has grown from .* smaller learning_rate"):
        model.fit(rows, y)


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        (
            {"expansion": "half_wave"},
            "expansion: expected 'auto', 'shifted' or 'with_input' for joint",
        ),
        ({"perturbation": 1e300}, "perturbation: expected a number whose product .* got 1e"),
        ({"learning_rate": 1e30}, r"perturbation, learning_rate: expected .* 0\.15 and 1e\+30"),
    ],
)
def test_parameters_that_prevent_training_leave_the_model_unchanged(changes, message):
    model = joint_classifier(epochs=2, **SMALL).fit(X[TRAIN], Y[TRAIN])
    before = model.predict_proba(X)
    with pytest.raises(ValueError, match=message):
        with_params(model, **changes).fit(X[TRAIN], Y[TRAIN])
    assert_array_equal(model.predict_proba(X), before)
