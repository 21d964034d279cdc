"""Pool of views of epochs: what each view finds, sessions, MNE's epochs, bad input."""

import warnings

import numpy as np
import pytest
import sklearn
from numpy.testing import assert_allclose, assert_array_equal
from recordings import Epochs, recording
from scipy.special import softmax
from sklearn.base import clone
from sklearn.cross_decomposition import CCA
from sklearn.discriminant_analysis import LinearDiscriminantAnalysis
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import GroupKFold, cross_val_score
from sklearn.pipeline import make_pipeline

import eigenfeat as ef
from eigenfeat import EpochClassifier, SpatialFilters, TangentSpace
from eigenfeat.signals.epoch_views import Frequencies, WeightedLabels, fit_discriminant, fit_logit

SFREQ = 100.0


def noise(rng, n=80, channels=6, times=100):
    """Epochs of mixed noise, and labels of two classes."""
    X = rng.standard_normal((n, channels, times))
    return rng.standard_normal((channels, channels)) @ X, np.arange(n) % 2


def with_power(rng, n=80, channels=6, times=100, k=2, strength=1.6):
    """Epochs of mixed sources; source c is stronger in class c."""
    return recording(rng, n, channels, times, k, strength)[:2]


def with_response(rng):
    """Epochs of mixed sources, the first of which responds at a fixed time in class 1."""
    sources, y = rng.standard_normal((80, 6, 100)), np.arange(80) % 2
    sources[y == 1, 0] += 1.5 * np.exp(-(((np.arange(100) - 40.0) / 8.0) ** 2))
    return rng.standard_normal((6, 6)) @ sources, y


def with_flicker(rng):
    """Epochs with a rhythm of 13 or 17 Hz, of any phase."""
    X, y = noise(rng, times=200)
    phase = rng.uniform(0, 2 * np.pi, (len(X), 1))
    clock = 2 * np.pi * np.arange(200) / SFREQ
    waves = np.sin(np.where(y[:, None] == 1, 17.0, 13.0) * clock + phase)
    return X + 0.6 * rng.standard_normal(6)[:, None] * waves[:, None, :], y


def targets(codes, k):
    return WeightedLabels(codes, np.ones(len(codes)), k)


def weights(model):
    return {view.name: view.weight for view in model.views_}


@pytest.mark.parametrize(
    ("make", "names"),
    [
        (with_power, {"filters", "tangent", "filters_bands", "tangent_bands"}),
        (with_response, {"means", "xdawn"}),
        (with_flicker, {"frequencies"}),
    ],
)
def test_each_kind_of_epochs_has_a_view(rng, make, names):
    X, y = make(rng)
    frequencies = (13.0, 17.0) if make is with_flicker else None
    model = EpochClassifier(SFREQ, frequencies=frequencies).fit(X[:50], y[:50])
    assert model.score(X[50:], y[50:]) >= 0.85
    assert max(weights(model), key=weights(model).get) in names
    proba = model.predict_proba(X[50:])
    assert_allclose(proba.sum(axis=1), 1.0)
    logit = model.decision_function(X[50:])
    assert_allclose(logit, np.log(proba[:, 1] / proba[:, 0]))
    assert_array_equal(model.predict(X[50:]), (logit > 0).astype(int))


def test_responses_are_not_sought_in_rounding(rng):
    X, y = with_response(rng)
    X *= np.array([1e9, 1e9, 1, 1, 1, 1])[:, None]  # rounding of channels in another unit is 1e-7
    order = [3, 5, 1, 0, 4, 2]
    found = [
        EpochClassifier(views="xdawn").fit(X[:, some], y).predict_proba(X[:, some])
        for some in (np.arange(6), order)
    ]
    assert_allclose(found[1], found[0], atol=1e-6)


def test_pool_of_noise_is_near_the_frequencies_of_the_classes(rng):
    X, _ = noise(rng)
    y = np.repeat(["a", "b"], [60, 20])
    model = EpochClassifier(SFREQ).fit(X[::2], y[::2])
    assert abs(model.predict_proba(X[1::2])[:, 0].mean() - 0.75) < 0.15
    assert all(0 < view.log_loss < 1.0 for view in model.views_ if view.name != "frequencies")


def test_views_are_chosen_by_name(rng):
    X, y = with_power(rng)
    model = EpochClassifier(views=["tangent", "means"]).fit(X, y)
    assert [view.name for view in model.views_] == ["tangent", "means"]
    assert model.bands_ == []
    without = {view.name: view.note for view in EpochClassifier().fit(X, y).views_}
    assert without["filters_bands"] == without["tangent_bands"] == "sfreq is not known"
    assert without["frequencies"] == "no frequencies given"
    banded = EpochClassifier(SFREQ, bands=[(8, 12), (20, 30)], views=["filters_bands"]).fit(X, y)
    filters = banded.views_[0].model.transformers
    assert [one.patterns_.shape for one in filters] == [(4, 6), (4, 6)]
    around = EpochClassifier(SFREQ, frequencies=[10.0, 10.5, 20.0]).fit(X, y)
    assert_allclose(around.bands_, [(9.0, 11.5), (19.0, 21.0)])


def test_views_of_the_users_own(rng, tmp_path):
    X, y = with_power(rng)
    own = make_pipeline(SpatialFilters(2), LinearDiscriminantAnalysis())
    model = EpochClassifier(views=["means", own]).fit(X[:50], y[:50])
    assert list(weights(model)) == ["means", "Pipeline"]
    assert weights(model)["Pipeline"] > 0
    assert not hasattr(own[0], "filters_")
    assert model.score(X[50:], y[50:]) >= 0.85
    ef.save(model, tmp_path / "model")
    loaded = ef.load(tmp_path / "model")
    assert_array_equal(loaded.predict_proba(X), model.predict_proba(X))
    weight = 1.0 + np.arange(80) % 3
    EpochClassifier(views=[LinearByTime()]).fit(X, y, weight, groups=np.arange(80) // 40)


class LinearByTime(LogisticRegression):
    """A classifier of flattened epochs."""

    def fit(self, X, y, sample_weight=None):
        return super().fit(X.reshape(len(X), -1), y, sample_weight)

    def predict_proba(self, X):
        return super().predict_proba(X.reshape(len(X), -1))


def test_weights_count_epochs(rng):
    """Epochs of weight 0 do not count, and the unit of weights does not matter."""
    X, y = with_power(rng, strength=2.0)
    groups = np.arange(80) // 20
    wrong = np.where(np.arange(80) % 8 == 0, 1 - y, y)
    weight = np.where(wrong == y, 1.0, 0.0)
    pool = EpochClassifier(views=["filters", "tangent", "means", "xdawn"])
    given = clone(pool).fit(X, wrong, weight, groups)
    kept = weight > 0
    expected = clone(pool).fit(X[kept], y[kept], groups=groups[kept])
    found = given.predict_proba(X, groups)
    assert_allclose(found, expected.predict_proba(X, groups), atol=1e-8)
    again = clone(pool).fit(X, wrong, 1e-3 * weight, groups)
    assert_allclose(again.predict_proba(X, groups), found, atol=1e-8)
    little = clone(pool).fit(X, wrong, np.where(wrong == y, 1.0, 1e-4), groups)
    assert_array_equal(little.predict(X, groups), given.predict(X, groups))


def test_bands_are_those_with_power(rng):
    from scipy.signal import butter, sosfiltfilt

    X, y = with_power(rng, times=400)
    X = sosfiltfilt(butter(4, (8, 24), "bandpass", fs=SFREQ, output="sos"), X)
    bands = EpochClassifier(SFREQ).fit(X, y).bands_
    assert min(low for low, _ in bands) >= 8.0
    assert max(high for _, high in bands) <= 32.0


# ---- parts ---------------------------------------------------------------------------------------


def discriminant_by_loops(F, codes, k):
    """Linear discriminants with Ledoit and Wolf's covariance, epoch by epoch."""
    n, d = F.shape
    means = np.array([F[codes == c].mean(axis=0) for c in range(k)])
    scale = np.sqrt(np.mean((F - means[codes]) ** 2, axis=0))
    Z = (F - means[codes]) / scale
    S = sum(np.outer(z, z) for z in Z) / n
    mu = np.trace(S) / d
    error = sum(np.sum((np.outer(z, z) - S) ** 2) for z in Z) / n**2
    share = min(1.0, error / np.sum((S - mu * np.eye(d)) ** 2))
    inverse = np.linalg.inv((1 - share) * S + share * mu * np.eye(d))
    M = means / scale
    prior = np.log(np.bincount(codes) / n)
    return F / scale @ inverse @ M.T - 0.5 * np.diag(M @ inverse @ M.T) + prior


@pytest.mark.parametrize("d", [5, 90])
def test_discriminants_by_definition(rng, d):
    codes = np.repeat(np.arange(3), [20, 15, 10])
    F = rng.standard_normal((45, d)) * rng.uniform(0.1, 10.0, d) + 3.0
    F[:, 0] += codes
    expected = discriminant_by_loops(F, codes, 3)
    got = fit_discriminant(F, targets(codes, 3)).of(F)
    assert_allclose(got - got[:, :1], expected - expected[:, :1], rtol=1e-6, atol=1e-8)
    F[:, 1] = 7.0  # a constant column gets no coefficient
    got = fit_discriminant(F, targets(codes, 3))
    assert not got.coef[1].any()
    assert np.isfinite(got.of(F)).all()
    assert_allclose(
        fit_discriminant(np.ones((45, d)), targets(codes, 3)).of(F)[0],
        np.log([4, 3, 2] / np.float64(9)),
    )


@pytest.mark.parametrize("k", [2, 3])
def test_logit_in_the_span_is_that_of_all_features(rng, k):
    codes = np.arange(30) % k
    F = rng.standard_normal((30, 50)) + codes[:, None]
    got = softmax(fit_logit(F, targets(codes, k)).of(F), axis=1)
    expected = LogisticRegression(max_iter=5000, tol=1e-8).fit(F, codes).predict_proba(F)
    assert_allclose(got, expected, atol=2e-3)


def test_frequencies_have_canonical_correlations(rng):
    X, _ = with_flicker(rng)
    found = np.tanh(Frequencies([13.0], SFREQ).features([X]))
    clock = 2 * np.pi * np.arange(200) / SFREQ
    waves = np.stack([w(h * 13 * clock) for h in (1, 2) for w in (np.sin, np.cos)], axis=1)
    for epoch, pair in zip(X[:3], found, strict=False):
        U, V = CCA(n_components=2, max_iter=5000, tol=1e-12).fit_transform(epoch.T, waves)
        expected = [abs(np.corrcoef(u, v)[0, 1]) for u, v in zip(U.T, V.T, strict=True)]
        assert_allclose(pair, expected, atol=1e-4)


# ---- sessions ------------------------------------------------------------------------------------


def of_sessions(rng, count=4, n=60):
    """Epochs of sessions with gains of their own, labels and sessions."""
    X, y = with_power(rng, n=count * n, strength=2.0)
    session = np.repeat(np.arange(count), n)
    gains = np.exp(rng.uniform(-1.0, 1.0, (count, 6)))
    return gains[session][:, :, None] * X, y, session


def test_a_new_session_is_aligned(rng):
    X, y, session = of_sessions(rng)
    known = session < 3
    model = EpochClassifier(SFREQ).fit(X[known], y[known], groups=session[known])
    assert_array_equal(model.alignment_.names, [0, 1, 2])
    assert model.score(X[~known], y[~known], groups=session[~known]) >= 0.9
    with pytest.warns(UserWarning, match="^groups: expected the sessions of the epochs, as in fit"):
        assert_array_equal(model.predict(X[~known]), model.predict(X[~known], session[~known]))
    with pytest.warns(UserWarning, match="got None; the epochs are aligned as epochs of one new"):
        of_one = model.score(X[known], y[known])
    assert model.score(X[known], y[known], groups=session[known]) > of_one
    plain = EpochClassifier(SFREQ).fit(X[known], y[known])
    aligned = model.score(X[~known], y[~known], groups=session[~known])
    assert plain.score(X[~known], y[~known]) < aligned


def test_sessions_of_nearly_dependent_channels(rng):
    """Means converge even if directions differ by 1e10 in power, as after filters."""
    X, y = with_power(rng, channels=32, times=160)
    turn = np.linalg.qr(rng.standard_normal((32, 32)))[0]
    X = (turn * np.logspace(0, -5, 32)) @ X
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        EpochClassifier(views=["tangent"]).fit(X, y, groups=np.arange(len(y)) // 40)


def test_a_session_may_arrive_epoch_by_epoch(rng):
    X, y, session = of_sessions(rng)
    known, new = session < 3, session == 3
    model = EpochClassifier(views=["filters", "tangent", "means"])
    model.fit(X[known], y[known], groups=session[known])
    at_once = (
        clone(model).fit(X[known], y[known], groups=session[known]).adapt(X[new], session[new])
    )
    right = []
    for epoch, label in zip(X[new], y[new], strict=True):
        model.adapt(epoch[None], groups=[3])
        right.append(model.predict(epoch[None], groups=[3])[0] == label)
    assert np.mean(right[20:]) >= 0.85
    expected = at_once.predict_proba(X[new], session[new])
    assert_allclose(model.predict_proba(X[new], session[new]), expected, atol=0.05)
    with pytest.warns(UserWarning, match="^groups: expected the sessions"):
        assert_allclose(at_once.predict_proba(X[new]), expected, atol=1e-6)
    model.adapt(X[:3], groups=session[:3])
    assert_allclose(model.alignment_.sizes, [63, 60, 60, 60])


def test_a_new_session_of_few_epochs_leads_to_one_warning(rng):
    X, y, session = of_sessions(rng)
    names = np.array(["a", "b", "c", "d"])[session]
    model = EpochClassifier(SFREQ).fit(X[:180], y[:180], groups=names[:180])
    tangent = TangentSpace(align="session").fit(X[:180], groups=names[:180])
    message = "^groups: expected at least 10 epochs of a new session for a good alignment, got 9 of"
    for transformer in (tangent, SpatialFilters(align="session").fit(X, y, groups=session)):
        with pytest.warns(UserWarning, match=f"{message} session 'new'; transform more") as found:
            transformer.transform(X[-30:], np.repeat(["new", "more"], [9, 21]))
        assert len(found) == 1
    with pytest.warns(UserWarning, match=f"{message} session 'd'; predict more .* adapt$") as found:
        model.predict(X[180:189], groups=names[180:189])
    assert len(found) == 1
    assert found[0].filename == __file__
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        model.predict(X[180:190], groups=names[180:190])
        model.adapt(X[180:181], groups=names[180:181])
        model.predict(X[180:181], groups=names[180:181])
        model.predict(X[:1], groups=names[:1])


def test_sessions_reach_a_cross_validation(rng):
    X, y, session = of_sessions(rng)
    with sklearn.config_context(enable_metadata_routing=True):
        model = EpochClassifier(SFREQ, views=["tangent"])
        model = model.set_fit_request(groups=True).set_score_request(groups=True)
        scores = cross_val_score(model, X, y, cv=GroupKFold(4), params={"groups": session})
    assert scores.mean() >= 0.9


# ---- MNE's epochs --------------------------------------------------------------------------------


def test_epochs_objects_bring_rate_and_channels(rng):
    X, y = with_power(rng)
    epochs = Epochs(X, SFREQ, "abcdef")
    model = EpochClassifier().fit(epochs, y)
    assert model.sfreq_ == SFREQ
    assert model.channel_names_ == list("abcdef")
    expected = EpochClassifier(SFREQ).fit(X, y).predict_proba(X)
    assert_array_equal(model.predict_proba(epochs), expected)
    assert_array_equal(model.predict_proba(X), expected)
    with pytest.raises(ValueError, match=r"^X: expected 100 samples per second as in fit, got 250"):
        model.predict(Epochs(X, 250.0, "abcdef"))
    with pytest.raises(ValueError, match=r"^X: expected the channels of fit in their order, got "):
        model.predict(Epochs(X, SFREQ, "abcdfe"))
    with pytest.raises(ValueError, match=r"^sfreq: expected None or .* of the epochs, 100, got 50"):
        EpochClassifier(50.0).fit(epochs, y)


def test_epochs_of_mne(rng):
    mne = pytest.importorskip("mne", reason="mne is not installed")
    X, y = with_power(rng)
    info = mne.create_info(list("abcdef"), SFREQ, "eeg")
    events = np.c_[100 * np.arange(len(y)), np.zeros_like(y), y]
    epochs = mne.EpochsArray(1e-6 * X, info, events, baseline=None, verbose="error")
    model = EpochClassifier().fit(epochs[:50], epochs.events[:50, 2])
    assert model.score(epochs[50:], y[50:]) >= 0.85
    assert model.channel_names_ == list("abcdef")
    assert cross_val_score(EpochClassifier(views=["tangent"]), epochs, y, cv=3).mean() >= 0.85
    other = mne.EpochsArray(1e-6 * X, mne.create_info(6, SFREQ), verbose="error")
    with pytest.raises(ValueError, match=r"^X: expected epochs of one sampling rate and channels"):
        model.predict([epochs, other])


# ---- unusual and bad epochs ----------------------------------------------------------------------


@pytest.mark.filterwarnings("ignore:X. constant channels")
@pytest.mark.parametrize("kind", ["average reference", "flat", "float32", "many", "short"])
def test_unusual_epochs(rng, kind):
    if kind == "many":
        X, y = with_power(rng, channels=70)
    elif kind == "short":
        X, y = with_power(rng, times=20, strength=2.5)
    else:
        X, y = with_power(rng)
    if kind == "average reference":
        X = X - X.mean(axis=1, keepdims=True)
    elif kind == "flat":
        X[:, 4] = 3.0
    elif kind == "float32":
        X = X.astype(np.float32)
    model = EpochClassifier(SFREQ).fit(X[:60], y[:60])
    least = 0.75 if kind == "many" else 0.85
    assert model.score(X[60:], y[60:]) >= least
    assert (model.components_ is not None) == (kind == "many")


@pytest.mark.parametrize("channels", [6, 70])
@pytest.mark.parametrize("sessions", [None, np.arange(80) // 40])
def test_constant_channels_lead_to_one_warning(rng, channels, sessions):
    X, y = with_power(rng, channels=channels)
    X[:, 4] = 3.0
    model = EpochClassifier(SFREQ, views=["filters", "tangent_bands", "xdawn"])
    with warnings.catch_warnings(record=True) as found:
        warnings.simplefilter("always")
        model.fit(X, y, groups=sessions).predict(X, sessions)
    assert [str(one.message) for one in found] == ["X: constant channels are left out: [4]"]
    assert found[0].filename == __file__


def test_names_of_sessions_may_be_numbers_and_text(rng, tmp_path):
    X, y = with_power(rng)
    session = np.arange(len(y)) * 3 // len(y)
    model = EpochClassifier(SFREQ).fit(X, y, groups=session)
    before = model.predict_proba(X[:1], groups=[0])
    model.adapt(X[-12:], groups=["today"] * 12)
    ef.save(model, tmp_path / "m.efm")
    for one in (model, ef.load(tmp_path / "m.efm")):
        assert one.alignment_.names.tolist() == [0, 1, 2, "today"]
        np.testing.assert_array_equal(one.predict_proba(X[:1], groups=[0]), before)
        with pytest.raises(ValueError, match="groups: expected the session 0 of fit, got '0'"):
            one.predict(X[:20], groups=["0"] * 20)
        with pytest.raises(ValueError, match="groups: expected the session 0 of fit, got '0'"):
            one.adapt(X[:20], groups=["0"] * 20)


def test_epochs_whose_squares_overflow(rng):
    X, y = with_power(rng)
    with pytest.raises(ValueError, match=r"X: expected magnitudes below 1e150, .* got .*e\+20"):
        EpochClassifier(SFREQ).fit(X * 1e200, y)


def test_a_view_that_takes_no_epochs_is_named(rng):
    X, y = with_power(rng)
    message = (
        "views: LinearDiscriminantAnalysis cannot be fitted to epochs .*: Found array with dim 3"
    )
    with pytest.raises(ValueError, match=message):
        EpochClassifier(SFREQ, views=["filters", LinearDiscriminantAnalysis()]).fit(X, y)


def test_a_sampling_rate_without_bands_warns(rng):
    """The rate in kHz, for example."""
    X, y = with_power(rng)
    with pytest.warns(UserWarning, match="sfreq: expected samples per second, got 0.25, half of"):
        EpochClassifier(0.25).fit(X, y)


def test_small_classes_and_sessions_without_a_class(rng):
    X, y = with_power(rng, n=46, k=3)
    few = np.flatnonzero((y < 2) | (np.arange(46) < 6))  # two epochs of the third class
    model = EpochClassifier(SFREQ).fit(X[few], y[few])
    assert model.predict_proba(X).shape == (46, 3)
    apart = np.where(y == 2, "b", "a")  # no fold of sessions has all classes
    with pytest.warns(UserWarning, match="groups: session 'b' has one class alone"):
        model = EpochClassifier(SFREQ).fit(X, y, groups=apart)
    assert model.predict_proba(X, apart).shape == (46, 3)


def bad(rng):
    X, y = with_power(rng)
    one = np.where(np.arange(80) == 0, 2, y)
    lonely = np.where(np.arange(80) == 7, "b", "a")
    return {
        "one epoch": ({}, (X, one), "y: expected at least 2 epochs of each class, got 1 of 2"),
        "session": (
            {},
            (X, y, None, lonely),
            "at least 2 epochs of each session, got 1 of session 'b'",
        ),
        "sessions": (
            {},
            (X, y, None, y[:9]),
            "groups: expected 80 sessions, one per epoch, got shape",
        ),
        "frequency": ({"sfreq": 20.0, "frequencies": [12]}, (X, y), r"frequencies: .*= 10\), got"),
        "no rate": ({"frequencies": [12]}, (X, y), "sfreq: expected samples .* with frequencies"),
        "weights": ({}, (X, y, 0 * y), "sample_weight: expected at least one positive weight"),
        "estimator": ({"views": [CCA()]}, (X, y), "views: expected names or classifiers with"),
        "views": ({"views": ["csp"]}, (X, y), "views: expected 'auto' or distinct names out"),
        "no bands": ({"views": ["tangent_bands"]}, (X, y), "views: .*sfreq is not known"),
    }


@pytest.mark.parametrize("case", list(bad(np.random.default_rng(0))))
def test_bad_input_is_named_and_leaves_the_model_unchanged(rng, case):
    options, given, message = bad(rng)[case]
    X, y = with_power(rng)
    model = EpochClassifier().fit(X, y)
    before, views = model.predict_proba(X), model.views_
    with pytest.raises(ValueError, match=message):
        model.set_params(**options).fit(*given)
    assert model.views_ is views
    assert_array_equal(model.predict_proba(X), before)


def test_other_epochs_than_those_of_fit(rng):
    X, y = with_power(rng)
    model = EpochClassifier(SFREQ).fit(X, y)
    with pytest.raises(ValueError, match=r"^X: expected 6 channels, got 5"):
        model.predict(X[:, :5])
    with pytest.raises(ValueError, match=r"^X: expected epochs of 100 samples as in fit, got 90"):
        model.predict(X[:, :, :90])
    with pytest.raises(ValueError, match=r"^groups: expected None, because fit had no groups"):
        model.predict(X, groups=y)
    with pytest.raises(ValueError, match=r"^groups: expected None, because fit had no groups"):
        model.adapt(X, groups=y)
