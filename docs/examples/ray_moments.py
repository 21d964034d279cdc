"""Class moments on Ray: eigenfeat.samples.reductions, reduced by Ray's tasks.

pip install eigenfeat ray && python ray_moments.py
"""

from __future__ import annotations

import numpy as np
import ray

from eigenfeat import GEM, ClassMoments
from eigenfeat.samples.blocks import Block
from eigenfeat.samples.reductions import merge_moments, moments


def block(seed: int, n: int = 2000, d: int = 12) -> Block:
    """Rows of three classes; stands for a read of one file."""
    random = np.random.default_rng(seed)
    y = random.integers(0, 3, n)
    return Block(random.standard_normal((n, d)) * (1 + (np.arange(d) + y[:, None]) % 3), y)


@ray.remote
def moments_of(seed: int) -> ClassMoments:
    return moments(block(seed), n_threads=1)


@ray.remote
def merged(*parts: ClassMoments) -> ClassMoments:
    """What Ray hands a task is a copy, which `merge_moments` may change."""
    total, *others = parts
    for part in others:
        total = merge_moments(total, part)
    return total


def reduced(seeds: list[int], fan_in: int = 4) -> ClassMoments:
    """A tree whose shape depends on the blocks alone: every run gives the same bits."""
    parts = [moments_of.remote(seed) for seed in seeds]
    while len(parts) > 1:
        parts = [merged.remote(*parts[i : i + fan_in]) for i in range(0, len(parts), fan_in)]
    return ray.get(parts[0])


def main() -> None:
    ray.init(num_cpus=2, include_dashboard=False, log_to_driver=False)
    try:
        found = reduced(list(range(10)))
    finally:
        ray.shutdown()
    print(found)
    print(GEM(n_directions=2).fit_moments(found).eigenvalues_.round(2))


if __name__ == "__main__":
    main()
