"""Quadratics over balls and boxes of every awkward family, and their minima in long double."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

EPS = float(np.finfo(float).eps)
LONG = np.longdouble
# x87 has 64 bits of mantissa; where long double is double there is no reference.
HAS_LONG_DOUBLE = np.finfo(LONG).eps < 1e-18


@dataclass
class Quadratics:
    """``x^T A x + 2 g^T x`` over ``|x| <= radius``, n of them."""

    A: Any  # (n, d, d)
    g: Any  # (n, d)
    radius: Any  # (n,)
    way: str  # each, shared or diagonal
    repeats: int  # items in a row that have A in common

    @property
    def size(self) -> Any:
        """(n,) |A| radius^2 + 2 |g| radius."""
        norms = np.linalg.norm(self.A, axis=(1, 2)), np.linalg.norm(self.g, axis=1)
        return norms[0] * self.radius**2 + 2 * norms[1] * self.radius


# --- families -------------------------------------------------------------------------------------


def _orthogonal(rng, n, d):
    return np.linalg.qr(rng.standard_normal((n, d, d)))[0]


def _with_spectrum(rng, values):
    Q = _orthogonal(rng, *values.shape)
    A = np.einsum("nij,nj,nkj->nik", Q, values, Q)
    return (A + A.transpose(0, 2, 1)) / 2, Q


def _times(A, x):
    return np.einsum("nij,nj->ni", A, x)


def _radii(rng, n):
    return 10.0 ** rng.uniform(-2, 2, n)


def indefinite(rng, n, d):
    A = rng.standard_normal((n, d, d))
    return A + A.transpose(0, 2, 1), rng.standard_normal((n, d)), _radii(rng, n)


def positive(rng, n, d):
    A = rng.standard_normal((n, d, d))
    return np.einsum("nij,nkj->nik", A, A), rng.standard_normal((n, d)), _radii(rng, n)


def rank_one(rng, n, d):
    """A = b b^T, g = -b, about the radius 1 / |b| at which the free minimiser is in the ball."""
    b = rng.standard_normal((n, d)) * 10.0 ** rng.uniform(-1, 1, (n, 1))
    factor = rng.choice([0.5, 0.9, 1.0, 1.1, 3.0], n)
    return b[:, :, None] * b[:, None, :], -b, factor / np.linalg.norm(b, axis=1)


def low_rank(rng, n, d):
    """Singular, positive semidefinite, the slope in the range, or next to it."""
    rank = int(rng.integers(1, d + 1))
    B = rng.standard_normal((n, d, rank))
    z = rng.standard_normal((n, rank))
    free = np.linalg.norm(np.einsum("nij,nj->ni", np.linalg.pinv(B.transpose(0, 2, 1)), z), axis=1)
    g = np.einsum("nij,nj->ni", B, z)
    g += rng.choice([0.0, 0.0, 1e-16, 1e-12, 1e-6], (n, 1)) * rng.standard_normal((n, d))
    return np.einsum("nij,nkj->nik", B, B), g, free * rng.choice([0.1, 0.5, 0.9, 1.0, 1.5], n)


def repeated(rng, n, d):
    values = rng.integers(-2, 3, (n, d)).astype(float)
    A, _ = _with_spectrum(rng, values)
    return A, rng.standard_normal((n, d)), _radii(rng, n)


def nearly_hard(rng, n, d):
    """The slope is next to orthogonal to the lowest eigenvector, or is so to rounding."""
    values = np.sort(rng.standard_normal((n, d)), axis=1)
    values[:, : max(1, d // 3)] -= rng.choice([0.0, 1.0], (n, 1))
    if d > 2:  # a second one nearly as low
        values[:, 1] = values[:, 0] + rng.choice([0.0, 1e-15, 1e-8, 0.5], n)
    A, Q = _with_spectrum(rng, values)
    slopes = rng.standard_normal((n, d))
    slopes[:, 0] *= rng.choice([0.0, 1e-18, 1e-16, 1e-14, 1e-10, 1e-6], n)
    inner = slopes[:, 1:] / np.maximum(values[:, 1:] - values[:, :1], 1e-3)
    length = np.linalg.norm(inner, axis=1) if d > 1 else np.ones(n)
    return A, _times(Q, slopes), length * rng.choice([0.5, 0.999999, 1.0, 1.000001, 2, 20], n)


def graded(rng, n, d):
    falling = 10.0 ** -np.linspace(0, rng.choice([4.0, 12.0, 40.0]), d)
    A, g, radius = indefinite(rng, n, d)
    g *= rng.choice([1.0, 1e-6], (n, 1)) * falling
    return A * falling[:, None] * falling, g, radius * rng.choice([1.0, 1e3], n)


def ill_conditioned(rng, n, d):
    values = 10.0 ** rng.uniform(-16, 0, (n, d)) * rng.choice([1.0, 1.0, 1.0, -1.0], (n, 1))
    A, _ = _with_spectrum(rng, values)
    x = rng.standard_normal((n, d))
    g = _times(A, x) + rng.choice([0.0, 1e-10], (n, 1)) * rng.standard_normal((n, d))
    return A, g, np.linalg.norm(x, axis=1) * rng.choice([0.5, 0.99, 1.0, 1.01, 10], n)


def whole_numbers(rng, n, d):
    A = rng.integers(-4, 5, (n, d, d)).astype(float)
    A = np.triu(A) + np.triu(A, 1).transpose(0, 2, 1)
    keep = rng.random((n, 1, 1)) < 0.5
    A = np.where(keep, A, np.einsum("nij,nkj->nik", A[:, :, :2], A[:, :, :2]))
    g = rng.integers(-4, 5, (n, d)).astype(float)
    g = np.where(rng.random((n, 1)) < 0.5, g, _times(A, np.sign(g)))
    return A, g, rng.integers(1, 9, n) * rng.choice([0.25, 1.0], n)


def scaled(rng, n, d):
    """Another family, with A, g and the radius each multiplied by 1e-8 to 1e8."""
    name = str(rng.choice([name for name in FAMILIES if name != "scaled"]))
    A, g, radius = FAMILIES[name](rng, n, d)
    unit = 10.0 ** rng.integers(-8, 9, (3, n))
    same = rng.random(n) < 0.5  # or such that the problem stays as balanced as it was
    unit[1] = np.where(same, unit[0] * unit[2], unit[1])
    return A * unit[0][:, None, None], g * unit[1][:, None], radius * unit[2]


def trivial(rng, n, d):
    """No curvature, no slope, or multiples of the identity."""
    kind = rng.integers(0, 4, n)
    A = np.eye(d) * np.array([0.0, 0.0, 1.0, -1.0])[kind][:, None, None]
    g = rng.standard_normal((n, d)) * (rng.random((n, 1)) < 0.6)
    return A, g, _radii(rng, n)


FAMILIES: dict[str, Callable[..., Any]] = {
    "indefinite": indefinite,
    "positive": positive,
    "rank one": rank_one,
    "low rank": low_rank,
    "repeated": repeated,
    "nearly hard": nearly_hard,
    "graded": graded,
    "ill conditioned": ill_conditioned,
    "whole numbers": whole_numbers,
    "trivial": trivial,
    "scaled": scaled,
}


def draw(rng, family: str, n: int, d: int, way: str) -> Quadratics:
    """Way: 'each' for a matrix an item, 'shared' for one for all, 'diagonal'."""
    repeats = {"each": min(n, 4), "shared": n, "diagonal": 1}[way]
    A, g, radius = FAMILIES[family](rng, -(-n // repeats), d)
    A, g, radius = (np.repeat(part, repeats, axis=0)[:n] for part in (A, g, radius))
    if way == "shared":  # other slopes of the same kind: multiples, and images under A
        image = _times(A, rng.standard_normal((n, d)))
        g = np.where(rng.random((n, 1)) < 0.5, g * rng.standard_normal((n, 1)), image)
    if way == "diagonal":
        A = np.einsum("nii->ni", A)[:, :, None] * np.eye(d)
        g = np.where(rng.random((n, 1)) < 0.5, g, _times(A, g))
    else:  # the first as it was drawn
        later = np.arange(n) % repeats > 0
        factor = rng.choice([0.1, 0.5, 1 - 1e-12, 1 + 1e-15, 2.0, 30.0], n)
        radius = np.where(later, radius * factor, radius)
    return Quadratics(A, g, np.maximum(radius, 1e-300), way, repeats)


# --- long double ----------------------------------------------------------------------------------


def _rounds(d):
    """Pairs that meet in each round of a tournament."""
    players = list(range(d + d % 2))
    for _ in range(len(players) - 1):
        half = len(players) // 2
        pairs = zip(players[:half], reversed(players[half:]), strict=True)
        kept = [(p, q) for p, q in pairs if p < d and q < d]
        yield np.array([p for p, _ in kept]), np.array([q for _, q in kept])
        players = [players[0], players[-1], *players[1:-1]]


def _off_diagonal(B):
    d = B.shape[1]
    return np.abs(np.where(np.eye(d, dtype=bool), 0, B)).max(axis=(1, 2), initial=0)


def _sweep(B, slopes):
    """One Jacobi sweep, in place; every rotation of a round at once."""
    for p, q in _rounds(B.shape[1]):
        off = B[:, p, q]
        with np.errstate(divide="ignore", invalid="ignore"):
            theta = (B[:, q, q] - B[:, p, p]) / (2 * off)
            t = np.where(theta < 0, -1, 1) / (np.abs(theta) + np.sqrt(theta**2 + 1))
        t = np.where((off == 0) | ~np.isfinite(t), 0, t)
        c = 1 / np.sqrt(t**2 + 1)
        s = t * c
        rows, others = B[:, p], B[:, q]
        B[:, p] = c[:, :, None] * rows - s[:, :, None] * others
        B[:, q] = s[:, :, None] * rows + c[:, :, None] * others
        rows, others = B[:, :, p], B[:, :, q]
        B[:, :, p] = c[:, None] * rows - s[:, None] * others
        B[:, :, q] = s[:, None] * rows + c[:, None] * others
        first, second = slopes[:, p], slopes[:, q]
        slopes[:, p] = c[:, :, None] * first - s[:, :, None] * second
        slopes[:, q] = s[:, :, None] * first + c[:, :, None] * second


def eigen(A, g) -> tuple[Any, Any]:
    """Eigenvalues (n, d) of A and slopes (n, d, m) along its eigenvectors, in long double."""
    scale = np.maximum(np.abs(A).max(axis=(1, 2)), 1e-300)
    Q = np.linalg.eigh((A / scale[:, None, None]).astype(float))[1].astype(LONG)
    for _ in range(2):
        Q = (3 * Q - Q @ (Q.transpose(0, 2, 1) @ Q)) / 2
    B = Q.transpose(0, 2, 1) @ (A.astype(LONG) / scale[:, None, None]) @ Q
    slopes = Q.transpose(0, 2, 1) @ g.astype(LONG)
    B = (B + B.transpose(0, 2, 1)) / 2
    for _ in range(6):
        rows = np.flatnonzero(_off_diagonal(B) > 1e-21)
        if not len(rows):
            break
        part, along = B[rows], slopes[rows]
        _sweep(part, along)
        B[rows], slopes[rows] = part, along
    return np.einsum("nii->ni", B) * scale[:, None], slopes


def minimum_over_ball(a, g, radius) -> Any:
    """(n,) min of sum a x^2 + 2 g x: the dual by bisection, from where |x| <= radius."""
    a, g, radius = a.astype(LONG), g.astype(LONG), np.asarray(radius).astype(LONG)
    low = a.min(axis=1)
    base = np.maximum(low, 0)

    def dual(shift):
        b = (a - low[:, None]) + shift[:, None]
        with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
            x = np.where(g == 0, 0, g / b)
        fall = (g * x).sum(axis=1) + (shift - low) * radius**2
        return -fall, (x**2).sum(axis=1)

    value, square = dual(base)
    with np.errstate(over="ignore"):
        inside = square <= radius**2
    below, above = base, base + np.abs(g).sum(axis=1) / radius
    for _ in range(80):
        middle = below + (above - below) / 2
        outside = dual(middle)[1] > radius**2
        below, above = np.where(outside, middle, below), np.where(outside, above, middle)
    return np.where(inside, value, dual(above)[0])


def minimum_over_box(a, g, w) -> Any:
    """(n,) min of sum a x^2 + 2 g x over |x_i| <= w_i: edges and vertices."""
    a, g, w = a.astype(LONG), g.astype(LONG), w.astype(LONG)
    edges = a * w**2 - 2 * np.abs(g) * w
    with np.errstate(divide="ignore", invalid="ignore"):
        vertex = np.where((a > 0) & (np.abs(g) <= a * w), -(g**2) / a, edges)
    return np.minimum(edges, vertex).sum(axis=1)


def minima(problem: Quadratics) -> Any:
    """(n,) in long double, right to some 1e-18 of the size."""
    n, d = problem.g.shape
    if problem.way == "diagonal":
        a, slopes = np.einsum("nii->ni", problem.A), problem.g
    else:
        m = problem.repeats
        groups = np.arange(0, n, m)
        g = np.zeros((len(groups) * m, d))
        g[:n] = problem.g
        a, along = eigen(problem.A[groups], g.reshape(-1, m, d).transpose(0, 2, 1))
        slopes = along.transpose(0, 2, 1).reshape(-1, d)[:n]
        a = np.repeat(a, m, axis=0)[:n]
    return minimum_over_ball(a, slopes, problem.radius)


def values_at(problem: Quadratics, x) -> Any:
    """(n,) x^T A x + 2 g^T x in long double."""
    x = x.astype(LONG)
    return np.einsum("ni,nij,nj->n", x, problem.A.astype(LONG), x) + 2 * (x * problem.g).sum(axis=1)
