"""Sparse matrices whose arrays are not a matrix are refused before anything trusts them."""

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


def fractions(A):
    A.indices = A.indices.astype(np.float64)


FAULTS = {
    "far index": (entry(3, 2**31 - 1), "the column index 2147483647 at 3, of 4"),
    "index outside": (entry(3, 4), "the column index 4 at 3, of 4"),
    "negative index": (entry(3, -5), "the column index -5 at 3, of 4"),
    "long index": (long_indices, f"the column index {2**62} at 3, of 4"),
    "indices of another type": (fractions, "column indices of float64"),
    "far pointer": (pointer(7, 2**30), r"the pointer \d+ after 1073741824"),
    "last pointer": (pointer(-1, 2**30), "pointers up to 1073741824 for"),
    "negative pointer": (pointer(4, -3), r"the pointer -3 after \d+"),
    "first pointer": (pointer(0, 1), "1 as the first pointer"),
    "fewer pointers": (shorter("indptr"), "59 pointers for 60 rows"),
    "fewer indices": (shorter("indices"), r"\d+ indices for \d+ values"),
    "fewer values": (shorter("data"), r"\d+ indices for \d+ values"),
}


def broken(fault, make=sp.csr_matrix):
    A = make(WHOLE)
    FAULTS[fault][0](A)
    return A


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
@pytest.mark.parametrize("name", TAKE_SPARSE)
def test_every_estimator_refuses_them(name):
    """One fault: all of them are checked in one place, which blocks and moments try."""
    text = r"^X: expected a well-formed sparse matrix \(csr\), got the pointer -3 after"
    estimator, more = new(name)
    for make in (sp.csr_matrix, sp.csr_array):
        with pytest.raises(ValueError, match=text):
            estimator.fit(broken("negative pointer", make), Y, **more)
    fitted = estimator.fit(sp.csr_matrix(WHOLE), Y, **more)
    for method in ("transform", "predict", "predict_proba", "decision_function"):
        if hasattr(fitted, method):
            with pytest.raises(ValueError, match=text):
                getattr(fitted, method)(broken("negative pointer"))
    if hasattr(fitted, "partial_fit"):
        with pytest.raises(ValueError, match=text):
            fitted.partial_fit(broken("negative pointer"), Y)


@pytest.mark.parametrize("fault", FAULTS)
def test_blocks_and_moments_refuse_them(fault):
    text = f"^X: expected a well-formed sparse matrix .*{FAULTS[fault][1]}"
    good = sp.csr_matrix(WHOLE)
    with pytest.raises(ValueError, match=text):
        ef.ClassMoments().update(broken(fault), Y)
    with pytest.raises(ValueError, match=text):
        ef.samples.ArrayBlocks(broken(fault), Y)
    for model in (ef.GEMClassifier(), ef.GEM(), ef.MultinomialLogit()):
        with pytest.raises(ValueError, match=text):
            model.fit(lambda: iter([(good, Y), (broken(fault), Y)]))
    fitted = ef.GEMClassifier().fit(good, Y)
    with pytest.raises(ValueError, match=text):
        list(fitted.predict(ef.samples.GeneratedBlocks([broken(fault)])))


def test_other_formats():
    text = "^X: expected a well-formed sparse matrix"
    columns = sp.csc_matrix(WHOLE)
    columns.indices[2] = 60
    with pytest.raises(ValueError, match=rf"{text} \(csc\), got the row index 60 at 2, of 60"):
        ef.GEMClassifier().fit(columns, Y)
    for make, name, axis in ((sp.coo_matrix, "col", "column"), (sp.coo_matrix, "row", "row")):
        points = make(WHOLE)
        getattr(points, name)[5] = 10**6
        with pytest.raises(ValueError, match=rf"{text} \(coo\), got the {axis} index 1000000"):
            ef.GEMClassifier().fit(points, Y)
    blocks = sp.bsr_matrix(WHOLE, blocksize=(2, 2))
    blocks.indices[1] = 2
    with pytest.raises(ValueError, match=rf"{text} \(bsr\), got the block index 2 at 1, of 2"):
        ef.GEMClassifier().fit(blocks, Y)


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
