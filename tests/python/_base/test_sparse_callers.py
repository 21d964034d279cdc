"""Sparse samples of the caller are not changed, even if they are unsorted or have duplicates.

Unsorted columns and duplicates, which add up, are legal. SciPy sorts and sums them in place in some
functions, such as `max`. The package must change neither the arrays nor the flags of such samples,
and must give the same results as for sorted samples without duplicates.
"""

import numpy as np
import pytest
import scipy.sparse as sp
from every_estimator import TAKE_SPARSE, X, Y, new, outputs, seeded
from flat_gem import gem_classifier

import eigenfeat as ef
from eigenfeat.expansion import features as expansion

RNG = np.random.default_rng(11)
# Rows of halves, so that their parts add up without rounding.
ROWS = np.where(RNG.random(X.shape) < 0.7, np.rint(2 * X + np.arange(4)) / 2, 0.0)


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


def unsorted_csc(rows):
    """Convert rows to CSC with unsorted and repeated entries, as in `in_disorder`."""
    other = in_disorder(rows.T)
    return sp.csc_matrix((other.data, other.indices, other.indptr), shape=rows.shape)


def repeated_coo(rows):
    """Convert rows to COO with repeated entries, as in `in_disorder`."""
    matrix = in_disorder(rows)
    numbers = np.repeat(np.arange(matrix.shape[0]), np.diff(matrix.indptr))
    return sp.coo_matrix((matrix.data, (numbers, matrix.indices)), shape=matrix.shape)


FORMS = {
    "csr": in_disorder,
    "csr array": lambda rows: sp.csr_array(in_disorder(rows)),
    "float32": lambda rows: in_disorder(rows, np.float32),
    "csc": unsorted_csc,
    "coo": repeated_coo,
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
    """Make the arrays of a sparse matrix read-only, so that temporary changes are detected."""
    for name in PARTS:
        if hasattr(matrix, name):
            getattr(matrix, name).flags.writeable = False
    return matrix


def fitted(name):
    """A function that fits an estimator to rows, and returns all of its outputs for the rows."""

    def use(rows):
        estimator, more = seeded(name)
        return [*outputs(estimator.fit(rows, Y, **more), rows).values()]

    return use


def partly(rows):
    model = ef.GEM(n_directions=2, threshold=0).partial_fit(rows, Y, classes=np.arange(3))
    return [*outputs(model, rows).values()]


def in_blocks(rows):
    model = gem_classifier(n_directions=2, threshold=0)
    model.fit(ef.samples.ArrayBlocks(rows, Y, block_rows=20))
    return [*outputs(model, rows).values()]


def moments(rows):
    found = ef.ClassMoments().update(rows, Y)
    return [found.mean(0), found.second_moment(1)]


def noise(rows):
    return [ef.rayleigh.OrientedPCA(2, ridge=0.1).fit(rows, noise=rows).transform(rows)]


USES = {name: fitted(name) for name in TAKE_SPARSE} | {
    "partial_fit": partly,
    "blocks": in_blocks,
    "ClassMoments": moments,
    "noise": noise,
    "ExpandedFeatures": lambda rows: [
        ef.expansion.ExpandedFeatures(rows, np.eye(4)[:, :3]).toarray()
    ],
    "expand": lambda rows: [expansion.expand(rows, np.eye(4)[:, :3])],
}
# These uses convert samples in different ways; the other uses share their code.
IN_EVERY_FORM = ("GEM", "MultinomialLogit", "LDG", "MulticlassSVM", "ClassMoments")


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("name", USES)
def test_rows_stay_as_they_are_and_disorder_makes_no_difference(name):
    for form in FORMS if name in IN_EVERY_FORM else ["csr"]:
        rows = lock(FORMS[form](ROWS))
        before = state(rows)
        found = USES[name](rows)
        assert state(rows) == before, form
        if form == "csr":
            wanted = USES[name](sp.csr_matrix(ROWS))
            for one, other in zip(found, wanted, strict=True):
                if one.dtype.kind == "f":
                    np.testing.assert_allclose(np.abs(one), np.abs(other), rtol=1e-4, atol=1e-4)
                else:
                    assert np.mean(one == other) > 0.97


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("name", TAKE_SPARSE)
def test_sparse_and_dense_rows_have_equal_outputs(name):
    found, wanted = (fitted(name)(rows)[0] for rows in (sp.csr_matrix(ROWS), ROWS))
    np.testing.assert_allclose(np.abs(found), np.abs(wanted), rtol=1e-5, atol=1e-6)


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("name", ["RandomizedGEM", "LDG"])
def test_rows_of_many_columns(name):
    wide = sp.lil_matrix((len(Y), 20_500))
    wide[:, ::6000] = ROWS
    rows = lock(in_disorder(wide.toarray()))
    before = state(rows)
    outputs(new(name)[0].fit(rows, Y), rows)
    assert state(rows) == before
