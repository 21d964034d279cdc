"""Largest sets on which a class dominates, next to a tie, and whether they hold in long double.

Both `attack_dominance` and `attack_rule` draw problems and count: ``decided``, ``missed`` (not
decided, though far from a tie) and ``wrong``.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import replace

import numpy as np
import region_reference as reference

from eigenfeat._base.core import core
from eigenfeat.early.completion import Conditional
from eigenfeat.early.discriminants import Linear, Quadratic
from eigenfeat.early.rules import RuleInput, square_roots
from eigenfeat.early.set_rules import SETS, SetRule, largest_radii

EPS = float(np.finfo(float).eps)
LONG = reference.LONG
KINDS = ("linear", "gaussians", "quadratic")
FAR = 1e-9  # from a tie, in sizes of the terms: what should be decided


def separable_classes(rng, k, d):
    """Offsets such that the scores at 0 differ by little, or by the rounding of their terms."""
    kind = rng.integers(3)
    slopes = rng.standard_normal((k, d)) * 10.0 ** rng.integers(-3, 4) if kind != 1 else None
    precisions = centres = None
    if kind != 0:
        precisions = rng.gamma(1.0, size=(1, k, d)) * 10.0 ** rng.integers(-3, 4)
        centres = rng.standard_normal((1, k, d)) * 10.0 ** rng.integers(-2, 3)
        if rng.random() < 0.3:  # equal curvatures: the differences are linear
            precisions[:] = precisions[:, :1]
    offsets = rng.standard_normal((1, k)) * 10.0 ** rng.integers(-6, 6)
    return offsets, slopes, precisions, centres


def parts_of(classes, x, w, c, h):
    """Constant, a and g of f_c - f_h in u, x + w u, in long double."""
    offsets, slopes, precisions, centres = classes
    x, w = x.astype(LONG), w.astype(LONG)
    offsets = np.broadcast_to(offsets, (len(x), offsets.shape[1])).astype(LONG)
    constant = offsets[:, c] - offsets[:, h]
    a, g = np.zeros(x.shape, dtype=LONG), np.zeros(x.shape, dtype=LONG)
    size = np.abs(offsets[:, c]) + np.abs(offsets[:, h])
    if slopes is not None:
        apart = slopes[c].astype(LONG) - slopes[h].astype(LONG)
        constant, g = constant + x @ apart, g + w * apart / 2
        size = size + np.abs(x) @ np.abs(slopes[[c, h]]).sum(axis=0)
    if precisions is not None:
        for sign, i in ((-1, c), (1, h)):
            p, m = precisions[0, i].astype(LONG), centres[0, i].astype(LONG)
            square = p * (x - m) ** 2
            constant, size = constant + sign * square.sum(axis=1), size + square.sum(axis=1)
            a, g = a + sign * p * w**2, g + sign * w * p * (x - m)
    return constant, a, g, size


def least_difference(classes, x, w, radius, shape, c, h):
    """(n,) minima of f_c - f_h, and the size of the terms."""
    constant, a, g, size = parts_of(classes, x, w, c, h)
    over = reference.minimum_over_ball if shape == "ball" else reference.minimum_over_box
    reach = radius if shape == "ball" else np.broadcast_to(radius[:, None], a.shape)
    terms = np.abs(a).sum(axis=1) * radius**2 + 2 * np.abs(g).sum(axis=1) * radius
    return constant + over(a, g, reach), size + terms


def attack_dominance(rng, n, shape):
    """The first class beats every other by next to nothing, or falls short by as much."""
    k, d = int(rng.integers(2, 5)), int(rng.choice([1, 2, 3, 8, 13]))
    classes = separable_classes(rng, k, d)
    x = rng.standard_normal((n, d)) * 10.0 ** rng.integers(-2, 3)
    w = rng.gamma(1.0, size=(n, d)) * (rng.random((n, d)) < 0.8) * 10.0 ** rng.integers(-4, 2)
    radius = 10.0 ** rng.uniform(-3, 2, n)
    offsets = np.repeat(classes[0], n, axis=0)
    for h in range(1, k):
        least, size = least_difference(classes, x, w, radius, shape, 0, h)
        beside = rng.choice([0.0, 1e-17, 1e-16, 1e-14, 1e-8, 1.0], n) * rng.choice([-1, 1], n)
        offsets[:, h] += (least + beside * size).astype(float)
    classes = offsets, *classes[1:]
    dominates = core.dominance_radii(x, w, radius, *classes, shape, 1) == radius
    sizes = np.zeros((n, k, k), dtype=LONG)
    least = np.full((n, k, k), np.inf, dtype=LONG)
    for c in range(k):
        for h in range(k):
            if c != h:
                least[:, c, h], sizes[:, c, h] = least_difference(
                    classes, x, w, radius, shape, c, h
                )
    size = sizes.max(axis=(1, 2))
    winning = least.min(axis=2).max(axis=1)
    return Counter(
        decided=int(dominates.sum()),
        wrong=int((dominates & (winning < -1e-18 * d * size)).sum()),
        missed=int((~dominates & (winning > FAR * size)).sum()),
    )


def discriminants(rng, kind, k, d):
    far = 10.0 ** rng.integers(0, 6)  # scores are differences of terms as large as this
    means = rng.standard_normal((k, d)) + far * rng.standard_normal(d)
    if kind == "linear":
        slopes = rng.standard_normal((k, d)) * 1e-3 + far * rng.standard_normal(d)
        return Linear(slopes, rng.standard_normal(k)), np.zeros(d)
    variances = rng.gamma(2.0, size=(k, d)) + 0.1
    if kind == "gaussians":
        return Quadratic(np.zeros((1, k)), means[None], 1.0 / variances[None]), means[0]
    roots = rng.standard_normal((k, d, d))
    precisions = roots @ roots.transpose(0, 2, 1) + 0.01 * np.eye(d)
    if rng.random() < 0.5:  # of differences of low rank
        extra = rng.standard_normal((k, d, 1))
        precisions = precisions[:1] + extra @ extra.transpose(0, 2, 1)
    return Quadratic(np.zeros((1, k)), means[None], precisions[None]), means[0]


def known_to(rng, centre, far, n, d):
    root = rng.standard_normal((1, d, int(rng.integers(1, d + 1)))) * 10.0 ** rng.integers(-4, 1)
    covariance = root @ root.transpose(0, 2, 1)
    means = centre + rng.standard_normal((n, d)) * far
    diagonal = np.einsum("qii->qi", covariance)
    return Conditional(
        np.ones((n, 1)),
        means[:, None],
        diagonal[:, None],
        covariance[:, None],
        np.zeros(n, dtype=np.intp),
        np.array([d]),
    )


def precision_of(functions, i):
    P = functions.precisions[0, i].astype(LONG)
    return np.diag(P) if functions.diagonal else P


def exact_score(functions, i, x):
    x = x.astype(LONG)
    if isinstance(functions, Linear):
        return x @ functions.slopes[i].astype(LONG) + functions.offsets[i]
    apart = x - functions.means[0, i]
    square = np.einsum("ni,ij,nj->n", apart, precision_of(functions, i), apart)
    return functions.offsets[0, i] - square / 2


def exact_difference(functions, x, c, h):
    """V and half the gradient of f_c - f_h about points, in long double."""
    n, d = x.shape
    V, g = np.zeros((n, d, d), dtype=LONG), np.zeros((n, d), dtype=LONG)
    for sign, i in ((-1, c), (1, h)):
        if isinstance(functions, Linear):
            g -= sign * functions.slopes[i].astype(LONG) / 2
            continue
        P, apart = precision_of(functions, i), x.astype(LONG) - functions.means[0, i]
        V += sign * P / 2
        g += sign * apart @ P / 2
    return V, g


def attack_rule(rng, name, kind):
    """One row, two classes: the least difference over the set is 0 but for rounding, or near it."""
    chosen, d = SETS[name], int(rng.integers(1, 7))
    by_scores = kind == "linear" and chosen.full_covariance
    if by_scores:
        d, functions, centre = 2, Linear(np.eye(2), np.zeros(2)), np.zeros(2)
    else:
        functions, centre = discriminants(rng, kind, 2, d)
    known = known_to(rng, centre, 10.0 ** rng.integers(-8, 1), 1, d)
    case = RuleInput(functions, known, d, by_scores, 1)
    radius = 10.0 ** rng.uniform(-3, 1, 1)
    root = square_roots(known.covariances[:, 0])[0]
    at = (chosen, case.mean, 0, 1, radius, root, known.variances[0, 0])
    least, size = over_set(functions, *at)
    beside = rng.choice([0.0, 1e-17, 1e-16, 1e-15, 1e-13, 1e-8]) * rng.choice([-1, 1])
    shift = float(least[0] + beside * size[0])
    if by_scores:
        known = replace(known, means=known.means + np.array([0.0, shift]))
    else:
        offsets = functions.offsets.copy()
        offsets[..., 1] += shift
        functions = replace(functions, offsets=offsets)
    case = RuleInput(functions, known, d, by_scores, 1)
    best = SetRule(chosen).best_classes(case)
    found = largest_radii(case, chosen, best)
    least, size = over_set(functions, chosen, case.mean, *at[2:])
    clear = best[0] == 0 and least[0] > FAR * size[0]
    reach = np.where(found > 0, found, radius)
    at_found = (chosen, case.mean, best[0], 1 - best[0], reach, *at[5:])
    least, size = over_set(functions, *at_found)
    return Counter(
        decided=int(found[0] > 0),
        clear=int(clear),
        wrong=int(found[0] > 0 and not least[0] >= -1e-17 * size[0]),
        missed=int(clear and found[0] < 0.999 * radius[0]),
    )


def over_set(functions, chosen, x, c, h, radius, root, variance):
    """Minima of f_c - f_h over the rule's set, and the size of the terms."""
    constant = exact_score(functions, c, x) - exact_score(functions, h, x)
    V, g = exact_difference(functions, x, c, h)
    if chosen.full_covariance or chosen.shape == "ball":
        S = (root if chosen.full_covariance else np.diag(np.sqrt(variance))).astype(LONG)
        A, slopes = S.T @ V @ S, g @ S
        a, along = reference.eigen((A + A.transpose(0, 2, 1)) / 2, slopes[:, :, None])
        least = reference.minimum_over_ball(a, along[:, :, 0], radius)
        reach = np.sqrt((S**2).sum()) * radius
    else:
        w = radius[:, None] * np.sqrt(variance)
        least = reference.minimum_over_box(np.einsum("nii->ni", V), g, w)
        reach = np.sqrt((w**2).sum(axis=1))
    curved, sloped = np.sqrt((V**2).sum(axis=(1, 2))), np.sqrt((g**2).sum(axis=1))
    scores = sum(sizes_of_terms(functions, i, x) for i in (c, h))
    return constant + least, curved * reach**2 + 2 * sloped * reach + scores + 1e-300


def sizes_of_terms(functions, i, x):
    offset = np.abs(functions.offsets[..., i]).max()
    if isinstance(functions, Linear):
        return np.abs(x) @ np.abs(functions.slopes[i]) + offset
    return np.abs(exact_score(functions, i, x)) + 2 * offset
