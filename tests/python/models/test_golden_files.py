"""Files of earlier releases load and predict what they predicted; see `golden_files.py`."""

from __future__ import annotations

import numpy as np
import pytest
from golden_files import CASES, GOLDEN, read, slug

import eigenfeat as ef

FILES = sorted(GOLDEN.glob("*/*.npz"))


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.InconsistentVersionWarning")
@pytest.mark.parametrize("path", FILES, ids=lambda path: f"{path.parent.name}/{path.stem}")
def test_a_file_of_an_earlier_release(path):
    model, now, then = read(path)
    assert type(model).__name__ == then["class"]
    assert now.keys() == then["expected"].keys()
    for name, expected in then["expected"].items():
        found, expected = np.asarray(now[name]), np.array(expected)
        if expected.dtype.kind == "f":  # features of rows may be float32
            np.testing.assert_allclose(found, expected, rtol=1e-5, atol=1e-6, err_msg=name)
        else:
            np.testing.assert_array_equal(found, expected, err_msg=name)


def test_every_kind_of_the_first_release_has_a_file():
    first = {path.stem for path in FILES if path.parent.name == "0.1.0"}
    missing = {slug(name) for name in CASES} - first
    assert not missing or ef.__version__ != "0.1.0", f"run golden_files.py 0.1.0: {missing}"
    assert len(first) >= 45
    assert {"first-moments", "first-gem-classifier", "first-gem-ensemble"} <= first
    assert sum(path.stat().st_size for path in GOLDEN.glob("0.1.0/*")) < 6e5


def test_old_moments_are_written_the_same_today(tmp_path):
    path = GOLDEN / "0.1.0" / "first-moments.npz"
    ef.save(ef.load(path), tmp_path / "again")
    assert (tmp_path / "again").read_bytes() == path.read_bytes()
