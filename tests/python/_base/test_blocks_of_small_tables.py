"""Small tables with ties give the same results in blocks, in batches and in one array.

Moments of blocks and of an array differ by rounding errors. Rounding errors must not decide which
columns are constant, nor which directions exist.
"""

import warnings

import numpy as np
import pytest
from block_support import FarBlocks
from every_estimator import outputs
from random_tables import DEFAULTS, difference, random_table
from sklearn.utils.validation import has_fit_parameter

from eigenfeat import MultinomialLogit

LOGIT = MultinomialLogit(ridge_scale="common", temperature="auto", tol=1e-8)
# Estimators whose tolerance would show in the comparison are solved further, or take few steps.
PARAMETERS = {"GEMClassifier": {"logit": LOGIT}, "MultinomialLogit": {"tol": 1e-8}}
PARAMETERS |= {"CalibratedLeastSquares": {"n_iterations": 2}}
BLOCKS = ["GEM", "GEMClassifier", "ClassComponents", "MultinomialLogit", "FisherLDA"]
BLOCKS += ["CalibratedLeastSquares", "QuadraticDiscriminant", "SlicedInverseRegression"]
BLOCKS += ["RayleighPCA", "VanishingComponents", "RegularizedFisher", "PCAFisher", "DirectLDA"]
BLOCKS += ["GSVDDiscriminant", "MaximumMarginCriterion", "OrientedPCA"]
BATCHES = [name for name in BLOCKS if hasattr(DEFAULTS[name](), "partial_fit")]
# Estimators whose number of directions depends on the rounding errors of the samples' type.
OF_RANK = {"ClassComponents", "RayleighPCA", "PCAFisher", "GSVDDiscriminant"}
SEEDS = (1, 3, 11)  # the last two have weights
# Columns that hide other columns from an estimator that solves in the units of the columns.
OF_LARGEST = {"offset", "large", "small", "cauchy", "lognormal"}


def tied_table(seed):
    """Numbers, labels and weights or None of 8 to 96 samples: bits, counts, copies, repeats."""
    rng = np.random.default_rng([39, seed])
    table = random_table(seed, int(rng.integers(8, 97)))
    X = table.X.astype(np.float32 if table.X.dtype == np.float32 else np.float64)
    tied = np.column_stack([rng.random(len(X)) < 0.5, rng.integers(0, 3, len(X))])
    return np.column_stack([X, tied, tied[:, 1]]).astype(X.dtype), table


def parts(size, *arrays):
    return [
        tuple(a[i : i + size] for a in arrays if a is not None)
        for i in range(0, len(arrays[0]), size)
    ]


def fitted(name, fit):
    model = DEFAULTS[name]().set_params(**PARAMETERS.get(name, {}))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        fit(model)
    return model


def check(name, seed, ways):
    X, table = tied_table(seed)
    if name == "MaximumMarginCriterion" and OF_LARGEST & set(table.kinds):
        return
    weighted = has_fit_parameter(DEFAULTS[name](), "sample_weight")
    weight = table.weight if weighted else None
    whole = fitted(name, lambda model: model.fit(X, table.y, **given(weight)))
    known = outputs(whole, X)
    for way in ways:
        other = fitted(name, lambda model, way=way: way(model, X, table.y, weight))
        found = outputs(other, X)
        assert difference(known, found, name) < 5e-3


def given(weight):
    return {} if weight is None else {"sample_weight": weight}


def blocks_of(size):
    return lambda model, X, y, w: model.fit(lambda: iter(parts(size, X, y, w)))


def on_dask(model, X, y, w):
    da = pytest.importorskip("dask.array", reason="needs the extra 'dask'")
    chunks = [None if a is None else da.from_array(a, (17, *a.shape[1:])) for a in (X, y, w)]
    model.fit(*chunks[:2], **given(chunks[2]))


def batches_of(size):
    def fit(model, X, y, w):
        for part in parts(size, X, y, w):
            if w is None or part[2].any():
                model.partial_fit(*part[:2], **given(None if w is None else part[2]))

    return fit


@pytest.mark.parametrize("name", BLOCKS)
def test_blocks(name):
    for seed in SEEDS:
        check(name, seed, [blocks_of(5), on_dask])


@pytest.mark.parametrize("name", BLOCKS)
def test_blocks_far_from_zero_and_of_few_samples(name, rng):
    y = np.arange(400) % 4
    far = rng.standard_normal((400, 7)) * np.arange(1, 8) + 5 * np.eye(7)[y] + 1e6
    few = rng.standard_normal((20, 50)) + np.eye(4, 50)[y[:20]]
    for X, labels in ((far, y), (few, y[:20])):
        memory = fitted(name, lambda model, X=X, y=labels: model.fit(X, y))
        blocks = FarBlocks(X, labels, block_rows=7)
        found = fitted(name, lambda model, blocks=blocks: model.fit(blocks))
        assert difference(outputs(memory, X), outputs(found, X), name) < 1e-3
        parts = [outputs(found, X[start : start + 9]) for start in range(0, len(X), 9)]
        whole = {key: np.concatenate([part[key] for part in parts]) for key in parts[0]}
        assert difference(outputs(found, X), whole, name) < 1e-6


@pytest.mark.parametrize("name", sorted(OF_RANK))
@pytest.mark.parametrize("seed", [141, 689])
def test_rounding_of_float32_adds_no_direction(name, seed):
    assert tied_table(seed)[0].dtype == np.float32
    check(name, seed, [blocks_of(5)])


@pytest.mark.parametrize("name", BATCHES)
def test_batches(name):
    for seed in SEEDS:
        check(name, seed, [batches_of(11)])


@pytest.mark.long
@pytest.mark.parametrize("name", BLOCKS)
def test_more_blocks(name):
    for seed in range(5, 150):
        check(name, seed, [blocks_of(5), *([batches_of(11)] if name in BATCHES else [])])


@pytest.mark.parametrize("name", BATCHES)
def test_weights_of_batches_add_up(name):
    X, table = tied_table(0)
    model = DEFAULTS[name]()
    for weight in (1.0, 3.0):
        model.partial_fit(X, table.y, sample_weight=np.full(len(X), weight))
    assert sum(map(model.moments_.weight, model.moments_.classes_)) == 4 * len(X)
    with pytest.raises(ValueError, match=r"sample_weight: expected at least one positive weight"):
        model.partial_fit(X, table.y, sample_weight=np.zeros(len(X)))
