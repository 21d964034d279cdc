"""Sparse rows stay as the caller has them, in any order and with entries that add up.

Unsorted columns and several entries of one place are legal, and SciPy puts them in order in place
whenever something asks for a maximum. Nothing here may: not the arrays, not one bit of them, nor
the flags. What is made of such rows is what is made of the same rows in order.
"""

from __future__ import annotations

import inspect

import numpy as np
import pytest
import scipy.sparse as sp
from flat_gem import gem_classifier
from sklearn.base import BaseEstimator
from sklearn.decomposition import TruncatedSVD
from sklearn.utils import get_tags

import eigenfeat as ef
from eigenfeat import incomplete, ldg, maxmargin
from eigenfeat.expansion import features as expansion
from eigenfeat.gem.clusters import class_clusters

N, D, K = 102, 7, 3
Y = np.arange(N) % K


def dense_rows():
    """Rows of halves, so that their parts add up without rounding."""
    rng = np.random.default_rng(11)
    X = np.rint(2 * rng.standard_normal((N, D)) * np.array([3, 1, 1, 2, 1, 2, 1])) / 2
    X[np.arange(N), Y] += 3
    return np.where(rng.random((N, D)) < 0.7, X, 0.0)


X = dense_rows()


def in_disorder(rows, dtype=np.float64):
    """A CSR matrix of the same sums with unsorted columns, duplicates and stored zeros."""
    rng = np.random.default_rng(3)
    coo = sp.coo_matrix(rows)
    r = np.concatenate([coo.row, coo.row, coo.row[:20]])
    c = np.concatenate([coo.col, coo.col, (coo.col[:20] + 1) % rows.shape[1]])
    v = np.concatenate([coo.data - 1, np.ones(coo.nnz), np.zeros(20)]).astype(dtype)
    order = np.lexsort([rng.random(len(r)), r])
    indptr = np.concatenate([[0], np.cumsum(np.bincount(r, minlength=len(rows)))])
    made = sp.csr_matrix(
        (v[order], c[order].astype(np.int32), indptr.astype(np.int32)), shape=rows.shape
    )
    assert not made.has_sorted_indices
    assert not made.has_canonical_format
    return made


def turned(matrix):
    """The same in CSC, as much in disorder."""
    other = in_disorder(np.asarray(matrix.todense()).T)
    return sp.csc_matrix((other.data, other.indices, other.indptr), shape=matrix.shape)


def coordinates(matrix):
    rows = np.repeat(np.arange(matrix.shape[0]), np.diff(matrix.indptr))
    return sp.coo_matrix((matrix.data, (rows, matrix.indices)), shape=matrix.shape)


FORMS = {
    "csr": lambda: in_disorder(X),
    "csr array": lambda: sp.csr_array(in_disorder(X)),
    "float32": lambda: in_disorder(X, np.float32),
    "csc": lambda: turned(in_disorder(X)),
    "coo": lambda: coordinates(in_disorder(X)),
}
PARTS = ("data", "indices", "indptr", "row", "col")
FLAGS = ("has_sorted_indices", "has_canonical_format")


def state(matrix):
    """Everything about a sparse matrix that a caller can see."""
    parts = {name: getattr(matrix, name) for name in PARTS if hasattr(matrix, name)}
    return {
        "type": type(matrix),
        "shape": matrix.shape,
        "arrays": {name: id(part) for name, part in parts.items()},
        "bytes": {name: (part.dtype, part.tobytes()) for name, part in parts.items()},
        "flags": {name: bool(getattr(matrix, name)) for name in FLAGS if hasattr(matrix, name)},
    }


def lock(matrix):
    """Make its arrays read-only, so that a change that is undone is found, too."""
    for name in PARTS:
        if hasattr(matrix, name):
            getattr(matrix, name).flags.writeable = False
    return matrix


# ---- what takes sparse rows ----------------------------------------------------------------------


def fitted(estimator, *, labels=True):
    """A function of rows: fit, and everything that the estimator makes of them."""

    def use(rows):
        estimator.fit(rows, Y) if labels else estimator.fit(rows)
        found = []
        for method in ("transform", "predict", "predict_proba", "decision_function"):
            if hasattr(estimator, method):
                found.append(np.asarray(getattr(estimator, method)(rows)))
        if hasattr(estimator, "score") and labels:
            found.append(np.asarray(estimator.score(rows, Y)))
        return found

    return use


def labels_alone(estimator):
    """As `fitted`, of what stops within a gap, and where is a matter of rounding."""
    return lambda rows: [found for found in fitted(estimator)(rows) if found.dtype.kind != "f"]


def partly(estimator):
    def use(rows):
        estimator.partial_fit(rows, Y, classes=np.arange(K))
        return [estimator.transform(rows)]

    return use


def moments(rows):
    found = ef.ClassMoments().update(rows, Y)
    return [found.mean(0), found.second_moment(1)]


def expanded(rows):
    layer = ef.expansion.ExpandedRows(rows, np.eye(D)[:, :3], np.zeros(3))
    return [np.asarray(layer.toarray()) if hasattr(layer, "toarray") else np.zeros(1)]


def projected(rows):
    return [expansion.expand(rows, np.eye(D)[:, :3])]


def in_blocks(estimator):
    def use(rows):
        estimator.fit(ef.rows.ArrayBlocks(rows, Y, block_rows=20))
        return [np.asarray(getattr(estimator, method)(rows)) for method in ("transform", "predict")
                if hasattr(estimator, method)]  # fmt: skip

    return use


def noise(rows):
    model = ef.rayleigh.OrientedPCA(n_components=2, ridge=0.1).fit(rows, noise=rows)
    return [model.transform(rows)]


def clusters(rows):
    one = np.zeros(N)  # enough rows for two clusters
    found = [
        class_clusters(rows.tocsr(), one, 2, scaled=s, random_state=0)[0] for s in (False, True)
    ]
    assert [len(np.unique(names)) for names in found] == [2, 2]
    return [np.unique(names, return_inverse=True)[1] for names in found]


LDG = {"n_components": 2, "gamma": 1.0, "n_neighbors": 8}
USES = {
    "GEM": lambda: fitted(ef.GEM(n_directions=2, threshold=0, scale="none")),
    "GEM, scaled": lambda: fitted(ef.GEM(n_directions=2, threshold=0, scale="columns")),
    "GEM, randomized": lambda: fitted(
        ef.GEM(n_directions=1, threshold=0, solver="randomized", random_state=0)
    ),
    "GEM, randomized and scaled": lambda: fitted(
        ef.GEM(n_directions=1, threshold=0, solver="randomized", scale="columns", random_state=0)
    ),
    "GEM, partial": lambda: partly(ef.GEM(n_directions=2, threshold=0)),
    "GEM, blocks": lambda: in_blocks(ef.GEM(n_directions=2, threshold=0)),
    "GEMClassifier": lambda: fitted(gem_classifier(n_directions=2, threshold=0)),
    "GEMClassifier, deep": lambda: fitted(
        gem_classifier(n_directions=2, threshold=0, depth=2, include_input=True)
    ),
    "GEMClassifier, clusters": lambda: fitted(
        gem_classifier(n_directions=1, threshold=0, n_clusters=2, random_state=0)
    ),
    "GEMClassifier, blocks": lambda: in_blocks(gem_classifier(n_directions=2, threshold=0)),
    "GEMClassifierCV": lambda: fitted(
        ef.GEMClassifierCV(grid={"logit__penalty": [0.1, 1.0]}, random_state=0)
    ),
    "GEMEnsemble": lambda: fitted(
        ef.GEMEnsemble(gem_classifier(n_directions=1, threshold=0), n_members=2, random_state=0)
    ),
    "MultinomialLogit": lambda: fitted(ef.MultinomialLogit()),
    "MultinomialLogit, no Gram": lambda: fitted(ef.MultinomialLogit(gram_rows=20, random_state=0)),
    "CalibratedLeastSquares": lambda: fitted(ef.CalibratedLeastSquares(n_iterations=3)),
    "FisherLDA": lambda: fitted(ef.FisherLDA()),
    "QuadraticDiscriminant": lambda: fitted(ef.rayleigh.QuadraticDiscriminant()),
    "SlicedInverseRegression": lambda: fitted(ef.rayleigh.SlicedInverseRegression(n_slices=3)),
    "RayleighPCA": lambda: fitted(ef.rayleigh.RayleighPCA(n_components=2), labels=False),
    "VanishingComponents": lambda: fitted(
        ef.rayleigh.VanishingComponents(n_components=2), labels=False
    ),
    "OrientedPCA": lambda: noise,
    "LDG": lambda: fitted(ldg.LDG(**LDG)),
    "LDG, chosen": lambda: fitted(ldg.LDG(random_state=0)),
    "LDG, randomized": lambda: fitted(ldg.LDG(**LDG, solver="randomized", random_state=0)),
    "PartitionedReducer": lambda: fitted(
        ldg.PartitionedReducer(ldg.LDG(**LDG), part_size=3, random_state=0)
    ),
    "SparseLDG": lambda: fitted(ldg.SparseLDG(**LDG, random_state=0)),
    "DiscriminativeGaussian": lambda: fitted(
        ldg.DiscriminativeGaussian(**LDG, max_iter=20, random_state=0)
    ),
    "KernelLDG": lambda: fitted(ldg.KernelLDG(kernel="rbf", **LDG)),
    "KernelLDG, linear": lambda: fitted(ldg.KernelLDG(kernel="linear", **LDG)),
    "ClassComponents": lambda: fitted(ef.gem.ClassComponents(n_directions=1)),
    "MulticlassSVM": lambda: fitted(ef.MulticlassSVM(tol=1e-6)),
    "MulticlassSVM, Frank-Wolfe": lambda: labels_alone(
        ef.MulticlassSVM(solver="frank_wolfe", random_state=0)
    ),
    "MaxMarginShift": lambda: fitted(
        ef.MaxMarginShift(TruncatedSVD(2, random_state=0), sigma2=0.5)
    ),
    "MaxMarginPCA": lambda: fitted(
        ef.maxmargin.MaxMarginPCA(2, sigma2=0.5, svm=ef.MulticlassSVM(tol=1e-7))
    ),
    "MaxMarginShift, chosen": lambda: fitted(
        ef.MaxMarginShift(TruncatedSVD(2, random_state=0), scales=[0.5, 1.0])
    ),
    "ClassMoments": lambda: moments,
    "ExpandedRows": lambda: expanded,
    "expand": lambda: projected,
    "class_clusters": lambda: clusters,
}


# What brings samples to one form is shared; these come to it in ways of their own.
IN_EVERY_FORM = ("GEM", "MultinomialLogit", "LDG, randomized", "MulticlassSVM", "ClassMoments")


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize(
    ("name", "form"),
    [
        *((name, "csr") for name in USES),
        *((name, form) for name in IN_EVERY_FORM for form in FORMS if form != "csr"),
    ],
)
def test_the_callers_rows_stay_as_they_are(name, form):
    rows = lock(FORMS[form]())
    before = state(rows)
    USES[name]()(rows)
    assert state(rows) == before


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("name", USES)
def test_disorder_makes_no_difference(name):
    found, wanted = USES[name]()(in_disorder(X)), USES[name]()(sp.csr_matrix(X))
    for one, other in zip(found, wanted, strict=True):
        if one.dtype.kind == "f":
            np.testing.assert_allclose(np.abs(one), np.abs(other), rtol=1e-4, atol=1e-4)
        else:
            assert np.mean(one == other) > 0.97


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize(
    "model",
    [
        ef.GEM(n_directions=1, threshold=0),
        gem_classifier(n_directions=1, threshold=0),
        ldg.LDG(**LDG),
        ldg.LDG(**LDG, solver="randomized"),
    ],
    ids=str,
)
def test_rows_of_many_columns(model):
    wide = sp.lil_matrix((N, 20_500))
    wide[:, ::3000] = X
    rows = in_disorder(wide.toarray())
    before = state(lock(rows))
    fitted(model)(rows)
    assert state(rows) == before


def estimators():
    """Every public estimator that says that it takes sparse rows."""
    for module in (ef, ldg, incomplete, maxmargin):
        for name in module.__all__:
            made = getattr(module, name)
            if inspect.isclass(made) and issubclass(made, BaseEstimator):
                given = inspect.signature(made).parameters.values()
                if any(one.default is one.empty for one in given):
                    continue  # of early decisions, about rows with missing entries
                if get_tags(made()).input_tags.sparse:
                    yield name


def test_no_estimator_was_forgotten():
    used = {name.split(",")[0] for name in USES}
    assert set(estimators()) <= used
