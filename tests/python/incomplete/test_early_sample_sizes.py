"""How many samples a rule takes, and what it says where they cannot show what is asked."""

from __future__ import annotations

import warnings

import numpy as np
import pytest
from sklearn.discriminant_analysis import LinearDiscriminantAnalysis

from eigenfeat.incomplete import ReliableClassifier, Sampled


def ramps(random, n):
    y = random.integers(0, 2, n)
    return random.standard_normal((n, 6)) + 6 * y[:, None], y


def new(rule, **options):
    return ReliableClassifier(LinearDiscriminantAnalysis(), rule=rule, correct=False, **options)


def test_what_can_be_reached(rng):
    X, y = ramps(rng, 60)
    model = new(Sampled(8192), reliability=0.999).fit(X, y)
    reach = (0.01 / 9) ** (1 / 8192)
    assert model.largest_reliability_ == pytest.approx(reach, abs=1e-12)
    seen = X[:4].copy()
    seen[:, 4:] = np.nan
    assert model.reliabilities(seen).max() == pytest.approx(reach, abs=1e-12)
    assert model.decide(seen).decided.all()
    assert not model.decide(seen, model.largest_reliability_ + 1e-6).decided.any()


@pytest.mark.parametrize("tau", [0.5, 0.95, 0.99, 0.999])
def test_auto_reaches_what_is_asked(rng, tau):
    X, y = ramps(rng, 60)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        model = new("sampled", reliability=tau).fit(X, y)
    assert model.largest_reliability_ >= (1 + tau) / 2
    assert model.n_samples_ >= 1024
    seen = X[:4].copy()
    seen[:, 4:] = np.nan
    assert model.decide(seen).decided.all()


def test_too_few_samples_warn(rng):
    X, y = ramps(rng, 60)
    with pytest.warns(UserWarning, match=r"n_samples: expected at least 1024 for .* got 256"):
        model = new(Sampled(256), reliability=0.99).fit(X, y)
    assert model.largest_reliability_ < 0.99
    assert np.all(model.predict_early(X).time == 6)
    with pytest.warns(UserWarning, match="n_samples: expected a smaller reliability"):
        new("sampled", reliability=1 - 1e-9).fit(X[:20], y[:20])


def test_closed_forms_take_none(rng):
    X, y = ramps(rng, 60)
    model = new("pairwise", reliability=0.999).fit(X, y)
    assert (model.n_samples_, model.largest_reliability_) == (0, 1.0)


@pytest.mark.parametrize("given", [1000, 3, "many", 0, 2.0])
def test_unfit_numbers(given):
    with pytest.raises(ValueError, match=r"n_samples: expected a power of two in 2\.\.1048576"):
        Sampled(n_samples=given)


def test_rows_enough_to_show_what_is_promised(rng):
    """The more samples, the fewer rows are held out, but not fewer than can show tau."""
    X, y = ramps(rng, 500)
    model = ReliableClassifier(
        LinearDiscriminantAnalysis(), rule=Sampled(2048), reliability=0.99, held_out=2
    ).fit(X, y)
    assert model.correction_.n >= 460
    assert model.correction_.least_known(0.99) < 6
