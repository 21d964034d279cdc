"""Sample weights of every estimator: a common factor, and whole numbers in place of copies."""

import inspect
from pathlib import Path

import numpy as np
import pytest
from every_estimator import COPIES_DIFFER, ESTIMATORS, N, Y, good_rows, new
from numpy.testing import assert_allclose

from eigenfeat import TableClassifier
from eigenfeat.samples import GeneratedBlocks

WEIGHTS = np.random.default_rng(0).integers(1, 4, N)
WEIGHTED = [
    name
    for name, make in ESTIMATORS.items()
    if "sample_weight" in inspect.signature(make().fit).parameters
]

# Why a factor of all weights changes a fit, by the name of the class, as in docs/api/checks.rst.
STRENGTH = "the number of samples, which sets the strength of the regularisation"
FACTOR_MATTERS = dict.fromkeys(
    (
        *("MultinomialLogit", "CalibratedLeastSquares", "QuadraticDiscriminant", "MulticlassSVM"),
        *("GEMClassifier", "JointGEMClassifier", "GEMClassifierCV", "GEMEnsemble"),
        *("FisherLDA", "MaxMarginShift", "MaxMarginPCA", "LabelEmbedding"),
    ),
    STRENGTH,
)
SOLVED = {"MulticlassSVM": 0.02}  # to the tolerance of the solver
PAGE = Path(__file__).parents[3] / "docs" / "api" / "checks.rst"


def kind(name):
    return name.partition(",")[0]


def scores(name, rows, samples, weight=None):
    """Scores, features or predictions of `rows` by a fit to other samples."""
    estimator, options = new(name)
    options = {key: np.asarray(value)[samples] for key, value in options.items()}
    estimator.fit(rows[samples], Y[samples], sample_weight=weight, **options)
    for method in ("predict_proba", "decision_function", "transform", "predict"):
        if hasattr(estimator, method):
            return np.asarray(getattr(estimator, method)(rows), dtype=float)
    raise AssertionError(f"{name} computes nothing")


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("name", [name for name in WEIGHTED if kind(name) not in FACTOR_MATTERS])
def test_a_factor_of_all_weights_changes_nothing(name):
    rows, samples = good_rows(name), np.arange(N)
    expected = scores(name, rows, samples, WEIGHTS)
    for factor in (3.0, 1e-3):
        found = scores(name, rows, samples, factor * WEIGHTS)
        assert_allclose(found, expected, atol=1e-9 * np.abs(expected).max())


@pytest.mark.parametrize("class_weight", [None, "balanced", {0: 2.0}])
def test_a_factor_of_all_weights_of_blocks_changes_nothing(class_weight):
    X, found = good_rows("TableClassifier"), []
    for factor in (1.0, 3.0):
        parts = [slice(0, N // 2), slice(N // 2, N)]
        blocks = GeneratedBlocks([(X[part], Y[part], factor * WEIGHTS[part]) for part in parts])
        fitted = TableClassifier(class_weight=class_weight).fit(blocks)
        found.append(fitted.predict_proba(X))
    assert_allclose(found[1], found[0], atol=1e-9)


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("name", [name for name in WEIGHTED if kind(name) not in COPIES_DIFFER])
def test_whole_weights_are_copies(name):
    rows, samples = good_rows(name), np.arange(N)
    expected = scores(name, rows, np.repeat(samples, WEIGHTS))
    found = scores(name, rows, samples, WEIGHTS)
    tolerance = SOLVED.get(kind(name), 1e-6)
    assert_allclose(found, expected, atol=tolerance * np.abs(expected).max())


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("name", WEIGHTED)
def test_samples_of_weight_0_are_left_out(name):
    rows, weight = good_rows(name), np.ones(N)
    weight[::7] = 0.0
    if kind(name) in ("MaxMarginShift", "MaxMarginPCA"):
        pytest.skip("such samples are samples without a class")
    expected = scores(name, rows, np.flatnonzero(weight), np.ones(np.count_nonzero(weight)))
    found = scores(name, rows, np.arange(N), weight)
    assert_allclose(found, expected, atol=1e-9 * np.abs(expected).max())


@pytest.mark.skipif(not PAGE.is_file(), reason="docs/ is not there")
def test_the_page_names_the_exceptions():
    text = " ".join(
        PAGE.read_text().split("Sample weights")[1].split("Metadata routing")[0].split()
    )
    for reasons in (FACTOR_MATTERS, COPIES_DIFFER):
        for name, reason in reasons.items():
            assert f"`{name}`" in text, name
            assert reason in text, (name, reason)
