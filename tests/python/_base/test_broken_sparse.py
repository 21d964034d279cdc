"""Sparse matrices with inconsistent arrays are refused before the arrays are used."""

import numpy as np
import pytest
import scipy.sparse as sp
from every_estimator import TAKE_SPARSE, X, Y, new

import eigenfeat as ef
from eigenfeat._base.matrices import well_formed

WHOLE = np.abs(np.where(np.random.default_rng(0).random(X.shape) < 0.7, X, 0.0))


def entry(number, value):
    def spoil(A):
        A.indices[number] = value

    return spoil


def pointer(number, value):
    def spoil(A):
        A.indptr[number] = value

    return spoil


def shorter(name):
    def spoil(A):
        setattr(A, name, getattr(A, name)[:-2])

    return spoil


def long_indices(A):
    A.indices = A.indices.astype(np.int64)
    A.indices[3] = 2**62


def without_entries(A):
    A.data, A.indices = A.data[:0], A.indices[:0]
    A.indptr[1:-1] = 10**6
    A.indptr[-1] = 0


FAULTS = {
    "far index": entry(3, 2**31 - 1),
    "index outside": entry(3, 4),
    "negative index": entry(3, -5),
    "long index": long_indices,
    "far pointer": pointer(7, 2**30),
    "last pointer": pointer(-1, 2**30),
    "negative last pointer": pointer(-1, -3),
    "negative pointer": pointer(4, -3),
    "first pointer": pointer(0, 1),
    "fewer pointers": shorter("indptr"),
    "fewer indices": shorter("indices"),
    "fewer values": shorter("data"),
    "pointers without entries": without_entries,
}
TEXT = "^X: expected a well-formed sparse matrix"


def broken(fault, make=sp.csr_matrix):
    A = make(WHOLE)
    FAULTS[fault](A)
    return A


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
@pytest.mark.parametrize("name", TAKE_SPARSE)
def test_every_estimator_refuses_broken_matrices(name):
    """One fault suffices here: the tests of blocks and moments try all of them."""
    estimator, more = new(name)
    for make in (sp.csr_matrix, sp.csr_array):
        with pytest.raises(ValueError, match=TEXT):
            estimator.fit(broken("negative pointer", make), Y, **more)
    fitted = estimator.fit(sp.csr_matrix(WHOLE), Y, **more)
    for method in ("transform", "predict", "predict_proba", "decision_function"):
        if hasattr(fitted, method):
            with pytest.raises(ValueError, match=TEXT):
                getattr(fitted, method)(broken("negative pointer"))
    if hasattr(fitted, "partial_fit"):
        with pytest.raises(ValueError, match=TEXT):
            fitted.partial_fit(broken("negative pointer"), Y)


@pytest.mark.parametrize("fault", FAULTS)
def test_blocks_and_moments_refuse_broken_matrices(fault):
    good = sp.csr_matrix(WHOLE)
    with pytest.raises(ValueError, match=TEXT):
        ef.ClassMoments().update(broken(fault), Y)
    with pytest.raises(ValueError, match=TEXT):
        ef.samples.ArrayBlocks(broken(fault), Y)
    for model in (ef.GEMClassifier(), ef.GEM(), ef.MultinomialLogit()):
        with pytest.raises(ValueError, match=TEXT):
            model.fit(lambda: iter([(good, Y), (broken(fault), Y)]))
    fitted = ef.GEMClassifier().fit(good, Y)
    with pytest.raises(ValueError, match=TEXT):
        list(fitted.predict(ef.samples.GeneratedBlocks([broken(fault)])))


def test_other_formats():
    columns = sp.csc_matrix(WHOLE)
    columns.indices[2] = 60
    points = sp.coo_matrix(WHOLE)
    points.col[5] = 10**6
    blocks = sp.bsr_matrix(WHOLE, blocksize=(2, 2))
    blocks.indices[1] = 2
    for matrix in (columns, points, blocks):
        with pytest.raises(ValueError, match=rf"{TEXT} \({matrix.format}\), got"):
            ef.GEMClassifier().fit(matrix, Y)


def test_entries_twice_and_out_of_order_are_summed_in_a_copy():
    A = sp.csr_matrix(([1.0, 2.0, 3.0, 4.0], [3, 1, 3, 0], [0, 3, 4]), shape=(2, 4))
    before = [part.copy() for part in (A.data, A.indices, A.indptr)]
    assert A.has_canonical_format is False
    stale = A.copy()
    stale.has_canonical_format = stale.has_sorted_indices = True
    for given in (A, stale):
        found = well_formed(given)
        assert found.data.tolist() == [2.0, 4.0, 4.0]
        assert found.indices.tolist() == [1, 3, 0]
    for part, old in zip((A.data, A.indices, A.indptr), before, strict=True):
        np.testing.assert_array_equal(part, old)
    spare = sp.csr_matrix(WHOLE)
    spare.data = np.concatenate([spare.data, [np.nan]])
    spare.indices = np.concatenate([spare.indices, [10**6]]).astype(np.int32)
    np.testing.assert_array_equal(well_formed(spare).toarray(), WHOLE)
