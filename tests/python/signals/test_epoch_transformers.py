"""What spatial filters and tangent spaces share: bands, sessions, flat channels, bad epochs."""

import os
import subprocess
import sys

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from recordings import Epochs, recording
from scipy.signal import butter, sosfiltfilt

from eigenfeat import SpatialFilters, TangentSpace
from eigenfeat.signals.epochs import check_finite

MODELS = pytest.mark.parametrize("make", [SpatialFilters, TangentSpace])


@MODELS
def test_flat_channels_are_left_out_with_a_warning(rng, make):
    X, y, _ = recording(rng)
    flat = np.insert(X, [2, 5], 4.0, axis=1)
    with pytest.warns(UserWarning, match=r"X: constant channels are left out: \[2, 6\]"):
        model = make().fit(flat, y)
    assert model.rank_ == 8
    assert_allclose(model.transform(flat), make().fit_transform(X, y), atol=1e-9)


@pytest.mark.parametrize("rank", [7, 5])  # an average reference, components removed
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize(
    "model",
    [SpatialFilters(20, ridge=0.0), SpatialFilters(), TangentSpace(shrinkage=None), TangentSpace()],
)
def test_recordings_that_do_not_span_all_channels(rng, model, dtype, rank):
    """Features are those of coordinates in the span."""
    X, y, _ = recording(rng)
    kept = np.linalg.svd(np.eye(8) - 1 / 8)[0][:, :rank]
    features = model.fit_transform((kept @ (kept.T @ X)).astype(dtype), y)
    assert model.rank_ == rank
    assert features.dtype == dtype
    inside = model.fit_transform(kept.T @ X, y)
    ours, atol = features.astype(np.float64), 1e-6 if dtype == np.float64 else 2e-2
    assert_allclose(ours @ ours.T, inside @ inside.T, atol=atol)


@MODELS
def test_normalized_epochs_do_not_depend_on_their_size(rng, make):
    X, y, _ = recording(rng)
    loud = X * 10.0 ** rng.uniform(-2, 2, len(X))[:, None, None]
    model = make(normalize=True).fit(X, y)
    assert_allclose(model.transform(loud), model.transform(X), atol=1e-9)


@MODELS
def test_bands_are_filtered_both_ways(rng, make):
    X, y, _ = recording(rng, times=200)
    bands = [(4.0, 12.0), (20.0, 30.0)]
    model = make(bands=bands, sfreq=100.0).fit(X, y)
    halves = np.hsplit(model.transform(X), 2)
    for half, band in zip(halves, bands, strict=True):
        filtered = sosfiltfilt(butter(4, band, "bandpass", fs=100.0, output="sos"), X)
        assert_allclose(half, make().fit_transform(filtered, y), atol=1e-7)
    assert len(model.get_feature_names_out()) == 2 * halves[0].shape[1]
    of_mne = make(bands=bands).fit(Epochs(X, 100.0, "abcdefgh"), y)  # the epochs have the rate
    parts = [Epochs(part, 100.0, "abcdefgh") for part in (X[:9], X[9:])]
    assert_array_equal(of_mne.transform(parts), model.transform(X))


def bad(rng):
    X = recording(rng, 12)[0]
    hole = X.copy()
    hole[3, 1, 7] = np.nan
    ragged = [*X[:5], X[5][:, :80], *X[6:]]
    bands = {"bands": [(8, 12)], "sfreq": 100}
    return {
        "two dimensions": ({}, X[0], r"X: expected epochs of shape \(n, channels, times\)"),
        "lengths": (
            {},
            ragged,
            r"epochs of one .* length, .*\(8, 100\) and, of epoch 5, \(8, 80\)",
        ),
        "objects": ({}, np.fromiter(ragged, dtype=object, count=12), "of epoch 5"),
        "ragged": ({}, [[[1.0], [1.0, 2.0]]], "X: expected epochs of shape .*, got ragged epochs"),
        "constant": ({}, np.ones_like(X), "channels that vary, got only constant channels"),
        "hole": ({}, hole, "X: expected finite numbers, got nan in epoch 3, channel 1, sample 7"),
        "text": ({}, np.full_like(X, "a", dtype=object), "real numbers: could not convert string"),
        "none": ({}, X[:0], "X: expected"),
        "short": (bands, X[:, :, :20], "X: expected epochs of at least 28 samples with bands"),
        "no rate": ({"bands": [(8, 12)]}, X, "sfreq: expected samples per second with bands"),
        "band": ({**bands, "bands": [(12, 8)]}, X, r"bands: expected pairs 0 < low < high"),
        "rate": (bands, Epochs(X, 50.0, "abcdefgh"), "sfreq: expected None or .*, 50, got 100"),
    }


@MODELS
@pytest.mark.parametrize("case", list(bad(np.random.default_rng(0))))
def test_bad_epochs_are_named_and_leave_the_model_unchanged(rng, make, case):
    options, X, message = bad(rng)[case]
    good, labels, _ = recording(rng)
    model = make().fit(good, labels)
    before = model.transform(good)
    with pytest.raises(ValueError, match=message):
        model.set_params(**options).fit(X, np.arange(12) % 3)
    assert_array_equal(model.set_params(**make().get_params()).transform(good), before)


def test_epochs_of_later_blocks_are_named():
    X = np.zeros((3, 2, 1 << 17))  # each epoch is a block
    X[2, 1, 5] = np.nan
    with pytest.raises(ValueError, match="got nan in epoch 2, channel 1, sample 5"):
        check_finite(X, "epoch")


@MODELS
def test_other_channels_and_sessions(rng, make):
    X, y, _ = recording(rng)
    model = make(align="session").fit(X, y)
    with pytest.raises(ValueError, match="X: expected 8 channels, got 7"):
        model.transform(X[:, :7])
    with pytest.raises(ValueError, match=r"groups: expected 60 sessions, .* shape \(3,\)"):
        model.transform(X, [1, 2, 3])
    with pytest.raises(ValueError, match="at least 2 epochs of each session, got 1 of a new"):
        model.transform(X[:1])
    with pytest.raises(ValueError, match="at least 2 epochs of each session, got 1 of session 0"):
        model.fit(X[:1], y[:1])
    assert_allclose(model.transform(X[:1], [0]), model.transform(X, np.zeros(60))[:1], atol=1e-9)


@MODELS
def test_sessions_without_align_change_nothing_and_warn(rng, make):
    X, y, _ = recording(rng)
    session = np.arange(len(y)) // 20
    model, alone = make(), make().fit(X, y)
    with pytest.warns(UserWarning, match="sessions, which change nothing; align='session'"):
        model.fit(X, y, groups=session)
    with pytest.warns(UserWarning, match="sessions, which change nothing; align='session'"):
        assert_array_equal(model.transform(X, session), alone.transform(X))


def test_filters_warn_of_aligned_sessions_of_one_class(rng):
    X, y, _ = recording(rng)
    with pytest.warns(UserWarning, match="groups: session .* has one class alone"):
        SpatialFilters(align="session").fit(X, y, groups=y)


THREADS = """
import os
import numpy as np
import eigenfeat as ef
y, session = np.arange(80) % 2, np.arange(80) // 40
X = np.random.default_rng(0).standard_normal((80, 16, 400)) * (1 + y[:, None, None])
models = ef.SpatialFilters(align="session"), ef.EpochClassifier(100.0)
before = len(os.listdir("/proc/self/task"))
for model in models:
    model.set_params(n_threads=1).fit(X, y, groups=session)
    (model.predict if hasattr(model, "predict") else model.transform)(X)
assert len(os.listdir("/proc/self/task")) == before
ef.EpochClassifier(views="tangent").fit(X, y)
assert len(os.listdir("/proc/self/task")) > before
"""


@pytest.mark.skipif(not os.path.isdir("/proc/self/task"), reason="needs Linux")
def test_means_of_sessions_take_no_more_threads_than_requested():
    environment = {**os.environ, "OMP_NUM_THREADS": "3", "OPENBLAS_NUM_THREADS": "1"}
    subprocess.run([sys.executable, "-c", THREADS], env=environment, check=True)
