"""L-BFGS: quadratics in the metric of their Hessian, hard functions, noise, and reports."""

import numpy as np
import pytest
from numpy.testing import assert_allclose

from eigenfeat.linear.logit_problem import minimise


def quadratic(rng, n=20, k=3, condition=1e4):
    """H, minimiser, and evaluation of 1 + 1/2 tr (W - W*)^T H (W - W*)."""
    Q, _ = np.linalg.qr(rng.standard_normal((n, n)))
    H = (Q * np.geomspace(1.0, condition, n)) @ Q.T
    best = rng.standard_normal((n, k))

    def evaluate(W):
        gradient = H @ (W - best)
        return 1.0 + 0.5 * float(np.vdot(W - best, gradient)), gradient

    return H, best, evaluate


def plain(gradient):
    return gradient


def run(evaluate, solve, start, **options):
    return minimise(
        evaluate, solve, start, **{"tolerance": 1e-12, "max_iterations": 200, **options}
    )


def test_one_step_where_the_metric_is_the_hessian(rng):
    H, best, evaluate = quadratic(rng)
    found = run(evaluate, lambda G: np.linalg.solve(H, G), np.zeros_like(best))
    assert found.reason in {"converged", "precision"}
    assert found.gap <= 1e-12
    # One step to the minimum, and at most two more, which find that it is the minimum.
    assert found.iterations <= 3
    assert found.history[1] == pytest.approx(1.0, abs=1e-9)
    assert_allclose(found.point, best, atol=1e-8)
    assert found.objective == pytest.approx(1.0, abs=1e-12)


def softplus_sum(x):
    """The sum of log(1 + exp(x)) + log(1 + exp(-x)): linear far from the minimum at 0."""
    return float(np.logaddexp(0, x).sum() + np.logaddexp(0, -x).sum()), np.tanh(x / 2)


def quartic(x):
    return 1.0 + float((x**4).sum()) / 4, x**3


def steep_wall(x):
    """A barrier at 1, beyond which the function is not defined."""
    with np.errstate(all="ignore"):
        value = float(np.sum(-np.log(1 - x) - x) + 1.0)
        return (value if np.all(x < 1) else np.nan), 1 / (1 - x) - 1


@pytest.mark.parametrize(
    ("function", "start", "least"),
    [(softplus_sum, 30.0, 5 * 2 * np.log(2)), (quartic, 50.0, 1.0), (steep_wall, -40.0, 1.0)],
)
def test_hard_functions(function, start, least):
    found = run(function, plain, np.full(5, start), tolerance=1e-8)
    assert found.reason in {"converged", "precision"}
    assert found.objective == pytest.approx(least, rel=1e-7)
    assert np.all(np.diff(found.history) <= 0)


def test_noise_ends_the_search(rng):
    H, best, evaluate = quadratic(rng, condition=10.0)

    def noisy(W):
        value, gradient = evaluate(W)
        return float(np.float32(value)), gradient.astype(np.float32).astype(float)

    found = run(noisy, plain, np.zeros_like(best), tolerance=1e-15, noise=1.2e-7)
    assert found.reason in {"precision", "converged"}
    assert found.iterations < 100
    assert found.objective == pytest.approx(1.0, abs=1e-6)
    assert H.shape == (20, 20)
