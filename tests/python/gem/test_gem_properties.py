"""What holds of GEM for any rows: order, units of columns, weights, and where the rows lie."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
from flat_gem import gem_classifier
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.testing import assert_allclose

from eigenfeat import GEM, ClassMoments, open_rows

few = settings(max_examples=10, deadline=None, derandomize=True)


@st.composite
def labelled_rows(draw):
    n, d = draw(st.integers(30, 60)), draw(st.integers(2, 6))
    rng = np.random.default_rng(draw(st.integers(0, 2**31)))
    y = np.arange(n) % 3
    X = rng.standard_normal((n, d)) * (1 + y[:, None]) ** rng.uniform(-1, 1, d)
    return X * (rng.random((n, d)) < 0.9), y, rng


def features(X, y, rows, weights=None):
    model = GEM(n_directions=2, threshold=None, scale="columns")
    return model.fit(X, y, sample_weight=weights).transform(rows)


@few
@given(labelled_rows(), st.integers(0, 30))
def test_order_units_weights_and_kinds_of_rows(problem, exponent):
    X, y, rng = problem
    counts = rng.integers(1, 4, len(y))
    weighted = features(X, y, X, counts)
    atol = 1e-6 * weighted.max()
    order = rng.permutation(len(y))
    units = 2.0 ** rng.integers(-exponent, exponent + 1, X.shape[1])
    for rows, labels, weights in (
        (X[order], y[order], counts[order]),
        (np.repeat(X, counts, axis=0), np.repeat(y, counts), None),
        (sp.csr_array(X), y, counts),
    ):
        assert_allclose(features(rows, labels, X, weights), weighted, rtol=0, atol=atol)
    assert_allclose(features(X * units, y, X * units, counts), weighted, rtol=0, atol=atol)


@pytest.mark.parametrize("kind", ["csv", "npy"])
def test_rows_in_files_by_blocks_and_as_moments_give_the_directions_of_arrays(rng, tmp_path, kind):
    y = np.arange(90) % 3
    X = rng.standard_normal((90, 4)) * (1 + y[:, None])
    table = np.column_stack([X, y])
    path = tmp_path / f"rows.{kind}"
    if kind == "npy":
        np.save(path, table)
    else:
        np.savetxt(path, table, fmt="%.17g", delimiter=",", header="a,b,c,d,kind", comments="")
    rows = open_rows(path, target=-1, block_rows=17)
    options = {"n_directions": 2, "threshold": None, "scale": "columns"}
    expected = GEM(**options).fit(X, y).transform(X)
    moments = ClassMoments().update(X[:40], y[:40]).update(X[40:], y[40:])
    named = pd.DataFrame(X, columns=rows.column_names) if rows.column_names else X
    for model, same in (
        (GEM(**options).fit(rows), named),
        (GEM(**options).fit_moments(moments), X),
    ):
        assert_allclose(model.transform(same), expected, rtol=0, atol=1e-8 * expected.max())
    one = gem_classifier(n_directions=2, threshold=None, scale="columns", tol=1e-4)
    other = gem_classifier(n_directions=2, threshold=None, scale="columns", tol=1e-4)
    found = other.fit(rows).predict_proba(named)
    assert_allclose(found, one.fit(X, y).predict_proba(X), rtol=0, atol=1e-3)
