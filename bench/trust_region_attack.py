"""Minima and certified signs of quadratics over balls against long double, family by family.

    python bench/trust_region_attack.py --problems 100000 --seed 0
    python bench/trust_region_attack.py --what dominance --problems 100000
    python bench/trust_region_attack.py --what rules --problems 10000
    python bench/trust_region_attack.py --validate 200      # against mpmath, which it needs

Every problem is solved, its sign is certified with constants on either side of the minimum, from
far off to rounding, and it is compared with eigenvalues by Jacobi and the secular equation by
bisection in long double (tests/python/region_reference.py). A failure is a sign that is wrong, a
bound of the minimum that does not hold, a value that is farther from the minimum than its `gap`, or
a result that is called converged with a large residual; any ends with status 1. Results that are
called not converged, and signs left open far from 0, are counted. The dominance process and the
rules on top of it are compared with classes that are next to tied
(tests/python/dominance_reference.py).
"""

from __future__ import annotations

import argparse
import sys
import time
import warnings
from collections import Counter
from pathlib import Path

import numpy as np

sys.path.insert(0, str(Path(__file__).parents[1] / "tests" / "python"))
import dominance_reference as decisions
import region_reference as reference

from eigenfeat.regions import certified_sign, trust_region_minimum

MARGINS = np.array([0.0, 1e-16, 1e-15, 1e-13, 1e-10, 1e-4, 1.0])
LEFT_OPEN = 1e-9  # a sign this far from 0, in sizes of the problem, should not be open


def solve(problem):
    single = problem.way == "diagonal"
    A = np.einsum("nii->ni", problem.A) if single else problem.A
    A = A[0] if problem.way == "shared" else A
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        found = trust_region_minimum(A, problem.g, problem.radius, diagonal=single)
    return A, found, any("no convergence" in str(w.message) for w in caught)


def attack(rng, problem, counts):
    """Counts of what went wrong, and what was left open."""
    n, d = problem.g.shape
    A, found, warned = solve(problem)
    size = problem.size
    right = reference.minima(problem)
    doubt = 4e-18 * d * size  # the reference's own rounding
    bad = {}
    bad["value beyond gap"] = ~(np.abs(found.value - right) <= found.gap + doubt)
    bad["gap is large"] = ~(found.gap <= 1e-12 * size) & (not warned)
    at_x = reference.values_at(problem, found.x)
    bad["x beyond gap"] = ~(np.abs(at_x - right) <= found.gap + doubt)
    length = np.sqrt((found.x.astype(reference.LONG) ** 2).sum(axis=1))
    bad["x outside"] = ~(length <= problem.radius * (1 + 1e-13 * np.sqrt(d)))
    limit = (64 + 2 * d) * reference.EPS
    bad["silent residual"] = ~(found.residual <= limit) & (not warned)
    counts["not converged (calls)"] += warned
    margin = rng.choice(MARGINS, n) * rng.choice([-1.0, 1.0], n)
    scale = np.where(rng.random(n) < 0.5, size, np.abs(right).astype(float))
    constant = (margin * scale - right).astype(float)
    sign = certified_sign(
        A, problem.g, constant, problem.radius, diagonal=problem.way == "diagonal"
    )
    minimum = constant + right
    doubt = doubt + 1e-19 * np.abs(constant)
    bad["wrong sign"] = ((sign.sign > 0) & (minimum < -doubt)) | (
        (sign.sign < 0) & (minimum >= doubt)
    )
    bad["wrong bound"] = ~((sign.lower <= minimum + doubt) & (minimum - doubt <= sign.upper))
    counts["signs open"] += int((sign.sign == 0).sum())
    counts["open far from 0"] += int(
        ((sign.sign == 0) & (np.abs(minimum) > LEFT_OPEN * size)).sum()
    )
    counts["problems"] += n
    return bad


def run(problems, seed, smallest, largest, families):
    rng = np.random.default_rng(seed)
    counts, done, start = Counter(), 0, time.perf_counter()
    while done < problems:
        family = str(rng.choice(families))
        way = str(rng.choice(["each", "each", "shared", "diagonal"]))
        d = int(rng.choice([1, 2, 3, 4, 6, 9, 17, 33, 60], p=DIMENSIONS))
        d = min(max(d + int(rng.integers(0, 2)), smallest), largest)
        n = min(max(6, 20000 // d**2), 400)
        state = rng.bit_generator.state["state"]["state"]
        problem = reference.draw(rng, family, n, d, way)
        for name, wrong in attack(rng, problem, counts).items():
            counts[name] += int(wrong.sum())
            if wrong.any():
                item = int(np.flatnonzero(wrong)[0])
                print(f"{name}: {family}, {way}, d {d}, item {item} of {n}, state {state}")
        done += n
    counts["seconds"] = round(time.perf_counter() - start)
    return counts


DIMENSIONS = np.array([4, 20, 20, 15, 12, 6, 1.5, 0.3, 0.1])
DIMENSIONS = DIMENSIONS / DIMENSIONS.sum()
FAILURES = (
    "wrong sign",
    "wrong bound",
    "value beyond gap",
    "x beyond gap",
    "gap is large",
    "x outside",
    "silent residual",
)


def run_decisions(what, problems, seed):
    rng = np.random.default_rng(seed)
    counts = Counter()
    while counts["problems"] < problems:
        if what == "dominance":
            shape = str(rng.choice(["ball", "box"]))
            n, found = 400, decisions.attack_dominance(rng, 400, shape)
        else:
            name, kind = rng.choice(list(decisions.SETS)), rng.choice(decisions.KINDS)
            n, found = 1, decisions.attack_rule(rng, str(name), str(kind))
        if found["wrong"]:
            print("wrong:", what, found)
        counts += found
        counts["problems"] += n
    return counts


def validate(count, seed):
    """The largest difference between long double and 50 digits, in sizes of the problem."""
    import mpmath as mp

    mp.mp.dps = 50
    rng = np.random.default_rng(seed)
    worst = 0.0
    for _ in range(-(-count // 8)):
        d, family = int(rng.integers(1, 8)), str(rng.choice(list(reference.FAMILIES)))
        problem = reference.draw(rng, family, 8, d, "each")
        for right, A, g, radius, size in zip(
            reference.minima(problem),
            problem.A,
            problem.g,
            problem.radius,
            problem.size,
            strict=True,
        ):
            exact = _by_mpmath(mp, A, g, radius)
            high = float(right)
            apart = abs(exact - mp.mpf(high) - mp.mpf(float(right - high)))
            worst = max(worst, float(apart) / size if size else float(apart))
    return worst


def _by_mpmath(mp, A, g, radius):
    values, Q = mp.eigsy(mp.matrix(A.tolist()))
    slopes, radius = Q.T * mp.matrix(g.tolist()), mp.mpf(float(radius))
    low = min(values)

    def dual(shift):
        fall, square = (shift - low) * radius**2, mp.mpf(0)
        for a, slope in zip(values, slopes, strict=True):
            b = a - low + shift
            if slope != 0 and b == 0:
                return None, mp.inf
            if slope != 0:
                fall, square = fall + slope**2 / b, square + (slope / b) ** 2
        return -fall, square

    below = max(low, mp.mpf(0))
    value, square = dual(below)
    if square <= radius**2:
        return value
    above = below + sum(abs(slope) for slope in slopes) / radius
    for _ in range(170):
        middle = (below + above) / 2
        if dual(middle)[1] > radius**2:
            below = middle
        else:
            above = middle
    return dual(above)[0]


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--what", choices=["minima", "dominance", "rules"], default="minima")
    parser.add_argument("--problems", type=int, default=20_000)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--smallest", type=int, default=1, help="smallest d")
    parser.add_argument("--largest", type=int, default=60, help="largest d")
    parser.add_argument("--family", choices=list(reference.FAMILIES))
    parser.add_argument("--validate", type=int, help="problems to check the reference with")
    options = parser.parse_args()
    if not reference.HAS_LONG_DOUBLE:
        print("long double has no more digits than double here")
        return 2
    if options.validate:
        print(f"reference: {validate(options.validate, options.seed):.1e} of the size")
        return 0
    if options.what != "minima":
        counts = run_decisions(options.what, options.problems, options.seed)
        print(dict(counts))
        return 1 if counts["wrong"] else 0
    families = [options.family] if options.family else list(reference.FAMILIES)
    counts = run(options.problems, options.seed, options.smallest, options.largest, families)
    for name, count in sorted(counts.items()):
        print(f"{count:10d}  {name}")
    return 1 if any(counts[name] for name in FAILURES) else 0


if __name__ == "__main__":
    sys.exit(main())
