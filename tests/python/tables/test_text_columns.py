"""Columns of text that a damaged file may have: refused wherever Arrow's own check refuses them."""

from __future__ import annotations

import numpy as np
import pytest
from table_files import arrow_modules

from eigenfeat.tables import damage


@pytest.mark.parametrize("form", ["string", "large_string"])
def test_a_column_of_text_is_sound_where_arrow_says_so(form):
    """But for its characters, which are looked at when labels are decoded."""
    pa = arrow_modules()
    kind, number = getattr(pa, form)(), np.int32 if form == "string" else np.int64
    rng = np.random.default_rng(0)
    found = {True: 0, False: 0}
    for _ in range(3000):
        n, first = int(rng.integers(0, 12)), int(rng.integers(0, 4))
        places = np.sort(rng.integers(0, 9, n + first + 1)).astype(number)
        for _ in range(rng.integers(0, 2)):
            places[rng.integers(0, len(places))] = rng.choice([-1, 0, 3, 8, 9, 2**30, -(2**31)])
        bits = rng.integers(0, 2, 16).astype(np.uint8)
        nulls = int((1 - bits[first : first + n]).sum()) + int(rng.choice([0, 0, 0, 1, -1]))
        there = None if rng.random() < 0.5 else pa.py_buffer(np.packbits(bits, bitorder="little"))
        raw = places.tobytes()[: len(places) * number().itemsize - int(rng.choice([0, 0, 0, 1, 8]))]
        parts = [there, pa.py_buffer(raw), pa.py_buffer(b"abcdefgh")]
        count = -1 if there is None else max(nulls, 0)
        try:
            column = pa.Array.from_buffers(kind, n, parts, count, first)
        except pa.ArrowInvalid:
            continue
        batch = pa.record_batch([column], ["text"])
        fit = True
        try:
            batch.validate(full=True)
        except pa.ArrowInvalid:
            fit = False
        found[fit] += 1
        if fit:
            assert damage.sound(batch) is batch
        else:
            with pytest.raises(pa.ArrowInvalid):
                damage.sound(batch)
    assert min(found.values()) > 500
