"""Quadratic discriminants over sets: one eigendecomposition for all samples of a pattern."""

import numpy as np
from sklearn.datasets import make_classification
from sklearn.discriminant_analysis import QuadraticDiscriminantAnalysis

from eigenfeat._base.core import core
from eigenfeat.early import MixtureCompletion, ReliableClassifier, set_rules
from eigenfeat.regions import certified_sign, trust_region_minimum


def problem(rng, d=9, m=4, n=60, t=5):
    """Forms, widths with zeros, items in groups, and levels of ascending radii."""
    forms = rng.standard_normal((3, d, d))
    forms += forms.transpose(0, 2, 1)
    widths = rng.uniform(0.0, 2.0, (2, d)) * (rng.random((2, d)) > 0.3)
    groups = np.stack([rng.integers(0, 3, m), rng.integers(0, 2, m)], axis=1)
    of_item = np.sort(rng.integers(0, m, n))
    begins = np.searchsorted(of_item, np.arange(m + 1))
    slopes = rng.standard_normal((n, d))
    radii = np.sort(rng.uniform(0.0, 2.0, (n, t)), axis=1)
    constants = rng.uniform(0.0, 40.0, (n, 1)) - np.arange(t)
    limits = rng.integers(0, t + 1, n)
    return forms, widths, groups, begins, slopes, constants, radii, limits, of_item


def test_levels_are_those_of_single_certificates(rng):
    forms, widths, groups, begins, slopes, constants, radii, limits, of_item = problem(rng)
    found = core.proved_levels(forms, widths, groups, begins, slopes, constants, radii, limits, 2)
    for other in (1, 7):
        again = core.proved_levels(
            forms, widths, groups, begins, slopes, constants, radii, limits, other
        )
        np.testing.assert_array_equal(again, found)
    counts = set()
    for i, g in enumerate(of_item):
        w = widths[groups[g, 1]]
        A = forms[groups[g, 0]] * np.outer(w, w)
        signs = [
            certified_sign(A, w * slopes[i], constants[i, k], radii[i, k]).sign
            for k in range(limits[i])
        ]
        expected = next((k for k, sign in enumerate(signs) if sign < 1), limits[i])
        assert found[i] == expected
        counts.add(expected)
    assert len(counts) > 3


def test_a_level_at_zero_to_rounding_is_not_proved(rng):
    d = 6
    form = np.diag([1.0, -2.0, 3.0, 0.5, -1.0, 0.0])
    Q, _ = np.linalg.qr(rng.standard_normal((d, d)))
    form = Q @ form @ Q.T
    form = (form + form.T) / 2
    g = rng.standard_normal(d)
    least = trust_region_minimum(form, g, 1.5).value
    shift = np.array([1e-3, 0.0, -1e-3])
    levels = core.proved_levels(
        form[None],
        np.ones((1, d)),
        np.zeros((1, 2), dtype=np.int64),
        np.array([0, 3]),
        np.tile(g, (3, 1)),
        (shift - least)[:, None],
        np.full((3, 1), 1.5),
        np.ones(3, dtype=np.int64),
        1,
    )
    np.testing.assert_array_equal(levels, [1, 0, 0])


def test_decisions_are_those_of_single_quadratics(monkeypatch):
    X, y = make_classification(48, 7, n_informative=5, n_classes=3, random_state=0)
    classifier = QuadraticDiscriminantAnalysis(reg_param=0.1)
    fits = []
    for least in (set_rules._MIN_GROUP, 10**9):
        monkeypatch.setattr(set_rules, "_MIN_GROUP", least)
        model = ReliableClassifier(
            classifier, MixtureCompletion(), reliability=0.8, held_out=2
        ).fit(X, y)
        early = model.predict_early(X)
        known = np.where(np.arange(7) < 5, X, np.nan)
        fits.append((model, early, model.decide(known), model.reliabilities(known)))
        if least != 10**9:
            monkeypatch.setattr(set_rules, "shares_quadratics", lambda rule_input, kind: False)
    (shared, early, decided, sure), (single, early_1, decided_1, sure_1) = fits
    for tau in (0.5, 0.8, 0.95):
        assert shared.correction_.least_known(tau) == single.correction_.least_known(tau)
    np.testing.assert_array_equal(early.label, early_1.label)
    np.testing.assert_array_equal(early.time, early_1.time)
    np.testing.assert_array_equal(decided.decided, decided_1.decided)
    np.testing.assert_allclose(sure, sure_1, rtol=1e-4)
    assert 0 < decided.decided.sum() < len(X)
