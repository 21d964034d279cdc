"""Dask arrays of seeded samples, which are computed chunk by chunk."""

import numpy as np


def seeded_rows(block_info=None, d=20, k=4):
    """Samples of one chunk, of k classes with covariances of their own; equal at every call."""
    (start, stop), _ = block_info[None]["array-location"]
    random = np.random.default_rng(start)
    y = np.arange(start, stop) % k
    spread = 1 + (np.arange(d) + np.arange(k)[:, None]) % k
    rows = random.random((stop - start, d), dtype=np.float32)
    rows *= spread.astype(np.float32)[y]
    rows += 0.1 * y[:, None].astype(np.float32)
    return rows


def lazy_problem(n, chunk, d=20, k=4):
    """Dask array of samples, and their labels."""
    import dask.array as da

    meta = np.empty((0, d), np.float32)
    size = {"chunks": ((chunk,) * (n // chunk), (d,)), "dtype": np.float32}
    X = da.map_blocks(seeded_rows, d=d, k=k, meta=meta, **size)
    return X, da.arange(n, chunks=chunk) % k
