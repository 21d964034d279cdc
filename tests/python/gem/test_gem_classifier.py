"""GEMClassifier equals a pipeline of GEM and a logit, for all kinds of rows, options and depths."""

import numpy as np
import pytest
import scipy.sparse as sp
from flat_gem import gem_classifier
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.datasets import load_digits, load_wine

from eigenfeat import GEM, GEMClassifier, MultinomialLogit
from eigenfeat.exceptions import SingularDenominatorError
from eigenfeat.expansion.features import layer_features

# Largest difference of probabilities: the pipeline's features have the type of the rows, those of
# the classifier float32, and both searches end within 1e-4 of the least objective.
NEAR = 1e-3

SMALL = {"n_directions": 3, "pairs": "hypercube"}


@pytest.fixture(scope="module")
def digits():
    """900 rows of small integers, 64 columns, 10 classes; the last 300 are for predictions."""
    X, y = load_digits(return_X_y=True)
    return X[:900], y[:900]


def by_parts(X, y, rest, weight=None, *, penalty=0.03, common=None, **options):
    """Probabilities of the rows `rest`, by GEM and a logit on the array of its features."""
    gem = GEM(**{**SMALL, **options}).fit(X, y, weight)
    common = common or ("columns" if options.get("expansion") == "with_input" else "common")
    logit = MultinomialLogit(penalty, ridge_scale=common, tol=1e-3, temperature="auto")
    logit.set_params(random_state=options.get("random_state", 0))
    logit.fit(gem.transform(X), y, weight)
    return logit.predict_proba(gem.transform(rest))


def test_the_default_is_gem_and_its_logit(digits):
    X, y = digits
    model = GEMClassifier().fit(X[:600], y[:600])
    gem = GEM().fit(X[:600], y[:600])
    (layer,) = model.layers_
    assert_array_equal(layer.directions, gem.directions_)
    assert_array_equal(layer.offset, gem.offset_)
    assert_array_equal(layer.eigenvalues, gem.eigenvalues_)
    assert_array_equal(layer.pairs, gem.pairs_)
    assert_array_equal(layer.ranks, gem.ranks_)
    assert model.logit_.n_features_in_ == layer.width == gem.transform(X[:1]).shape[1]
    assert model.score(X[600:], y[600:]) > 0.93


@pytest.mark.parametrize(
    ("dtype", "options"),
    [
        (np.float64, {"pairs": "all", "expansion": "compressed"}),
        (np.float32, {"expansion": "half_wave"}),
        (np.float64, {"expansion": "with_input", "constant": False}),
        (np.float32, {"expansion": "compressed"}),
        (np.float64, {"expansion": "compressed", "constant": False}),
        (np.float32, {"expansion": "with_input"}),
        (np.float64, {"expansion": "shifted", "constant": False, "powers": [3, 1]}),
        (np.float32, {"expansion": "polynomial", "constant": False}),
        (np.float64, {"expansion": "polynomial", "powers": (2,)}),
        (np.float64, {"denominator": "covariance", "threshold": None, "ridge": 0.5}),
        (np.float64, {"scale": "columns", "penalty": 1.0}),
        (np.float64, {"pairs": [(c, (c + 3) % 10) for c in range(10)]}),
        (np.float64, {"pairs": ("random_groups", 20), "random_state": 5}),
    ],
    ids=str,
)
def test_one_layer_by_parts(digits, dtype, options):
    X, y = digits[0].astype(dtype), digits[1]
    model = gem_classifier(**{**SMALL, **options}).fit(X[:600], y[:600])
    expected = by_parts(X[:600], y[:600], X[600:], **options)
    assert_allclose(model.predict_proba(X[600:]), expected, atol=NEAR)


@pytest.mark.parametrize(("dtype", "form"), [(np.uint8, np.asarray), (np.int16, sp.csr_array)])
def test_small_integers_are_float32(digits, dtype, form):
    X, y = digits
    single = gem_classifier(**SMALL).fit(form(X[:600].astype(np.float32)), y[:600])
    model = gem_classifier(**SMALL).fit(form(X[:600].astype(dtype)), y[:600])
    rest = form(X[600:].astype(dtype))
    expected = single.predict_proba(form(X[600:].astype(np.float32)))
    assert model.predict_proba(rest).dtype == np.float32
    assert_array_equal(model.predict_proba(rest), expected)


@pytest.mark.parametrize("labels", [np.array([0, 1]), np.array(["no", "yes"])])
def test_two_classes_by_parts(labels):
    X, y = load_wine(return_X_y=True)
    X, y = X[y < 2], labels[y[y < 2]]
    model = gem_classifier(**SMALL, scale="columns").fit(X[::2], y[::2])
    expected = by_parts(X[::2], y[::2], X[1::2], scale="columns")
    assert_allclose(model.predict_proba(X[1::2]), expected, atol=NEAR)
    logits = model.decision_function(X[1::2])
    assert logits.shape == (len(X[1::2]),)
    assert_array_equal(model.predict(X[1::2]), labels[(logits > 0).astype(int)])
    log_odds = np.diff(model.predict_log_proba(X[1::2]), axis=1)[:, 0]
    assert_allclose(log_odds, logits, atol=1e-5)


@pytest.mark.parametrize(
    ("ridge", "expansion", "dtype"),
    [
        (None, "with_input", np.float32),
        ([0.8, None], "auto", np.float64),
        ((0.8, None), "half_wave", np.float32),
    ],
)
def test_two_layers_by_parts(digits, dtype, expansion, ridge):
    X, y = digits[0].astype(dtype), digits[1]
    options = {"hidden_directions": 2, "n_directions": 2, "pairs": "hypercube"}
    options |= {"expansion": expansion, "ridge": ridge}
    model = gem_classifier(depth=2, **options).fit(X[:600], y[:600])
    first = GEM(
        ridge=ridge and ridge[0],
        n_directions=2,
        threshold=None,
        pairs="hypercube",
        expansion="shifted",
        powers=(1,),
    ).fit(X[:600], y[:600])
    hidden = [first.transform(rows).astype(np.float32) for rows in (X[:600], X[600:])]
    options = {"expansion": "shifted" if expansion == "auto" else expansion, "common": "common"}
    expected = by_parts(hidden[0], y[:600], hidden[1], n_directions=2, scale="none", **options)
    assert model.layers_[0].width == hidden[0].shape[1]
    assert_allclose(model.predict_proba(X[600:]), expected, atol=NEAR)
    assert model.score(X[600:], y[600:]) > 0.9


def test_without_directions_probabilities_are_the_shares_of_classes(digits):
    X, y = digits
    kept = (y > 2) | (np.arange(len(y)) % 3 == 0)
    model = gem_classifier(threshold=1e9, penalty=1e-6).fit(X[kept], y[kept])
    assert model.layers_[0].directions.shape == (64, 0)
    shares = np.bincount(y[kept]) / kept.sum()
    assert_allclose(model.predict_proba(X[:2]), [shares, shares], atol=5e-3)


@pytest.mark.parametrize(
    ("expansion", "labels", "dtype"),
    [
        ("half_wave", 2, np.float32),
        ("half_wave", 10, np.float64),
        ("compressed", 10, np.float32),
        ("shifted", 10, np.float32),
        ("shifted", 2, np.float64),
        ("polynomial", 10, np.float32),
    ],
)
def test_few_samples_give_the_same_bits_in_blocks(digits, dtype, labels, expansion):
    X, y = digits[0].astype(dtype), digits[1] % labels
    model = gem_classifier(expansion=expansion, **SMALL).fit(X[:300], y[:300])
    features = layer_features(X[300:400], model.layers_, None)
    expected = model.logit_.decision_function(features)
    assert np.array_equal(model.decision_function(X[300:400]), expected)
    one = model.decision_function(X[300:301])
    assert_allclose(one, expected[:1], rtol=1e-4, atol=1e-5 * np.abs(expected).max())


def test_one_class_and_wrong_parameters_are_refused(digits):
    X, y = digits[0][:300], digits[1][:300]
    model = gem_classifier(**SMALL)
    with pytest.raises(ValueError, match="y: expected samples of at least two classes"):
        model.fit(X, y, y == 3)
    for options, message in (
        ({"expansion": "none"}, "expansion: expected"),
        ({"powers": (1, 4), "depth": 2}, "powers: expected distinct numbers out of 1, 2, 3"),
        ({"pairs": [(0, 77)]}, "77"),
        ({"ridge": [0.1, 0.2]}, "ridge: expected a value, or a list of 1, one for each layer"),
        ({"ridge": [0.1, -1.0], "depth": 2}, "ridge"),
    ):
        with pytest.raises(ValueError, match=message):
            gem_classifier(**options).fit(X, y)
    with pytest.raises(SingularDenominatorError, match="suffices"):
        gem_classifier(ridge=0).fit(X, y)
