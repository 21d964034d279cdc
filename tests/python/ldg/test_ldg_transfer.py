"""LDG of two domains: the thesis's analysis and example, choices of parameters, errors."""

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

from eigenfeat.ldg import LDG, TransferLDG

EPS = np.finfo(float).eps


def fitted(model, Xs, ys, Xt, yt):
    X, y = np.vstack([Xs, Xt]), np.concatenate([ys, yt])
    return model.fit(X, y, sample_domain=np.repeat([1, -1], [len(Xs), len(Xt)]))


@pytest.fixture
def domains(rng):
    """Four classes: 40 rows each in the source, 6 in the target, which is moved and stretched."""
    ys, yt = np.repeat(list("abcd"), 40), np.repeat(list("abcd"), 6)
    centres = 2.0 * rng.standard_normal((4, 9))
    Xs = centres[np.repeat(range(4), 40)] + rng.standard_normal((160, 9))
    Xt = centres[np.repeat(range(4), 6)] + rng.standard_normal((24, 9))
    Xt[:, 7:] = 4.0 * rng.standard_normal((24, 2))  # only noise in the target
    return Xs, ys, 3.0 * Xt + 50.0, yt


def test_scatters_by_plain_loops(domains):
    """The own class weighs 1 - gamma p, by equation 4.4."""
    Xs, ys, Xt, yt = domains
    Xs, ys = Xs[:140], ys[:140]  # priors 2/7, 2/7, 2/7, 1/7
    options = {"n_neighbors": 4, "alpha": 0.3, "gamma": 0.7}
    model = fitted(TransferLDG(3, **options), Xs, ys, Xt, yt)
    S, T = (Xs - Xs.mean(0)) / Xs.std(0), (Xt - Xt.mean(0)) / Xt.std(0)
    matrix = np.zeros((9, 9))
    for rows, labels, weight in ((T, yt, 0.7), (S, ys, 0.3)):
        for i, (x, g) in enumerate(zip(rows, labels, strict=True)):
            for c in "abcd":
                distances = np.square(S - x).sum(axis=1)
                distances[ys != c] = np.inf
                if rows is S:
                    distances[i] = np.inf
                apart = x - S[np.argsort(distances, kind="stable")[:4]].mean(axis=0)
                p = np.mean(ys == c)
                matrix += weight * ((c == g) - 0.7 * p) * np.outer(apart, apart)
    values, vectors = np.linalg.eigh(matrix)
    size = np.abs(values).max()
    assert_allclose(model.eigenvalues_, values[:3], atol=1e4 * EPS * size)
    assert_allclose(np.abs(model.components_ @ vectors[:, :3]), np.eye(3), atol=1e-6)
    assert_allclose(model.transform(Xt), T @ model.components_.T, atol=1e-12)
    in_source = model.transform(Xs, sample_domain=np.ones(len(Xs), dtype=int))
    assert_allclose(in_source, S @ model.components_.T, atol=1e-12)


def test_chosen_parameters_are_reported_and_reproduce_the_fit(domains):
    model = fitted(TransferLDG(), *domains)
    assert model.components_.shape == (9, 9)
    tried = model.cv_results_
    assert model.alpha_ == tried["alpha"][np.argmax(tried["alpha_accuracy"])]
    assert model.gamma_ == tried["gamma"][::-1][np.argmax(tried["gamma_accuracy"][::-1])]
    assert tried["alpha_accuracy"].max() <= tried["gamma_accuracy"].max()  # .9 is in both
    given = fitted(TransferLDG(alpha=model.alpha_, gamma=model.gamma_), *domains)
    assert given.components_.tobytes() == model.components_.tobytes()
    assert given.cv_results_ == {}
    listed = fitted(TransferLDG(alpha=[model.alpha_], gamma=[0.2, 0.7]), *domains)
    assert set(listed.cv_results_) == {"gamma", "gamma_accuracy"}
    assert_allclose(model.components_ @ model.components_.T, np.eye(9), atol=1e-12)
    assert_array_equal(model.classes_, list("abcd"))


def test_held_out_rows_have_no_part_in_the_directions(rng):
    # Labels of the target are noise: directions that were fitted to a row would classify it
    # correctly.
    ys, yt = np.repeat(range(4), 30), np.tile(range(4), 10)
    Xs, Xt = rng.standard_normal((120, 60)), rng.standard_normal((40, 60))
    model = fitted(TransferLDG(), Xs, ys, Xt, yt)
    assert model.cv_results_["alpha_accuracy"].max() < 0.25 + 4 * np.sqrt(0.25 * 0.75 / 40)


def test_domains_in_any_order(domains):
    Xs, ys, Xt, yt = domains
    X, y = np.vstack([Xt, Xs]), np.concatenate([yt, ys])
    domain = np.repeat([-2, 1], [len(Xt), len(Xs)])
    model = TransferLDG(2, alpha=0.1, gamma=0.8).fit(X, y, sample_domain=domain)
    first = fitted(TransferLDG(2, alpha=0.1, gamma=0.8), *domains)
    assert model.components_.tobytes() == first.components_.tobytes()
    mixed = model.transform(X, sample_domain=domain)
    assert_array_equal(mixed[: len(Xt)], model.transform(Xt))
    assert not np.allclose(mixed[len(Xt) :], model.transform(Xs))
    single = model.transform(Xt.astype(np.float32))
    assert single.dtype == np.float32
    assert_allclose(single, model.transform(Xt), atol=1e-3)


def test_fewer_rows_than_columns(rng, domains):
    Xs, ys, Xt, yt = domains
    rotation = np.linalg.qr(rng.standard_normal((300, 9)))[0]
    given = {"alpha": 0.1, "gamma": 0.9, "standardize": False}
    narrow = fitted(TransferLDG(3, **given), Xs, ys, Xt, yt)
    wide = fitted(TransferLDG(3, **given), Xs @ rotation.T, ys, Xt @ rotation.T, yt)
    assert wide.components_.shape == (3, 300)
    assert_allclose(wide.eigenvalues_, narrow.eigenvalues_, rtol=1e-9)
    expected = narrow.transform(Xt) - narrow.transform(Xt).mean(axis=0)
    got = wide.transform(Xt @ rotation.T)
    assert_allclose(np.abs(got - got.mean(axis=0)), np.abs(expected), atol=1e-6)


def test_directions_lie_in_the_span_of_dependent_columns(domains):
    Xs, ys, Xt, yt = domains
    copies = [np.column_stack([X, X[:, 0], 2 * X[:, 1]]) for X in (Xs, Xt)]
    options = {"n_neighbors": 4, "alpha": 0.3, "gamma": 0.0}
    model = fitted(TransferLDG(9, **options), copies[0], ys, copies[1], yt)
    assert model.eigenvalues_[0] > 1e-3 * model.eigenvalues_[-1]
    with pytest.raises(ValueError, match=r"at most 9 \(rank of the samples\)"):
        fitted(TransferLDG(10, **options), copies[0], ys, copies[1], yt)


def test_scarce_targets(domains):
    Xs, ys, Xt, yt = domains
    two = fitted(TransferLDG(2), Xs, ys, Xt[[0, -1]], yt[[0, -1]])
    assert np.isfinite(two.transform(Xt)).all()
    only_source = TransferLDG(2).fit(Xs, ys)
    assert only_source.cv_results_ == {}
    assert only_source.gamma_ == 0.9
    alone = LDG(2, gamma=0.9, n_neighbors=only_source.n_neighbors).fit(Xs, ys)
    assert_allclose(only_source.eigenvalues_, alone.eigenvalues_, rtol=1e-9)
    repeated = fitted(TransferLDG(2), Xs[[0, 0, 50, 90, 130]], ys[[0, 0, 50, 90, 130]], Xt, yt)
    assert np.isfinite(repeated.components_).all()


@pytest.mark.parametrize(
    ("domain", "message"),
    [
        ([1, -1], r"expected shape \(3,\), got \(2,\)"),
        ([1, 0, -1], r"expected numbers above 0 \(source\) or below 0 \(target\), got 0 in row 1"),
        ([1, -1, np.nan], "expected finite numbers, got nan at index 2"),
        ([True, False, True], "got 0 in row 1"),
        ([1, 0.5, -1], "got 0.5 in row 1"),
        ([1, 2, 3], "got no sample of the target"),
        ([-1, -1, -1], "got no sample of the source"),
    ],
)
def test_bad_domains_are_named(domain, message):
    X = np.arange(6.0).reshape(3, 2)
    with pytest.raises(ValueError, match=f"sample_domain: .*{message}"):
        TransferLDG(1).fit(X, [0, 1, 1], sample_domain=domain)


def test_each_domain_has_its_own_standardisation(rng):
    domain = rng.permutation(np.where(np.arange(50) < 35, 3, -2))
    X = rng.standard_normal((50, 4)) * [1.0, 1e-200, 1e200, 3.0] + [0.0, 0.0, 0.0, 1e6]
    X[domain < 0] *= 7
    X[domain > 0, 0] = 0.1  # constant in the source only
    y = np.arange(50) % 2
    model = TransferLDG(3, alpha=0.1, gamma=0.5).fit(X, y, sample_domain=domain)
    Z = np.zeros((50, 3))
    for members in (domain > 0, domain < 0):
        part = X[members][:, 1:] * [1e200, 1e-200, 1.0]
        Z[members] = (part - part.mean(axis=0)) / part.std(axis=0)
    assert_array_equal(model.components_[:, 0], 0)
    expected = Z @ model.components_[:, 1:].T
    assert_allclose(model.transform(X, sample_domain=domain), expected, atol=1e-9)
    X[domain > 0, 1:] = 0.1
    with pytest.raises(ValueError, match="X: expected a column that varies in every domain"):
        TransferLDG(1).fit(X, y, sample_domain=domain)
