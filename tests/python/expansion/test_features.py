"""Feature rows that are never formed: `ExpandedFeatures`, and the core's products with them."""

import numpy as np
import pytest
import scipy.sparse as sp
from numpy.testing import assert_allclose, assert_array_equal

from eigenfeat.expansion.features import ExpandedFeatures, core_rows, take_rows
from eigenfeat.linear.logistic import MultinomialLogit

EXPANSIONS = ("half_wave", "shifted", "polynomial", "none")


@pytest.fixture
def parts(rng):
    """Rows (40, 7), directions (7, 9), offset (9,): small dyadic numbers, whose sums are exact."""

    def dyadic(*shape):
        return np.clip(np.round(4 * rng.standard_normal(shape)) / 4, -2, 2)

    return dyadic(40, 7), dyadic(7, 9), dyadic(9)


def by_hand(X, V, offset, expansion, powers, include_input):
    P = X @ V + (0 if offset is None else offset)
    columns = [X] if include_input else []
    if expansion == "none":
        columns.append(P)
    elif expansion == "polynomial":
        columns += [P**a for a in powers]
    else:
        for sign in (1, -1):
            z = np.maximum(sign * P, 0)
            base = np.sqrt(z) if expansion == "half_wave" else np.sqrt(1 + z) - 1
            columns += [base**a for a in powers]
    return np.hstack(columns)


@pytest.mark.parametrize("expansion", EXPANSIONS)
@pytest.mark.parametrize("include_input", [False, True])
@pytest.mark.parametrize("kind", ["dense", "csr", "stored", "float32"])
def test_features_by_hand(parts, expansion, include_input, kind):
    X, V, offset = parts
    source = {"csr": sp.csr_matrix(X), "float32": X.astype(np.float32)}.get(kind, X)
    rows = ExpandedFeatures(source, V, offset, expansion, (1, 3), include_input)
    if kind == "stored":
        rows = rows.stored()
        assert (rows.X is None) == (not include_input)
    expected = by_hand(X, V, offset, expansion, (1, 3), include_input)
    assert rows.shape == expected.shape
    assert len(rows) == 40
    got = rows.toarray()
    assert got.dtype == rows.dtype == (np.float32 if kind == "float32" else np.float64)
    assert_allclose(got, expected, rtol=20 * np.finfo(got.dtype).eps, atol=1e-6)
    assert_array_equal(rows.take([3, 1]).toarray(), got[[3, 1]])
    assert_array_equal(take_rows(rows, np.arange(40) > 30).toarray(), got[31:])


@pytest.mark.parametrize("dtype", [np.int64, np.uint8, np.bool_, np.float16, np.int32])
def test_rows_of_any_type(parts, dtype):
    """Directions are not rounded to the type of the rows."""
    X, V, offset = parts
    X = (X > 0).astype(dtype)
    expected = by_hand(X.astype(float), V, offset, "half_wave", (1, 2, 3), True)
    sources = [X] if dtype == np.float16 else [X, sp.csr_matrix(X)]
    for source in sources:
        rows = ExpandedFeatures(source, V, offset, include_input=True)
        assert rows.dtype == np.float64
        assert_allclose(rows.toarray(), expected, atol=1e-12)
        W = np.ones((rows.shape[1], 1))
        assert_allclose(core_rows(rows, False).scores(W, 1), expected @ W, atol=1e-10)
        assert_allclose(core_rows(rows.take([0, 5]), False).scores(W, 1), expected[[0, 5]] @ W)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"expansion": "full"}, "expansion: expected one of half_wave"),
        ({"powers": (1, 1)}, "powers: expected distinct numbers"),
        ({"powers": (4,)}, "powers: expected distinct numbers"),
        ({"directions": np.ones(7)}, r"directions: expected shape \(d, F\), got \(7,\)"),
        ({"directions": np.ones((6, 2))}, "X: expected 6 columns, got 7"),
        ({"directions": np.full((7, 2), "a")}, "directions: expected an array of real numbers"),
        ({"offset": np.ones(3)}, r"offset: expected shape \(9,\), got \(3,\)"),
        ({"offset": np.full(9, np.inf)}, "offset: expected finite numbers"),
        ({"projections": np.ones((40, 3))}, r"projections: expected shape \(40, 9\)"),
        ({"projections": np.ones((39, 9))}, r"projections: expected shape \(40, 9\)"),
        ({"projections": np.ones(9)}, r"projections: expected shape \(40, 9\)"),
        ({"X": None}, "X: expected samples, which the expansion needs, got None"),
        ({"X": np.ones(7)}, "X: expected"),
    ],
)
def test_errors_name_the_array(parts, change, message):
    X, V, offset = parts
    with pytest.raises(ValueError, match=message):
        ExpandedFeatures(**({"X": X, "directions": V, "offset": offset} | change))


def test_input_needs_rows_even_with_projections(parts):
    X, V, _ = parts
    with pytest.raises(ValueError, match="X: expected samples"):
        ExpandedFeatures(None, V, projections=X @ V, include_input=True)
    assert ExpandedFeatures(None, V, projections=X @ V).shape == (40, 54)


@pytest.mark.parametrize("entry", [np.nan, np.inf])
def test_rows_that_are_not_finite_give_no_prediction(entry):
    random = np.random.RandomState(0)
    X, directions = random.standard_normal((60, 4)), random.standard_normal((4, 3))
    model = MultinomialLogit().fit(ExpandedFeatures(X, directions), np.arange(60) % 3)
    X[7, 2] = entry
    with pytest.raises(ValueError, match=r"X: expected features of finite logits, .* in row 7"):
        model.predict(ExpandedFeatures(X, directions))


def test_columns_without_directions():
    X = np.arange(12.0).reshape(4, 3)
    none = np.empty((3, 0))
    for rows in (ExpandedFeatures(X, none, include_input=True), ExpandedFeatures(X, none)):
        expected = X if rows.include_input else np.empty((4, 0))
        assert_array_equal(rows.toarray(), expected)
        assert_array_equal(rows.stored().toarray(), expected)
