"""What a fit on many machines should take: flops, bytes and messages of each step.

    n rows, d columns, k classes, F directions, p features of their expansion, W workers

A rate is what one core does, measured; a worker's cores share its part of the rows; results
merge in a tree of ``ceil(log2 W)`` levels, each one message and one merge.
"""

from __future__ import annotations

import math
from dataclasses import dataclass


@dataclass(frozen=True)
class Rates:
    """Measured on one core, in units a second."""

    moments: float  # flops of n d (d + 1)
    passes: float  # flops of 2 n d F + 4 n p k
    gram: float  # flops of n p (p + 1)
    merge: float  # bytes of a message merged into another
    pencils: float  # flops of (d^3) for each pair


@dataclass(frozen=True)
class Cluster:
    """Workers, what each has, and the net between them."""

    workers: int
    cores: int
    network: float = 1.25e9  # bytes a second, 10 Gbit/s
    latency: float = 1e-3  # seconds a message, with the scheduler's part
    disk: float = 2e9  # bytes a second of a worker

    @property
    def levels(self) -> int:
        """Of the tree in which results merge."""
        return math.ceil(math.log2(self.workers)) if self.workers > 1 else 0


@dataclass(frozen=True)
class Problem:
    """The sizes of a fit."""

    n: float
    d: int
    k: int
    directions: int = 0
    features: int = 0
    passes: int = 12  # the logit's evaluations
    itemsize: int = 4

    @property
    def moments_bytes(self) -> float:
        """One accumulator as a message: packed scatters, means in two parts, weights."""
        return self.k * (self.d * (self.d + 1) / 2 + 2 * self.d + 1) * 8

    @property
    def weights_bytes(self) -> float:
        """The logit's coefficients, or their gradient, as a message."""
        return (self.features + 1) * self.k * 8


@dataclass(frozen=True)
class Cost:
    """Seconds of one step."""

    step: str
    compute: float
    read: float
    network: float

    @property
    def total(self) -> float:
        """Reading goes on beside computing; messages come after."""
        return max(self.compute, self.read) + self.network


def moments(problem: Problem, cluster: Cluster, rates: Rates) -> Cost:
    """A pass over the rows, then a tree of merges of k d^2 / 2 numbers."""
    cores = cluster.workers * cluster.cores
    flops = problem.n * problem.d * (problem.d + 1)
    return Cost(
        "moments",
        flops / (cores * rates.moments),
        _read(problem, cluster),
        _tree(problem.moments_bytes, cluster, rates),
    )


def pencils(problem: Problem, cluster: Cluster, rates: Rates) -> Cost:
    """Pairs of classes by denominator: k tasks, each with all k matrices."""
    pairs = problem.k * (problem.k - 1)
    tasks = min(problem.k, cluster.workers)
    per_task = math.ceil(problem.k / tasks) * pairs / problem.k
    flops = per_task * float(problem.d) ** 3
    sent = math.ceil(problem.k / tasks) * problem.k * problem.d**2 * 8
    return Cost(
        "class pairs",
        flops / (cluster.cores * rates.pencils),
        0.0,
        0.0 if cluster.workers == 1 else sent / cluster.network + cluster.latency,
    )


def logit(problem: Problem, cluster: Cluster, rates: Rates) -> Cost:
    """Passes over the rows; weights go out and gradients come back, p k numbers each."""
    cores = cluster.workers * cluster.cores
    flops = problem.n * (2.0 * problem.d * problem.directions + 4.0 * problem.features * problem.k)
    once = _tree(problem.weights_bytes, cluster, rates) * 2
    return Cost(
        f"logit, {problem.passes} passes",
        problem.passes * flops / (cores * rates.passes),
        problem.passes * _read(problem, cluster),
        problem.passes * once,
    )


def metric(problem: Problem, rates: Rates, cores: int, rows: float) -> Cost:
    """The logit's Gram matrix from a sample of rows that is sent to one place, and its factor."""
    p = problem.features
    flops = min(problem.n, rows) * p * (p + 1.0) + p**3 / 3
    return Cost("logit's metric", flops / (cores * rates.gram), 0.0, 0.0)


def _read(problem: Problem, cluster: Cluster) -> float:
    return problem.n * problem.d * problem.itemsize / (cluster.workers * cluster.disk)


def _tree(message: float, cluster: Cluster, rates: Rates) -> float:
    each = message / cluster.network + message / rates.merge + cluster.latency
    return cluster.levels * each
