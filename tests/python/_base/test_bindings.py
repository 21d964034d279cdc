"""Arguments that would lead outside of an array are refused where they enter the core."""

import numpy as np
import pytest

from eigenfeat._base.core import core

LARGE = 2**62
ROWS = np.eye(4)


def places(*numbers):
    return np.array(numbers, dtype=np.int64)


@pytest.mark.parametrize(
    "starts",
    [(0, LARGE, -LARGE, 16), (0, 8 + LARGE, 16), (0, -8, 16), (0, 8), (0, 4, 8, 12, 16)],
    ids=str,
)
def test_starts_of_knots(starts):
    columns = places(*range(len(starts) - 1))
    with pytest.raises(ValueError, match="starts: expected"):
        core.column_splines(ROWS, columns, np.arange(16.0), places(*starts), 1)


def test_counts_that_overflow():
    counts = places(LARGE, LARGE, LARGE, LARGE, 4)
    with pytest.raises(ValueError, match="counts: expected numbers >= 0 that sum to"):
        core.affinity_sums(ROWS, counts, 1, np.ones((1, 5)), np.ones((1, 5)), 1)


def test_sparse_rows():
    data, indptr = np.ones(2), places(0, 1, 2)
    for indices in ([0, 4], [-1, 0]):
        indices = np.array(indices, dtype=np.int32)
        out = np.zeros((2, 4))
        with pytest.raises(ValueError, match=r"indices: expected columns in \[0, 4\)"):
            core.multiply_rows(data, indices, indptr, 4, ROWS, 0, out, 0, 4, False, 1)
        with pytest.raises(ValueError, match=r"indices: expected columns in \[0, 4\)"):
            core.transpose_rows(data, indices, indptr, 4)
    indices = np.zeros(2, dtype=np.int32)
    for first, width in ((0, 5), (1, 4), (2**63 - 1, 2), (0, -1)):
        with pytest.raises(ValueError, match=r"(v_first|width): expected"):
            core.multiply_rows(data, indices, indptr, 4, ROWS, first, out, 0, width, False, 1)


def test_ranges_of_columns_are_named():
    rows = np.ones(2), np.zeros(2, dtype=np.int32), places(0, 1, 2), 4
    for first, out_first, width, message in (
        (0, 0, 6, r"width: expected a number in \[0, 4\], got 6"),
        (3, 0, 2, r"v_first: expected a number in \[0, 2\], got 3"),
        (0, 3, 2, r"out_first: expected a number in \[0, 2\], got 3"),
    ):
        with pytest.raises(ValueError, match=message):
            core.multiply_rows(*rows, ROWS, first, np.zeros((2, 4)), out_first, width, False, 1)
    with pytest.raises(ValueError, match=r"^t: expected a number in \[0, 4\], got 5$"):
        core.prefix_innovations(ROWS, np.zeros(4), ROWS, 5, 1)


def test_lengths_of_sparse_rows_are_named():
    solver = {
        "labels": np.zeros(2, dtype=np.int32),
        "costs": np.ones(2),
        "n_classes": 2,
        "margin": 1.0,
        "constant": 1.0,
        "solver": "sequential",
        "batch": 1,
        "seed": 0,
        "n_threads": 1,
    }
    for n_indices, starts, message in (
        (3, (0, 1, 2), "indices: expected 2 entries, as data, got 3"),
        (2, (0, 1, 3), "indptr: expected a last entry of 2, the length of data, got 3"),
        (2, (), "indptr: expected at least one entry, got none"),
    ):
        indices = np.zeros(n_indices, dtype=np.int64)
        rows = {"data": np.ones(2), "indices": indices, "indptr": places(*starts), "n_columns": 1}
        with pytest.raises(ValueError, match=f"^{message}$"):
            core.FeatureRows64(**rows)
        with pytest.raises(ValueError, match=f"^{message}$"):
            core.CrammerSinger64(**rows, **solver)
        with pytest.raises(ValueError, match=f"^{message}$"):
            core.transpose_rows(np.ones(2), indices.astype(np.int32), places(*starts), 1)
    with pytest.raises(ValueError, match=r"^X: expected an array, or data, indices and indptr"):
        core.CrammerSinger64(n_columns=1, **solver)


def test_missing_arrays_are_named():
    with pytest.raises(ValueError, match=r"^indices: expected an array beside data, got None$"):
        core.FeatureRows64(data=np.ones(2), n_columns=2)
    with pytest.raises(ValueError, match=r"^indptr: expected an array beside data, got None$"):
        core.FeatureRows64(data=np.ones(2), indices=places(0, 1), n_columns=2)
    options = core.PencilOptions(1, 0.0, "auto", 1)
    for given in ("numerators", "denominators"):
        absent = {"numerators", "denominators"} - {given}
        matrices = {given: [ROWS], absent.pop(): []}
        with pytest.raises(ValueError, match="expected at least one matrix, got none") as caught:
            core.solve_pencils(
                **matrices, shifts=np.zeros(1), items=np.zeros((1, 2), np.int64), options=options
            )
        assert given not in str(caught.value)


def test_sizes_that_overflow():
    items, shifts = np.zeros((1, 2), dtype=np.int64), np.zeros(1)
    with pytest.raises((ValueError, MemoryError)):
        core.solve_pencils([ROWS], [ROWS], shifts, items, core.PencilOptions(LARGE, 0.0, "auto", 1))
    codes = np.zeros(4, dtype=np.int32)
    with pytest.raises(MemoryError):
        core.local_neighbours(ROWS, codes, LARGE, 2**10, None, None, 1)
    with pytest.raises(ValueError, match=r"n_classes: expected a number below 2\^31"):
        core.CrammerSinger64(
            X=ROWS,
            labels=codes,
            costs=np.ones(4),
            n_classes=2**63 - 1,
            margin=1.0,
            constant=1.0,
            solver="sequential",
            batch=1,
            seed=0,
            n_threads=1,
        )


def test_calls_that_fit_no_signature():
    rows = core.FeatureRows64(X=ROWS, constant=True)
    scale = np.ones(5)
    with pytest.raises(TypeError, match="incompatible function arguments"):
        rows.metric(None, scale, scale, 0.0, False, False, 2**40)
    metric = rows.metric(None, scale, scale, 1.0, True, False, 1)
    del rows  # the metric keeps what it reads
    assert np.isfinite(metric.solve(np.ones((5, 1)), 1)).all()


@pytest.mark.parametrize(
    ("name", "wrong"),
    [
        ("dilations", places(1, 0)),
        ("dilations", places(1, 31)),
        ("orders", places(0, 2)),
        ("orders", places(0)),
        ("n_thresholds", places(1, -1)),
        ("n_thresholds", places(LARGE, 0)),
        ("channel_begin", places(*range(1, 169), 168)),
        ("channel_begin", places(*range(1, 170))),
        ("channels", places(*[0] * 167, 2)),
        ("channels", places(*[0] * 167, -1)),
        ("rivals", np.full((1, 84), 84)),
        ("rivals", np.full((1, 84), -1)),
        ("rivals", np.zeros((1, 83), dtype=np.int64)),
        ("rivals", np.zeros((2, 84), dtype=np.int64)),
        ("ends", places(31, 31)[:, None]),
        ("ends", places(-1, 3)[:, None]),
    ],
)
def test_plans_of_convolutions(name, wrong):
    plan = {
        "dilations": places(1, 2),
        "orders": places(0, 1),
        "n_thresholds": places(1, 0),
        "channel_begin": np.arange(169),
        "channels": np.zeros(168, dtype=np.int64),
        "rivals": np.arange(84)[None],
        "thresholds": np.zeros(84),
        "ends": places(30, 20)[:, None],
    }
    series = np.random.default_rng(0).standard_normal((2, 2, 30))
    features = core.convolution_features(series, **plan, n_threads=1)
    assert features.shape == (2, 1, 84 + 168)
    with pytest.raises(ValueError, match=f"{name}.*: expected"):
        core.convolution_features(series, **(plan | {name: wrong}), n_threads=1)
