"""Files of earlier releases load and predict what they predicted; see `golden_files.py`."""

from __future__ import annotations

import zipfile

import numpy as np
import pytest
from golden_files import CASES, GOLDEN, expected_of, read, slug
from saved_files import header_of, members, refusal, rewrite

import eigenfeat as ef

FILES = sorted((*GOLDEN.glob("*/*.npz"), *GOLDEN.glob("*/*.efm")))


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.InconsistentVersionWarning")
@pytest.mark.parametrize("path", FILES, ids=lambda path: f"{path.parent.name}/{path.name}")
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


@pytest.mark.parametrize("suffix", [".npz", ".efm"])
def test_every_kind_of_the_first_release_has_a_file(suffix):
    """In version 1 of the format all kinds of its time."""
    first = {path for path in FILES if path.parent.name == "0.1.0" and path.suffix == suffix}
    missing = {slug(name) for name in CASES if suffix == ".efm"} - {path.stem for path in first}
    assert not missing or ef.__version__ != "0.1.0", f"run golden_files.py 0.1.0: {missing}"
    assert len(first) >= 45
    assert sum(p.stat().st_size + expected_of(p).stat().st_size for p in first) < 6e5


def test_files_of_version_1_are_there():
    old = {path.stem for path in FILES if path.suffix == ".npz"}
    assert {"first-moments", "first-gem-classifier", "first-gem-ensemble"} <= old
    assert {header_of(path)["version"] for path in FILES if path.suffix == ".npz"} == {1}
    assert {header_of(path)["version"] for path in FILES if path.suffix == ".efm"} == {2}


def test_old_moments_are_the_same_moments_today(tmp_path):
    path = GOLDEN / "0.1.0" / "first-moments.npz"
    ef.save(ef.load(path), tmp_path / "again")
    old, new = members(path), members(tmp_path / "again")
    assert new.keys() == old.keys()
    assert all(new[name] == old[name] for name in old.keys() - {"header.json"})
    assert header_of(tmp_path / "again")["meta"] == header_of(path)["meta"]


@pytest.mark.parametrize("name", ["first-gem-classifier-deep", "gem", "first-moments", "ects"])
def test_damaged_contents_of_version_1_are_refused(tmp_path, name):
    path = tmp_path / "model"
    whole = (GOLDEN / "0.1.0" / f"{name}.npz").read_bytes()
    with zipfile.ZipFile(GOLDEN / "0.1.0" / f"{name}.npz") as archive:
        inside = [(info.header_offset, info.file_size) for info in archive.infolist()]
    rng = np.random.default_rng(3)
    for start, size in inside:
        for at in start + 64 + rng.integers(64, max(size - 64, 65), 4):
            data = bytearray(whole)
            data[at] ^= 1 << int(rng.integers(0, 8))
            path.write_bytes(data)
            assert refusal(path) is not None
    for other in (whole[:-1], whole[: len(whole) // 2], whole + b"x", whole + bytes(64)):
        path.write_bytes(other)
        assert "not an eigenfeat file" in refusal(path)


def test_a_file_of_today_without_its_digest_is_not_taken_for_an_old_one(tmp_path):
    path = tmp_path / "model"
    whole = (GOLDEN / "0.1.0" / "gem.efm").read_bytes()
    path.write_bytes(whole[:-66] + bytes(2))
    assert "its end is not that of its version" in refusal(path)
    rewrite(path, members(GOLDEN / "0.1.0" / "gem.npz"))
    assert "its end is not that of its version" in refusal(path)
