"""Classes of 1, 2, 3 and 5 samples: every estimator works, or names what is too small."""

import re
import warnings

import numpy as np
import pytest
from every_estimator import ESTIMATORS, rows_for
from sklearn.discriminant_analysis import LinearDiscriminantAnalysis
from sklearn.exceptions import ConvergenceWarning

import eigenfeat as ef
from eigenfeat.early import MinimumCostClassifier, ReliableClassifier

SIZES = [(1, 20), (2, 2), (3, 3), (1, 2, 3, 5), (1, 1, 320)]
# The only errors that are allowed name the class, or the parameter that asks for more samples.
TOO_SMALL = (
    r"y: expected two samples( or more)? of every class for .*, got one"
    r"|y: expected at least 2 epochs of each class, got 1 of "
    r"|validation_fraction: expected a part of the \d+ samples with one sample or more of each "
    r"|y: expected source samples of at least two classes|y: expected labels of the target among"
    r"|classifier: expected a classifier that can be fitted to the series outside a fold"
    r"|number of samples must be more than the number"
)
OF_DOMAINS = ("TransferLDG",)


def table(sizes):
    rng = np.random.default_rng(5)
    y = np.repeat(np.arange(len(sizes)), sizes)
    return rng.standard_normal((len(y), 4)) + y[:, None], y


@pytest.mark.filterwarnings("ignore:n_neighbors. expected more than:RuntimeWarning")
@pytest.mark.filterwarnings("ignore:X. constant channels are left out")
@pytest.mark.parametrize("name", ESTIMATORS)
def test_every_estimator(name):
    # A regressor has no classes, and its trees of many samples take long.
    for sizes in SIZES[:-1] if name.startswith("TableRegressor") else SIZES:
        X, y = table(sizes)
        given = {"sample_domain": np.where(np.arange(len(y)) % 2, 1, -1)}
        model, rows = ESTIMATORS[name](), rows_for(name, X)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", ConvergenceWarning)
            try:
                model.fit(rows, y, **given if name in OF_DOMAINS else {})
            except ValueError as error:
                text = str(error)
                if re.search(TOO_SMALL, text) is None or "\n" in text:
                    raise
                continue
            method = model.predict if hasattr(model, "predict") else model.transform
            assert len(method(rows)) == len(y)


@pytest.mark.parametrize(
    "model",
    [
        ReliableClassifier(LinearDiscriminantAnalysis(solver="lsqr", shrinkage="auto")),
        MinimumCostClassifier(n_times=2),
    ],
)
def test_early_classifiers_with_a_class_of_one_row(model):
    """The many inner fits give no warnings."""
    rng = np.random.default_rng(0)
    X, y = rng.standard_normal((60, 5)), np.zeros(60, dtype=int)
    y[7] = 1
    X[7] += 3
    assert set(model.fit(X, y).classes_) == {0, 1}
    if not isinstance(model, ReliableClassifier):
        with pytest.raises(ValueError, match="y: expected a class of two samples or more"):
            model.fit(X[:3], np.arange(3))


@pytest.mark.parametrize("depth", [2, 3])
def test_hidden_layers_of_few_rows_are_small(depth):
    """Work grows with the cube of a layer's width: no more directions than rows."""
    rng = np.random.default_rng(0)
    X, y = rng.standard_normal((48, 13)), np.arange(48) % 12
    model = ef.GEMClassifier(depth=depth).fit(X, y)
    assert all(len(layer.offset) <= 48 for layer in model.layers_[:-1])
    assert model.score(X, y) > 0.5
    few = ef.GEMClassifier(depth=depth, hidden_directions=1).fit(X, y)
    assert len(few.layers_[0].offset) == 132  # one direction for each pair of classes, as requested
