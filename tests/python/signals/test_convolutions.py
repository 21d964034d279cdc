"""Convolution features compared with NumPy, for prefixes and channels; scores of the ridge."""

import tracemalloc
from itertools import combinations

import numpy as np
import pandas as pd
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from recordings import Epochs
from sklearn.linear_model import Ridge
from sklearn.model_selection import LeaveOneOut, cross_val_predict
from sklearn.preprocessing import StandardScaler
from threadpoolctl import threadpool_limits

from eigenfeat.early import MinimumCostClassifier
from eigenfeat.signals import ConvolutionClassifier, ConvolutionFeatures, interval_summaries
from eigenfeat.signals.convolutions import fit_prefixes, prefix_probabilities

TAPS = list(combinations(range(9), 3))


def waves(rng, n=30, length=80, channels=None):
    y = np.arange(n) % 2
    clock = np.arange(length)
    phase = rng.uniform(0, 6, (n, 1))
    X = np.sin(clock * (0.5 + 0.15 * y[:, None]) + phase) + 0.3 * rng.standard_normal((n, length))
    if channels is not None:
        noise = rng.standard_normal((n, channels, length))
        noise[:, channels - 1] = X
        return noise, y
    return X, y


def outputs(model, x, place, kernel, half=None):
    """The convolution of one series (channels, times), summed in the documented order."""
    d = int(model.dilations_[place])
    x = np.diff(x, axis=1) if model.orders_[place] else x
    pair = 84 * place + kernel
    some = model.channels_[model.channel_begin_[pair] : model.channel_begin_[pair + 1]]
    total = None
    for channel in some:
        padded = np.concatenate([np.zeros(8 * d, x.dtype), x[channel]])
        taps = [padded[j * d : j * d + x.shape[1]] for j in range(9)]
        one = taps[0].copy()
        for tap in taps[1:]:
            one = one + tap
        one = -one
        for j in TAPS[kernel]:
            one = one + (taps[j] + taps[j] + taps[j])
        total = one if total is None else total + one
    if half is None:
        half = (place + kernel) % 2 == 0
    return total[4 * d if half else 8 * d :]


def reference(model, x):
    """Features of one series, one threshold after the other."""
    found, column = [], 0
    for place, n in enumerate(model.thresholds_per_kernel_):
        for kernel in range(84):
            values = outputs(model, x, place, kernel)
            for _ in range(n):
                above = np.count_nonzero(values > model.thresholds_[column])
                found.append(above / len(values) if len(values) else 0.0)
                column += 1
    return np.array(found)


def contested(model):
    """Places of the dilations that have contests."""
    return np.flatnonzero(model.thresholds_per_kernel_ == 0)


def contests(model, x):
    """Features of contests of one series: a loop over time."""
    found = []
    for order, place in zip(model.rivals_, contested(model), strict=True):
        for group in range(12):
            rivals = order[7 * group : 7 * group + 7]
            values = np.array([outputs(model, x, place, k, half=True) for k in rivals])
            largest, smallest = np.zeros(7), np.zeros(7)
            for column in values.T:
                largest[column.argmax()] += max(column.max(), 0.0)
                smallest[column.argmin()] += 1
            found += [part / max(values.shape[1], 1) for part in (largest, smallest)]
    return np.sqrt(np.concatenate(found))


@pytest.mark.parametrize(
    ("length", "channels", "dtype"),
    [(1, None, np.float64), (6, 2, np.float64), (37, 3, np.float32), (150, None, np.float64)],
)
def test_contests_are_those_of_a_loop(rng, length, channels, dtype):
    X = rng.standard_normal((5, channels or 1, length)).astype(dtype)
    X[0, :, length // 2 :] = 1.0  # equal outputs
    options = {"differences": dtype == np.float64, "random_state": 0}
    model = ConvolutionFeatures(84 * 3, contests=True, **options).fit(X)
    found = model.transform(X)[:, 84 * 3 :]
    assert found.dtype == dtype
    assert found.shape == (5, 168 * len(contested(model)))
    assert model.dilations_[contested(model)].max() <= max(1, (length - 1) / 8)
    for x, row in zip(X, found, strict=True):
        assert_allclose(row, contests(model, x), rtol=1e-5 if dtype == np.float32 else 1e-12)
    alone = ConvolutionFeatures(84 * 3, **options).fit(X)
    assert_array_equal(alone.transform(X), model.transform(X)[:, : 84 * 3])


@pytest.mark.parametrize(
    ("length", "channels", "dtype"),
    [(9, None, np.float64), (37, 3, np.float32), (150, None, np.float32), (150, 3, np.float64)],
)
def test_features_are_exactly_the_reference(rng, length, channels, dtype):
    X, _ = waves(rng, 8, length, channels)
    X = X.astype(dtype)
    model = ConvolutionFeatures(84 * 11, differences=channels is None, random_state=0).fit(X)
    features = model.transform(X)
    assert features.dtype == dtype
    assert features.shape == (8, 84 * 11) == (8, len(model.get_feature_names_out()))
    for x, row in zip(X if channels else X[:, None], features, strict=True):
        assert_array_equal(row, reference(model, x).astype(dtype))


def test_thresholds_are_quantiles_of_training_outputs(rng):
    X, _ = waves(rng, 1, 60)
    model = ConvolutionFeatures(84 * 7, differences=True, random_state=0).fit(X)
    levels = (np.arange(1, 84 * 7 + 1) * (np.sqrt(5) + 1) / 2) % 1
    column = 0
    for place, n in enumerate(model.thresholds_per_kernel_):
        for kernel in range(84):
            part = slice(column, column + n)
            expected = np.quantile(outputs(model, X, place, kernel), levels[part])
            assert_allclose(model.thresholds_[part], expected, atol=1e-12)
            column += n


def test_dilations_are_those_of_the_paper(rng):
    model = ConvolutionFeatures(random_state=0).fit(rng.standard_normal((3, 150)))
    exponents = np.linspace(0, np.log2(149 / 8), 32)
    assert model.dilations_.tolist() == sorted({int(2**e) for e in exponents})
    assert model.thresholds_per_kernel_.sum() == 10000 // 84
    assert model.dilations_[-1] * 8 <= 149


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("channels", [None, 4])
def test_features_of_prefixes_are_those_of_cut_series(rng, channels, dtype):
    X, _ = waves(rng, 9, 90, channels)
    X = X.astype(dtype)
    model = ConvolutionFeatures(84 * 20, differences=True, contests=True, random_state=0).fit(X)
    times = [1, 4, 5, 9, 33, 64, 89, 90]
    found = model.transform_prefixes(X, times)
    assert found.shape == (9, 8, 84 * 20 + 168 * len(model.rivals_))
    for k, t in enumerate(times):
        assert_array_equal(found[:, k], model.transform(X[..., :t]))
    assert_array_equal(found[:, 0], 0.0)  # no output yet
    changed = X.copy()
    changed[..., 64:] = 1e6
    assert_array_equal(model.transform_prefixes(changed, times)[:, :6], found[:, :6])


@pytest.mark.parametrize("times", [[], [0, 4], [4, 4], np.array([9, 4], np.uint8), [1.5], [[1, 2]]])
def test_times_that_do_not_ascend_are_refused(rng, times):
    X, y = waves(rng, 12, 30)
    features = ConvolutionFeatures(84, random_state=0).fit(X)
    with pytest.raises(ValueError, match="times: expected ascending integers >= 1, got "):
        features.transform_prefixes(X, times)
    with pytest.raises(ValueError, match=r"times: expected ascending integers in 1\.\.30, got "):
        MinimumCostClassifier(times=times).fit(X, y)


def test_series_of_several_lengths(rng):
    X, _ = waves(rng, 6, 90, 2)
    lengths = [90, 40, 70, 12, 90, 55]
    some = [x[:, :t] for x, t in zip(X, lengths, strict=True)]
    model = ConvolutionFeatures(840, differences=True, contests=True, random_state=0).fit(some)
    features = model.transform(some)
    for i, one in enumerate(some):
        assert_array_equal(model.transform(one[None])[0], features[i])
    cut = model.transform_prefixes(some, [30, 60])
    assert_array_equal(cut[1, 1], features[1])
    assert_array_equal(cut[3, 0], features[3])
    objects = np.fromiter(some, dtype=object, count=6)
    assert_array_equal(model.transform(objects), features)
    flat = ConvolutionFeatures(84, random_state=0).fit([x[0] for x in some])
    assert flat.n_channels_ == 1
    with pytest.raises(ValueError, match=r"X: expected 2 channels, got 1 in shape \(2, 90\)"):
        model.transform(X[0])  # one series without the axis of series


def test_thresholds_of_long_series_take_little_memory(rng):
    X = rng.standard_normal((2, 200_000)).astype(np.float32)
    tracemalloc.start()
    try:
        ConvolutionFeatures(168, random_state=0).fit(X)
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert peak < 40 * X.nbytes


def test_scores_are_bit_for_bit_equal_for_any_number_of_blas_threads(rng):
    X, y = waves(rng, 200, 60)

    def scores(n_threads):
        with threadpool_limits(n_threads, user_api="blas"):
            model = ConvolutionClassifier(intervals=True, random_state=0).fit(X, y)
            return model.decision_function(X)

    assert_array_equal(scores(1), scores(2))


def test_classifiers_take_little_memory(rng):
    """A fit holds the features about once; predictions of many series compute them in blocks."""
    X, y = waves(rng, 200, 20)
    many = np.tile(X, (30, 1))
    tracemalloc.start()
    try:
        model = ConvolutionClassifier(random_state=0).fit(X, y)
        peak_of_fit = tracemalloc.get_traced_memory()[1]
        tracemalloc.reset_peak()
        found = model.predict_proba(many)
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert peak_of_fit < 2.5 * len(X) * 9996 * 8
    assert peak < 0.75 * len(many) * 9996 * 8
    assert_allclose(found[-200:], model.predict_proba(X), atol=1e-9)


def test_seeds_determine_the_thresholds(rng):
    X, _ = waves(rng, 40, 200)
    model, twin, other = (
        ConvolutionFeatures(84, random_state=seed).fit(X)
        for seed in (3, 3, np.random.default_rng(0))
    )
    assert_array_equal(twin.thresholds_, model.thresholds_)
    assert not np.array_equal(other.thresholds_, model.thresholds_)


def test_short_and_constant_series(rng):
    for X in (rng.standard_normal((5, 1)), rng.standard_normal((5, 4)), np.ones((5, 40))):
        model = ConvolutionFeatures(168, differences=True, contests=True, random_state=0)
        assert np.isfinite(model.fit_transform(X)).all()
    y = np.array([0, 1, 0, 1, 1])
    blind = ConvolutionClassifier(168, random_state=0).fit(np.ones((5, 3)), y)
    assert_array_equal(blind.predict(np.ones((2, 3))), [1, 1])


def test_classifier(rng):
    X, y = waves(rng, 80, 100)
    names = np.array(["slow", "fast"])[y]
    model = ConvolutionClassifier(random_state=0).fit(X[:40], names[:40])
    assert model.score(X[40:], names[40:]) > 0.95
    probability = model.predict_proba(X[40:])
    assert_allclose(probability.sum(axis=1), 1.0)
    assert_array_equal(model.classes_[probability.argmax(axis=1)], model.predict(X[40:]))
    assert model.decision_function(X).shape == (80,)
    channels, _ = waves(rng, 80, 100, 3)
    several = ConvolutionClassifier(random_state=0).fit(channels[:40], y[:40])
    assert several.score(channels[40:], y[40:]) > 0.9
    epochs = [Epochs(part, 100.0, "abc") for part in (channels[:40], channels[40:])]
    assert_array_equal(several.predict(epochs), several.predict(channels))


@pytest.mark.parametrize(("channels", "intervals"), [(1, True), (2, False)])
def test_prefixes_are_fitted_with_the_same_features(rng, channels, intervals):
    X, y = waves(rng, 30, 60, channels)
    times = np.array([2, 9, 30, 60])
    classifier = ConvolutionClassifier(168, intervals=intervals, random_state=0)
    models = fit_prefixes(classifier, X, y, times)
    found = prefix_probabilities(models, X, times)
    for model, t, rows in zip(models, times, found, strict=True):
        assert model.features_ is models[0].features_
        assert_allclose(model.predict_proba(X[:, :, :t]), rows, atol=1e-12)
    whole = ConvolutionClassifier(168, intervals=intervals, random_state=0).fit(X, y)
    assert_allclose(whole.loo_scores_, models[-1].loo_scores_, atol=1e-9)


@pytest.mark.parametrize("t", [1, 4, 11])
def test_interval_summaries_are_those_of_loops(t):
    X = np.random.default_rng(t).standard_normal((5, t)) * 3 + 100
    expected = [X, X[:, 1:] - X[:, :-1]]
    for width in (4, 8):
        starts = range(0, t - width + 1, width // 2)
        parts = [X[:, b : b + width] for b in starts]
        if parts:
            place = np.arange(width)
            expected += [
                np.stack([part.mean(axis=1) for part in parts], axis=1),
                np.stack([part.std(axis=1) for part in parts], axis=1),
                np.stack([np.polyfit(place, part.T, 1)[0] for part in parts], axis=1),
            ]
    assert_allclose(interval_summaries(X), np.hstack(expected), rtol=1e-10, atol=1e-12)
    with pytest.raises(ValueError, match="NaN"):
        interval_summaries(np.full((2, 3), np.nan))


@pytest.mark.parametrize("n", [24, 110])  # fewer series than features, and more
def test_the_weight_of_the_summaries_has_the_least_loo_error(rng, n):
    y = np.arange(n) % 3
    X = rng.standard_normal((n, 30)) + 0.3 * y[:, None]
    model = ConvolutionClassifier(84, intervals=True, random_state=0).fit(X, y)
    blocks = [*np.split(model.features_.transform(X), [84], axis=1), interval_summaries(X)]
    scaled = []
    for block, variance in zip(blocks, (84, 42, 84), strict=True):
        block = StandardScaler().fit_transform(block)
        scaled.append(block * np.sqrt(variance / max(np.count_nonzero(block.std(axis=0) > 0), 1)))
    targets = np.where(y[:, None] == model.classes_, 1.0, -1.0)
    weights, losses = [0.0, 0.03, 0.1, 0.3, 1.0], []
    for weight in weights:
        Z = np.hstack([*scaled[:2], np.sqrt(weight) * scaled[2]])
        hat = np.linalg.solve(Z @ Z.T + model.alpha_ * np.eye(n), Z @ Z.T) + 1 / n
        residuals = (targets - hat @ targets) / (1 - np.diag(hat))[:, None]
        losses.append(np.square(residuals).mean())
    assert model.interval_weight_ == weights[int(np.argmin(losses))]
    Z = np.hstack([*scaled[:2], np.sqrt(model.interval_weight_) * scaled[2]])
    ridge = Ridge(alpha=model.alpha_)
    found = cross_val_predict(ridge, Z, targets, cv=LeaveOneOut())
    assert_allclose(model.loo_scores_, found, atol=1e-6)
    assert_allclose(np.square(found - targets).mean(), min(losses), rtol=1e-6)
    ridge.fit(Z, targets)
    assert_allclose(model.decision_function(X), ridge.predict(Z), atol=1e-6)
    with pytest.raises(ValueError, match="X: expected series of one length with intervals=True"):
        model.fit([X[0], X[1, :9]], y[:2])


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_many_series_have_the_penalty_of_least_loo_error(rng, dtype):
    """No adjacent weight of the summaries or penalty has a smaller error, see `_nearby_ridge`."""
    n, p = 1_008, 1_512
    y = np.arange(n) % 3
    X = (rng.standard_normal((n, 20)) + 0.2 * y[:, None]).astype(dtype)
    options = {"differences": False, "contests": False, "intervals": True}
    model = ConvolutionClassifier(p, **options, random_state=0).fit(X, y)
    assert model.interval_weight_ > 0
    blocks = [StandardScaler().fit_transform(model.features_.transform(X).astype(float))]
    blocks += [StandardScaler().fit_transform(interval_summaries(X))]
    grams = [p / np.count_nonzero(one.std(axis=0) > 0) * one @ one.T for one in blocks]
    targets = np.where(y[:, None] == model.classes_, 1.0, -1.0)
    level = targets.mean(axis=0)

    def errors(weight, alpha):
        gram = grams[0] + weight * grams[1]
        hat = gram @ np.linalg.inv(gram + alpha * np.eye(n)) + 1 / n
        return (targets - hat @ (targets - level) - level) / (1 - np.diag(hat))[:, None]

    weights, alphas = [0.0, 0.03, 0.1, 0.3, 1.0], np.logspace(-3, 3, 10) * p / 1000
    i, j = weights.index(model.interval_weight_), int(np.argmin(np.abs(alphas - model.alpha_)))
    chosen = errors(weights[i], alphas[j])
    near = [
        (i - 1, j),
        (i, j - 1),
        *([(i + 1, j)] if i < 4 else []),
        *([(i, j + 1)] if j < 9 else []),
    ]
    for a, b in near:
        assert np.square(chosen).mean() < np.square(errors(weights[a], alphas[b])).mean() + 1e-6
    atol = 1e-4 if dtype == np.float32 else 1e-9
    assert_allclose(model.loo_scores_, targets - chosen, atol=atol)


def test_summaries_are_added_to_series_of_one_length(rng):
    y = np.arange(60) % 2
    X = rng.standard_normal((60, 40)) + 0.5 * y[:, None]
    model = ConvolutionClassifier(random_state=0).fit(X, y)
    asked = ConvolutionClassifier(intervals=True, random_state=0).fit(X, y)
    assert model.interval_weight_ > 0
    assert model.n_times_ == 40
    assert_array_equal(model.predict_proba(X), asked.predict_proba(X))
    other = "X: expected series of 40 samples as in fit, got 30 of series 0; intervals=False allows"
    with pytest.raises(ValueError, match=other):
        model.predict(X[:, :30])
    several = ConvolutionClassifier(random_state=0).fit([*X[:-1], X[-1, :30]], y)
    assert several.n_times_ is None
    assert several.predict([X[0], X[1, :20]]).shape == (2,)
    long = ConvolutionClassifier(84, random_state=0).fit(X, y)  # fewer features than summaries
    assert long.coef_.shape == (2, long.features_.n_features_out_)


@pytest.mark.parametrize("channels", [1, 2])
def test_missing_values(rng, channels):
    """A gap takes the value before it, at the start the value after it; at the end it is cut."""
    X = rng.standard_normal((12, channels, 40))
    expected, holes = X.copy(), X.copy()
    holes[0, 0, 5:8], expected[0, 0, 5:8] = np.nan, X[0, 0, 4]
    holes[1, -1, :3], expected[1, -1, :3] = np.nan, X[1, -1, 3]
    whole = ConvolutionFeatures(168, random_state=0).fit(X)
    assert_array_equal(whole.transform(holes), whole.transform(expected))
    ended = X.copy()
    ended[2, :, 25:] = np.nan
    assert_array_equal(whole.transform(ended)[2], whole.transform(X[2:3, :, :25])[0])
    listed = [X[0, :, :30], ended[2]]
    assert_array_equal(whole.transform(listed)[1], whole.transform(ended)[2])
    assert_array_equal(
        ConvolutionFeatures(168, random_state=0).fit(expected).transform(X),
        ConvolutionFeatures(168, random_state=0).fit(holes).transform(X),
    )
    y = np.arange(12) % 2
    model = ConvolutionClassifier(168, random_state=0).fit(ended, y)
    assert model.n_times_ is None
    assert model.predict(ended).shape == (12,)


def bad(rng):
    X, y = waves(rng, 12, 40)
    hole = X.copy()
    hole[2, 7] = np.inf
    gone = X.copy()
    gone[3] = np.nan
    return {
        "one dimension": (X[0], y, "X: expected series of shape"),
        "hole": (hole, y, "X: expected finite numbers, got inf in series 2, channel 0, sample 7"),
        "gone": (gone, y, "X: expected values in each channel, got only NaN in series 3"),
        "text": ([["a", "b"]] * 12, y, "X: expected an array of real numbers"),
        "channels": (
            [np.ones((2, 9)), np.ones((3, 8))],
            y[:2],
            r"expected series of shape \(channels, times\) with 2 channels, got shape \(3, 8\) of "
            "series 1",
        ),
        "nested frame": (
            pd.DataFrame({"a": [pd.Series(x) for x in X]}),
            y,
            r"series in its cells; pass \[np.stack\(row\) for row in np.asarray\(X\)",
        ),
        "nested array": (
            np.fromiter(X, dtype=object, count=12)[:, None],
            y,
            "got a table with series in its cells",
        ),
        "huge": (1e160 * X, y, "X: expected magnitudes below 1e150, whose squares stay finite"),
        "ragged": ([[[1.0], [2.0, 3.0]]], y[:1], r"X: expected series of shape .*, got ragged"),
        "labels": (X, y[:5], r"y: expected 12 labels, one per series, got shape \(5,\)"),
        "one class": (X, np.zeros(12), "at least two classes"),
    }


@pytest.mark.parametrize("case", list(bad(np.random.default_rng(0))))
def test_bad_series_are_named_and_leave_the_model_unchanged(rng, case):
    X, y, message = bad(rng)[case]
    good, labels = waves(rng, 20, 40)
    model = ConvolutionClassifier(84, random_state=0).fit(good, labels)
    before = model.decision_function(good)
    with pytest.raises(ValueError, match=message):
        model.fit(X, y)
    assert_array_equal(model.decision_function(good), before)


def test_a_nested_frame_becomes_series_as_its_error_says(rng):
    X, y = waves(rng, 12, 40, 2)
    nested = pd.DataFrame({c: [pd.Series(x[c]) for x in X] for c in (0, 1)})
    assert_array_equal(np.stack([np.stack(row) for row in np.asarray(nested)]), X)
    read = [np.stack(row) for row in np.asarray(nested)]
    model = ConvolutionClassifier(84, random_state=0).fit(X, y)
    assert_array_equal(model.decision_function(read), model.decision_function(X))


def test_new_series_must_fit_the_type_of_the_features(rng):
    X, y = waves(rng, 12, 40)
    model = ConvolutionClassifier(84, random_state=0).fit(X.astype(np.float32), y)
    with pytest.raises(ValueError, match=r"^X: expected values that fit float32, got .*e\+39"):
        model.predict(1e40 * X)
