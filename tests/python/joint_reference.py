"""Steps of jointly trained layers by central differences of the objective: slow and obvious."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise

import numpy as np


@dataclass
class Network:
    """Arrays as `layer_training.hpp` names them, and the rates of their steps."""

    directions: list
    offsets: list
    powers: list
    rates: list
    weights: np.ndarray
    intercept: np.ndarray
    centre: np.ndarray
    weight_rates: np.ndarray
    intercept_rate: float
    includes_input: bool

    @classmethod
    def drawn(cls, depth, powers, includes_input, *, seed, d=5, counts=(4, 3, 2), k=3):
        rng = np.random.default_rng(seed)
        counts = counts[:depth]
        widths = [d] + [2 * f for f in counts[:-1]]
        p = 2 * len(powers) * counts[-1] + (widths[-1] if includes_input else 0)
        return cls(
            [rng.standard_normal((w, f)) / np.sqrt(w) for w, f in zip(widths, counts, strict=True)],
            [rng.standard_normal(f) for f in counts],
            [[1]] * (depth - 1) + [powers],
            [(0.5 + 0.1 * level, 0.7) for level in range(depth)],
            rng.standard_normal((p, k)),
            rng.standard_normal(k),
            rng.random(p),
            rng.random(p) + 0.5,
            0.9,
            includes_input,
        )

    def parts(self):
        """All arrays: directions and offset of each layer, weights, intercept."""
        layers = zip(self.directions, self.offsets, strict=True)
        return [part for pair in layers for part in pair] + [self.weights, self.intercept]

    def part_rates(self):
        """Rates that go with them."""
        of_layers = [rate for pair in self.rates for rate in pair]
        return [*of_layers, self.weight_rates[:, None], self.intercept_rate]


def losses(parts, network, rows, labels):
    """Negative log probability of each row."""
    h = before = rows
    for (directions, offset), powers in zip(pairwise_parts(parts), network.powers, strict=True):
        before, p = h, h @ directions + offset
        h = np.hstack(
            [(np.sqrt(1 + np.maximum(0, s * p)) - 1) ** a for s in (1, -1) for a in powers]
        )
    features = np.hstack([before, h]) if network.includes_input else h
    # The weights are moved with the intercept of centred features, c = b + W^T m, held.
    z = (features - network.centre) @ parts[-2] + parts[-1]
    return np.log(np.exp(z).sum(axis=1)) - z[np.arange(len(z)), labels]


def pairwise_parts(parts):
    """Directions and offset of each layer."""
    return [pair for i, pair in enumerate(pairwise(parts[:-2])) if i % 2 == 0]


def differences(function, at, size=1e-6):
    """Central differences of a number by each entry."""
    found = np.empty_like(at)
    for place in np.ndindex(at.shape):
        ends = []
        for sign in (1, -1):
            moved = at.copy()
            moved[place] += sign * size
            ends.append(function(moved))
        found[place] = (ends[0] - ends[1]) / (2 * size)
    return found


def reference_steps(network, rows, labels, weights, shift, rates):
    """Arrays after the steps, and both losses before each of them."""
    parts = [part.copy() for part in network.parts()]
    parts[-1] = parts[-1] + network.centre @ parts[-2]
    means = [np.zeros_like(part) for part in parts]
    squares = [np.zeros_like(part) for part in parts]
    share, history = weights / len(weights), []
    for t, rate in enumerate(rates, start=1):
        sets = [rows]
        if shift:
            slope = differences(lambda x: losses(parts, network, x, labels).sum(), rows)
            sets.append(rows + shift * slope / np.linalg.norm(slope, axis=1, keepdims=True))

        def mean_loss(now, sets=sets):
            return [share @ losses(now, network, x, labels) for x in sets]

        history.append((*mean_loss(parts), 0.0)[:2])
        slopes = [
            differences(lambda v, i=i: sum(mean_loss([*parts[:i], v, *parts[i + 1 :]])), parts[i])
            for i in range(len(parts))
        ]
        for i, own in enumerate(network.part_rates()):
            means[i] = 0.9 * means[i] + 0.1 * slopes[i]
            squares[i] = 0.999 * squares[i] + 0.001 * slopes[i] ** 2
            step = means[i] / (1 - 0.9**t) / (np.sqrt(squares[i] / (1 - 0.999**t)) + 1e-12)
            parts[i] = parts[i] - rate * own * step
    parts[-1] = parts[-1] - network.centre @ parts[-2]
    return parts, history
