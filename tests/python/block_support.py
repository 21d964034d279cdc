"""Rows for tests: in blocks that are reduced as on a cluster, memory-mapped, and misaligned."""

import pickle

import numpy as np

from eigenfeat.samples import ArrayBlocks, RowBlocks


class FarBlocks(RowBlocks):
    """Reduces as a cluster does: everything is pickled, and results merge in a tree, last first."""

    def __init__(self, *arguments, **options):
        self.inner = ArrayBlocks(*arguments, **options)
        self.passes = 0

    def __iter__(self):
        raise AssertionError("expected fits to call reduce instead of iterating over the blocks")

    @property
    def n_rows(self):
        return self.inner.n_rows

    @property
    def n_features(self):
        return self.inner.n_features

    def take(self, rows):
        return pickle.loads(pickle.dumps(self.inner.take(rows)))

    def reduce(self, function, merge, *arguments):
        self.passes += 1
        sent = pickle.dumps((function, merge, arguments))
        results = []
        for block in self.inner:
            work, _, given = pickle.loads(sent)
            results.append(pickle.dumps(work(block, *given)))
        merge = pickle.loads(sent)[1]
        while len(results) > 1:
            pairs = [results[i : i + 2] for i in range(0, len(results), 2)][::-1]
            merged = [
                pickle.dumps(merge(*map(pickle.loads, reversed(pair))))
                if len(pair) == 2
                else pair[0]
                for pair in pairs
            ]
            results = merged
        return pickle.loads(results[0])


def mapped(path, array):
    """The array as a read-only, memory-mapped file."""
    written = np.memmap(path, dtype=array.dtype, mode="w+", shape=array.shape)
    written[:] = array
    written.flush()
    return np.memmap(path, dtype=array.dtype, mode="r", shape=array.shape)


def misaligned(array):
    """A copy of an array that begins at an odd byte, as `numpy.frombuffer` of a file may."""
    array = np.ascontiguousarray(array)
    room = np.frombuffer(b"\0" + array.tobytes(), np.uint8)
    result = room[1:].view(array.dtype).reshape(array.shape)
    assert not result.flags.aligned
    return result


def objective_gap(one, other):
    """Relative difference of the objectives that two logits have reached."""
    return abs(one.objective_ - other.objective_) / abs(one.objective_)
