"""Forty damaged files for a reader; `fuzz_readers.py` makes as many as one likes.

`EIGENFEAT_FUZZ=1000000` makes so many files in place of 320; `.ci/long` reads them for a minute.
"""

from __future__ import annotations

import os

import pytest
from fuzz_readers import READERS, fuzz

# Other readers meet damage in tests of their own: of models, of moments, of arrays and of columns.
OFTEN = ("csv",)
CASES = int(os.environ.get("EIGENFEAT_FUZZ", 320)) // len(READERS)
SEED = int(os.environ.get("EIGENFEAT_FUZZ_SEED", 0))


@pytest.mark.skipif(not os.path.exists("/proc/self/status"), reason="it reads sizes from /proc")
@pytest.mark.parametrize(
    "reader",
    [one if one in OFTEN else pytest.param(one, marks=pytest.mark.long) for one in READERS],
)
def test_damaged_files_neither_crash_nor_hang_nor_fill_memory(reader):
    if reader in ("csv", "parquet", "arrow"):
        pytest.importorskip("pyarrow", reason="pyarrow is not installed")
    kinds, bad = fuzz(reader, CASES, SEED)
    assert bad == []
    assert sum(kinds.values()) == CASES
    assert kinds["read"] < CASES
