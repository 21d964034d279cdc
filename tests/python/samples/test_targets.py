"""Bins of continuous targets: order, balance, ties, weights, contractions, errors."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from eigenfeat.samples.targets import discretize_target, target_groups

integers = st.lists(st.integers(-40, 40), min_size=2, max_size=60).filter(lambda y: len(set(y)) > 1)
n_bins = st.integers(2, 12)
quick = settings(max_examples=60, deadline=None)


# ---- properties ----------------------------------------------------------------------------------


@quick
@given(integers, n_bins)
def test_increasing_functions_of_the_target_give_the_same_bins(y, b):
    y = np.array(y, dtype=float)
    bins = discretize_target(y, b)
    for same in (y**3, 3 * y - 7, np.exp(y / 10), np.arctan(y)):
        assert discretize_target(same, b).tolist() == bins.tolist()


@quick
@given(integers, n_bins)
def test_bins_are_ordered_and_nonempty_and_keep_ties_together(y, b):
    y = np.array(y)
    bins = discretize_target(y, b)
    assert bins.dtype == np.int64
    assert np.unique(bins).tolist() == list(range(bins.max() + 1))
    assert 1 <= bins.max() < b
    assert all(len(set(bins[y == value])) == 1 for value in y)
    order = np.argsort(y, kind="stable")
    assert np.all(np.diff(bins[order]) >= 0)


@quick
@given(integers, n_bins)
def test_sizes_are_balanced_up_to_ties(y, b):
    _, ties = np.unique(y, return_counts=True)
    sizes = np.bincount(discretize_target(y, b))
    if len(ties) <= b:
        assert sizes.tolist() == ties.tolist()
    else:
        assert sizes.max() <= len(y) / b + ties.max()


@quick
@given(integers, n_bins, st.integers(0, 9))
def test_an_integer_weight_counts_as_repeated_rows(y, b, seed):
    y = np.array(y)
    weights = np.random.default_rng(seed).integers(0, 4, len(y))
    repeated = np.repeat(y, weights)
    if len(np.unique(repeated)) > 1:
        bins = discretize_target(y, b, sample_weight=weights)
        expected = discretize_target(repeated, b)
        assert np.repeat(bins, weights).tolist() == expected.tolist()


# ---- examples ------------------------------------------------------------------------------------


def test_a_heavy_tie_takes_several_quantiles():
    y = np.concatenate([np.zeros(60), np.arange(1, 41)])
    assert np.bincount(discretize_target(y, 10)).tolist() == [60, 10, 10, 10, 10]


def test_one_column_is_a_single_output(rng):
    y = rng.standard_normal(30)
    assert discretize_target(y[:, None], 4).tolist() == discretize_target(y, 4).tolist()


def test_a_given_contraction_is_applied_unchanged(rng):
    Y, u = rng.standard_normal((50, 3)) * [1.0, 10.0, 100.0], [1.0, -2.0, 0.5]
    assert target_groups(Y, 5, contractions=[u])[0].tolist() == discretize_target(Y @ u, 5).tolist()


def test_random_contractions_do_not_depend_on_units_and_follow_the_seed(rng):
    Y = rng.standard_normal((80, 3))
    first = target_groups(Y, 6, 3, random_state=1)
    other = target_groups(Y * [1e-3, 1.0, 1e6] + 4, 6, 3, random_state=1)
    assert other.tolist() == first.tolist() == target_groups(Y, 6, 3, random_state=1).tolist()
    assert target_groups(Y, 6, 3, random_state=2).tolist() != first.tolist()
    assert len({tuple(group) for group in first.tolist()}) == 3
    assert target_groups(Y[:, 0], 5, 3).tolist() == [discretize_target(Y[:, 0], 5).tolist()]


def test_only_groups_that_are_made_take_memory(rng):
    Y, many = rng.standard_normal((50, 2)), 2**60
    assert target_groups(Y[:, 0], n_contractions=many).shape == (1, 50)
    assert target_groups(Y, n_contractions=many, contractions=np.eye(2)).shape == (2, 50)
    with pytest.raises(MemoryError, match=f"^n_contractions: expected groups .* got {many}$"):
        target_groups(Y, n_contractions=many)


def test_equal_rows_stay_together_under_contraction(rng):
    Y = rng.standard_normal((7, 5))[rng.integers(0, 7, 999)]
    groups = target_groups(Y, n_bins=3, n_contractions=4, random_state=0)
    _, which = np.unique(Y, axis=0, return_inverse=True)
    for bins in groups:
        assert all(len(set(bins[which == w])) == 1 for w in range(7))


def test_a_constant_output_does_not_change_the_groups(rng):
    y = rng.standard_normal(40)
    bins = target_groups(np.column_stack([y, np.full(40, 0.1)]), 4, 1, random_state=0)[0]
    expected = discretize_target(y, 4)
    assert bins.tolist() in (expected.tolist(), (3 - expected).tolist())


def test_huge_outputs_do_not_overflow(rng):
    Y = rng.standard_normal((40, 2)) * 1e200
    assert target_groups(Y, 4, 1, random_state=0).max() == 3


# ---- errors --------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("y", "arguments", "message"),
    [
        ([1.0, np.nan, 2.0], {}, "y: expected finite numbers, got nan in row 1"),
        ([[1.0, 2.0], [np.inf, 1.0]], {}, "y: expected finite numbers, got inf in row 1"),
        ([2.0, 2.0, 2.0], {}, "y: expected at least two distinct values, got the constant 2"),
        ([[1.0, 2.0]] * 3, {}, "y: expected one output, got 2; use target_groups"),
        ([], {}, r"y: expected shape \(n,\) or \(n, q\), not empty"),
        ([1, 2, 3], {"n_bins": 1}, "n_bins: expected an integer >= 2, got 1"),
        ([1, 2, 3], {"sample_weight": [1.0, 2.0]}, r"sample_weight: expected shape \(3,\)"),
        ([1, 2, 3], {"sample_weight": [1, 0, 0]}, "distinct values, got 1 sample"),
        ([1, 2, 3], {"sample_weight": [0, 0, 0]}, "sample_weight: expected at least one"),
    ],
)
def test_errors_say_what_was_expected(y, arguments, message):
    with pytest.raises(ValueError, match=message):
        discretize_target(y, **arguments)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"n_contractions": 0}, "n_contractions: expected an integer >= 1, got 0"),
        ({"contractions": [[1.0]]}, r"contractions: expected shape \(2,\)"),
        ({"contractions": [[0, 0]]}, "contractions: expected vectors that are not zero"),
        ({"sample_weight": [0, 0]}, "sample_weight: expected at least one"),
    ],
)
def test_errors_of_groups(arguments, message):
    with pytest.raises(ValueError, match=message):
        target_groups([[1, 2], [3, 1]], **arguments)
