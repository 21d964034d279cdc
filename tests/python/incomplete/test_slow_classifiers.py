"""ReliableClassifier with classifiers that take long: batches, progress, and a warning."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.naive_bayes import GaussianNB
from sklearn.neighbors import KNeighborsClassifier

from eigenfeat.demo.early import signals
from eigenfeat.incomplete import ReliableClassifier, reliable, sampling


class Counted(KNeighborsClassifier):
    """Counts calls of `predict` and their samples."""

    calls = 0
    samples = 0

    def predict(self, X):
        Counted.calls += 1
        Counted.samples += len(X)
        return super().predict(X)


def fitted(**options):
    X, y = signals(36, np.random.default_rng(0))
    Counted.calls = Counted.samples = 0
    return ReliableClassifier(Counted(5), rule="sampled", held_out=2, **options).fit(X, y)


def test_completions_of_several_times_are_one_batch(monkeypatch):
    N, _ = signals(30, np.random.default_rng(1))
    model = fitted()
    calls, samples = Counted.calls, Counted.samples
    assert calls < 60  # of 2 folds and 16 times, of which each has up to 5 stages
    found = model.predict_early(N)
    monkeypatch.setattr(sampling, "BLOCK_NUMBERS", 1)
    alone = fitted()
    assert Counted.samples == samples
    assert Counted.calls > calls
    again = alone.predict_early(N)
    np.testing.assert_array_equal(found.time, again.time)
    np.testing.assert_array_equal(found.reliability, again.reliability)


def test_no_more_completions_are_drawn_than_tau_takes():
    model = fitted(reliability=0.9)
    assert Counted.samples < 36 * 16 * 320  # of 1,056 each
    np.testing.assert_array_equal(model.correction_.tau, [1e-12, 0.9])
    strict = model.predict_early(signals(30, np.random.default_rng(1))[0], 0.97)
    usual = model.predict_early(signals(30, np.random.default_rng(1))[0])
    assert strict.time.mean() >= usual.time.mean()


def test_progress_is_shown(capsys):
    fitted(verbose=1)
    assert "held-out samples at all times: 576 of 576" in capsys.readouterr().err
    fitted()
    assert capsys.readouterr().err == ""


def test_minutes_are_announced(monkeypatch):
    monkeypatch.setattr(reliable, "LONG", 0.0)
    with pytest.warns(UserWarning, match=r"^fit: expected a fast classifier, got one that needs"):
        fitted()
    X, y = signals(90, np.random.default_rng(0))
    monkeypatch.setattr(reliable, "LONG", 90.0)
    ReliableClassifier(GaussianNB()).fit(X, y)  # without a warning
