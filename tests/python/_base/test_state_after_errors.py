"""An error in `fit` leaves an estimator as it was, whether it is new or fitted."""

import copy
import importlib
import pickle
import warnings

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
from every_estimator import ESTIMATORS, D, N, X, Y, good_rows, new
from project import listed
from sklearn.base import BaseEstimator
from sklearn.utils.validation import has_fit_parameter

import eigenfeat as ef


def with_value(value, at=(-1, -1)):
    rows = X.copy()
    rows[at] = value
    return rows


class Torn(ef.samples.RowBlocks):
    """Blocks that end in an error after the first block."""

    def __iter__(self):
        yield ef.samples.Block(X[:20], Y[:20])
        raise OSError("the disk is gone")


WIDE = np.hstack([X, X[:, ::-1]])  # another number of columns than fits before
NAMED = pd.DataFrame(X, columns=["a", "b", "c", "d"])

BAD = {
    "NaN": lambda: (with_value(np.nan), Y),
    "only NaN": lambda: (np.full_like(WIDE, np.nan), Y),
    "infinity": lambda: (with_value(np.inf), Y),
    "NaN in wide rows": lambda: (np.where(WIDE[-1, -1] == WIDE, np.nan, WIDE), Y),
    "no rows": lambda: (X[:0], Y[:0]),
    "no columns": lambda: (X[:, :0], Y),
    "one row": lambda: (X[:1], Y[:1]),
    "a vector": lambda: (X[:, 0], Y),
    "text": lambda: (X.astype(str).astype(object) + "x", Y),
    "complex": lambda: (X + 1j, Y),
    "ragged": lambda: ([[1.0, 2.0], [1.0]] * (N // 2), Y),
    "mixed names": lambda: (NAMED.rename(columns={"a": 1}), Y),
    "labels of another number": lambda: (X, Y[:-1]),
    "one class": lambda: (X, np.zeros(N, dtype=int)),
    "one class of wide rows": lambda: (WIDE, np.zeros(N, dtype=int)),
    "no labels": lambda: (X, None),
    "missing labels": lambda: (WIDE, np.where(Y == 0, np.nan, Y)),
    "infinite labels": lambda: (WIDE, np.where(Y == 0, np.inf, Y)),
    "labels of two kinds": lambda: (WIDE, np.array(["a", 1, None] * (N // 3), dtype=object)),
    "labels in columns": lambda: (WIDE, np.stack([Y, Y], axis=1)),
    "labels all different": lambda: (WIDE[:5], np.arange(5)),
    "constant rows": lambda: (np.ones((N, D + 1)), Y),
    "constant sparse rows": lambda: (sp.csr_matrix((N, D + 1)), Y),
    "huge rows": lambda: (WIDE * 1e307, Y),
    "rows beyond float32": lambda: (np.full((N, D + 1), 3e38, dtype=np.float32) * Y[:, None], Y),
    "equal rows": lambda: (np.repeat(WIDE[:1], N, axis=0), Y),
    "blocks that end in an error": lambda: (Torn(), None),
    "blocks without labels": lambda: (ef.samples.ArrayBlocks(WIDE, block_rows=20), None),
    "blocks with NaN": lambda: (ef.samples.ArrayBlocks(with_value(np.nan), Y, block_rows=20), None),
    "blocks of one class": lambda: (ef.samples.ArrayBlocks(WIDE, 0 * Y, block_rows=20), None),
}


def answers(estimator, name):
    """Outputs of a fitted estimator."""
    found = {}
    for method in ("predict", "transform", "predict_early"):
        if hasattr(estimator, method):
            made = getattr(estimator, method)(good_rows(name)[:9])
            found[method] = np.asarray(getattr(made, "label", made)).tobytes()
    return found


def attempt(estimator, rows, labels, more):
    """Whether fit fails."""
    with warnings.catch_warnings(), np.errstate(all="ignore"):
        warnings.simplefilter("ignore")
        try:
            estimator.fit(rows, labels, **more)
        except Exception:
            return True
    return False


# Each estimator once, and a configuration that is fitted in another way.
ONCE = [name for name in ESTIMATORS if "," not in name] + ["MaxMarginShift, joint"]


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("name", ONCE)
def test_an_estimator_stays_as_it_was(name):
    """A failed fit changes neither new nor fitted estimators; no fit changes nested estimators."""
    estimator, more = new(name)
    inner = [value for value in vars(estimator).values() if isinstance(value, BaseEstimator)]
    theirs = [dict(vars(one)) for one in inner]
    estimator.fit(good_rows(name), Y, **more)
    before, known = dict(vars(estimator)), answers(estimator, name)
    saved = copy.deepcopy(estimator)
    changed, failures = [], 0
    for what, make in BAD.items():
        rows, labels = make()
        if not attempt(estimator, rows, labels, more):
            estimator = copy.deepcopy(saved)  # because the fit succeeded
            before = dict(vars(estimator))
            continue
        failures += 1
        after = vars(estimator)
        if list(after) != list(before) or any(after[key] is not before[key] for key in before):
            changed.append((what, [key for key in after if after[key] is not before.get(key)]))
        unfitted, more = new(name)
        bare = dict(vars(unfitted))
        if attempt(unfitted, rows, labels, more) and vars(unfitted) != bare:
            changed.append((what, "new"))
    assert changed == []
    assert answers(estimator, name) == known
    assert [vars(one) for one in inner] == theirs
    assert failures >= 11


FEW_STEPS = {"max_iter": 1, "tol": 1e-12}
HASTY = {
    **dict.fromkeys(("MultinomialLogit", "MulticlassSVM"), FEW_STEPS),
    **dict.fromkeys(("SparseLDG", "DiscriminativeGaussian", "ITML", "MaxMarginPCA"), FEW_STEPS),
    "LDG": {"n_neighbors": 50},
    "GEMClassifier": {"logit": ef.MultinomialLogit(**FEW_STEPS)},
    "GEMEnsemble": {"estimator__logit": ef.MultinomialLogit(**FEW_STEPS)},
    "MaxMarginShift": {"svm": ef.MulticlassSVM(**FEW_STEPS)},
}


@pytest.mark.filterwarnings("error")
@pytest.mark.parametrize("name", HASTY)
def test_a_warning_that_is_an_error(name):
    estimator = ESTIMATORS[name]().set_params(**HASTY[name])
    before = dict(vars(estimator))
    with pytest.raises(Warning):
        estimator.fit(X, Y)
    assert vars(estimator) == before


PARTIAL = [name for name in ONCE if hasattr(ESTIMATORS[name](), "partial_fit")]
MOMENTS = [name for name in ONCE if hasattr(ESTIMATORS[name](), "fit_moments")]


BAD_WEIGHTS = {
    "too few": np.ones(N - 1),
    "negative": np.where(np.arange(N) == 7, -1.0, 1.0),
    "NaN": np.where(np.arange(N) == 7, np.nan, 1.0),
    "zeros": np.zeros(N),
    "text": np.array(["heavy"] * N),
}


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize(
    "name", [name for name in ESTIMATORS if has_fit_parameter(new(name)[0], "sample_weight")]
)
def test_bad_weights(name):
    estimator, more = new(name)
    estimator.fit(good_rows(name), Y, **more)
    before = dict(vars(estimator))
    for weight in BAD_WEIGHTS.values():
        with pytest.raises(ValueError, match=r"[Ww]eight"):
            estimator.fit(good_rows(name)[:, ::-1], Y, sample_weight=weight, **more)
        assert all(vars(estimator)[key] is before[key] for key in before)
        assert vars(estimator).keys() == before.keys()


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("name", PARTIAL)
def test_partial_fit(name):
    fitted = ESTIMATORS[name]().partial_fit(good_rows(name), Y)
    for estimator in (ESTIMATORS[name](), fitted):
        for what, make in BAD.items():
            before = pickle.dumps(vars(estimator))
            try:
                with np.errstate(all="ignore"):
                    copy.deepcopy(estimator).partial_fit(*make())
            except Exception as error:
                with pytest.raises(type(error)), np.errstate(all="ignore"):
                    estimator.partial_fit(*make())
                assert pickle.dumps(vars(estimator)) == before, what


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("name", MOMENTS)
def test_fit_moments(name):
    singular = ef.ClassMoments().update(np.ones((30, D + 1)), np.arange(30) % 2)
    for moments in (singular, ef.ClassMoments().update(X, 0 * Y), ef.ClassMoments(), None):
        for fitted in (False, True):
            estimator = ESTIMATORS[name]()
            if "ridge" in estimator.get_params() and name != "GEM":
                estimator.set_params(ridge=0.0)
            if fitted:
                estimator.fit(X, Y)
            before = dict(vars(estimator))
            try:
                estimator.fit_moments(moments)
            except (ValueError, TypeError):
                assert vars(estimator) == before


@pytest.mark.skipif(not listed(), reason="docs/ is not there")
def test_no_estimator_was_forgotten():
    public = {getattr(importlib.import_module(home), name) for home, name in listed()}
    found = {one.__name__ for one in public if hasattr(one, "fit")}
    assert found == {name.split(",")[0] for name in ESTIMATORS}
