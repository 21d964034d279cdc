"""The tree of merges: the same whatever order results come in, and wherever they come from."""

from __future__ import annotations

from types import SimpleNamespace

import numpy as np
import pytest

from eigenfeat.distributed._persisted import MOST_BYTES, Tree, _Placement, _Worker, of_bundle


def bracketed(a, b):
    """Tells how results were merged."""
    return f"({a}{b})"


def plain(n, fan_in):
    """The same by loops over whole levels."""
    results = [chr(97 + i) for i in range(n)]
    while len(results) > 1:
        merged = []
        for i in range(0, len(results), fan_in):
            total, *rest = results[i : i + fan_in]
            for result in rest:
                total = bracketed(total, result)
            merged.append(total)
        results = merged
    return results[0]


@pytest.mark.parametrize(("n", "fan_in"), [(1, 2), (5, 30), (16, 4), (26, 2), (26, 3)])
def test_any_order_gives_the_same_brackets(n, fan_in):
    expected = plain(n, fan_in)
    for seed in range(5):
        tree = Tree(n, fan_in, bracketed)
        for i in np.random.RandomState(seed).permutation(n).tolist():
            tree.put((0, i), chr(97 + i))
        assert tree.root == expected


def test_neighbours_are_merged_where_they_are():
    whole = of_bundle(str, bracketed, (16, 4), list(range(4, 8)), [["x"]] * 4)
    assert list(whole) == [(1, 1)]


def test_large_results_stay_where_they_are():
    numbers, calls = [0, 1, 2], []

    def leaf(n):
        calls.append(n)
        return np.zeros(n)

    size = MOST_BYTES // 8 // 4
    assert of_bundle(leaf, np.add, (4, 2), numbers, [[size + 1]] * 3) is None
    assert len(calls) == 1  # the rest is not computed in vain
    assert of_bundle(leaf, np.add, (4, 2), numbers, [[size // 2]] * 3) is not None


class Scheduler:
    """What a client says of rows that were persisted a moment ago: it does not know all of them."""

    def __init__(self, sizes):
        self.sizes = sizes

    def who_has(self, futures):
        return {future.key: ("a",) if future.key in self.sizes else () for future in futures}

    def nbytes(self, keys, summary):
        return {key: self.sizes[key] for key in keys}


@pytest.mark.parametrize("known", [[], ["x"], ["x", "y"]])
def test_samples_that_the_scheduler_does_not_know_yet_have_no_worker(known):
    rows = [SimpleNamespace(key=key) for key in "xy"]
    workers = {"a": _Worker(n_threads=1, memory=2.0**30)}
    found = _Placement.of(Scheduler(dict.fromkeys(known, 8)), rows, workers)
    assert found == (_Placement(workers, {"a": [0, 1]}, [8.0, 8.0]) if len(known) == 2 else None)
