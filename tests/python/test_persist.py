"""Files: what was saved comes back bit for bit, and nothing else is ever taken for it."""

from __future__ import annotations

import io
import json
import os
import zipfile

import numpy as np
import pytest

from eigenfeat import ClassMoments, FileFormatError, persist


@pytest.fixture
def moments(rng):
    X = rng.standard_normal((40, 3)) + 5
    return ClassMoments().update(X, np.array(["a", "b", "long one", "d"])[np.arange(40) % 4])


def members(path):
    with zipfile.ZipFile(path) as archive:
        return {info.filename: archive.read(info) for info in archive.infolist()}


def rewrite(path, contents, compression=zipfile.ZIP_STORED):
    with zipfile.ZipFile(path, "w", compression) as archive:
        for name, data in contents.items():
            archive.writestr(name, data)


def change_header(path, **changes):
    contents = members(path)
    header = json.loads(contents[persist.HEADER]) | changes
    rewrite(path, contents | {persist.HEADER: json.dumps(header)})


@pytest.mark.parametrize(
    "labels",
    [
        [0, 1, 2],
        [True, False, True],
        [1.5, -2.25, 1e300],
        ["a", "ü", "a\nb"],
        [b"x", b"\xff", b"x"],
        np.array(["x", "y", "x"], dtype=object),
        np.array([2**63, 1, 2], dtype=np.uint64),
    ],
)
def test_round_trip_is_exact(tmp_path, rng, labels):
    path = tmp_path / "moments.npz"
    moments = ClassMoments(dtype="float32").update(rng.standard_normal((3, 4)), labels)
    moments.save(path)
    loaded = ClassMoments.load(str(path))
    assert loaded == moments
    assert loaded.dtype == np.float32
    assert loaded.classes_.tolist() == moments.classes_.tolist()
    assert loaded.classes_.dtype == moments.classes_.dtype
    again = rng.standard_normal((3, 4))
    assert loaded.update(again, labels) == moments.update(again, labels)


def test_empty_and_fixed_accumulators(tmp_path):
    path = tmp_path / "m"
    ClassMoments().save(path)
    assert ClassMoments.load(path) == ClassMoments()
    ClassMoments(classes=["a", "b"]).update([[1.0]], ["a"]).save(path)
    loaded = ClassMoments.load(path)
    assert loaded.weight("b") == 0
    with pytest.raises(ValueError, match="got 'c'"):
        loaded.update([[1.0]], ["c"])


def test_the_same_moments_make_the_same_file(tmp_path, moments):
    moments.save(tmp_path / "one")
    moments.save(tmp_path / "two")
    assert (tmp_path / "one").read_bytes() == (tmp_path / "two").read_bytes()


def test_the_file_is_a_plain_npz(tmp_path, moments):
    moments.save(tmp_path / "m.npz")
    with np.load(tmp_path / "m.npz", allow_pickle=False) as arrays:
        assert arrays["weights"].tolist() == [10, 10, 10, 10]
        assert arrays["scatter_0"].shape == (6,)


def test_every_truncation_is_refused(tmp_path, moments):
    path = tmp_path / "m.npz"
    moments.save(path)
    whole = path.read_bytes()
    for length in [*range(0, len(whole), 37), len(whole) - 1]:
        path.write_bytes(whole[:length])
        with pytest.raises(FileFormatError, match=r"m\.npz: not an eigenfeat file"):
            ClassMoments.load(path)


def error_of(path):
    """The text of the error that loading raises, or None, and the moments."""
    try:
        return None, ClassMoments.load(path)
    except FileFormatError as error:
        return str(error), None


def test_every_flipped_byte_is_refused_or_harmless(tmp_path, rng):
    path = tmp_path / "m.npz"
    moments = ClassMoments().update(rng.standard_normal((5, 2)), [0, 0, 1, 1, 1])
    moments.save(path)
    whole = path.read_bytes()
    refused = 0
    for position in range(0, len(whole), 5):
        damaged = bytearray(whole)
        damaged[position] ^= 0x15
        path.write_bytes(bytes(damaged))
        error, loaded = error_of(path)
        refused += error is not None
        if error is None:
            assert loaded == moments
        else:
            assert error.startswith(f"{path}: ")
            assert "\n" not in error
    assert refused > len(whole) / 5 / 2


def test_foreign_files_are_refused(tmp_path, rng):
    path = tmp_path / "foreign"
    savez = io.BytesIO()
    np.savez(savez, a=np.zeros(3))
    archive = io.BytesIO()
    rewrite(archive, {"header.json": '{"format": "other"}'})
    not_json = io.BytesIO()
    rewrite(not_json, {"header.json": "no json"})
    for content in (
        b"",
        b"some text\n" * 99,
        savez.getvalue(),
        archive.getvalue(),
        not_json.getvalue(),
    ):
        path.write_bytes(content)
        with pytest.raises(FileFormatError, match="foreign: "):
            ClassMoments.load(path)
    with pytest.raises(FileNotFoundError):
        ClassMoments.load(tmp_path / "missing")
    with pytest.raises(IsADirectoryError):
        ClassMoments.load(tmp_path)


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"version": 2}, "newer than 1"),
        ({"version": "x"}, "its version is 'x'"),
        ({"kind": "model"}, "it holds 'model', not 'class moments'"),
        ({"meta": []}, "incomplete"),
        ({"arrays": {}}, "its members are not those"),
        ({"arrays": {"../up": {}}}, "does not know"),
        ({"meta": {}}, "not an eigenfeat file"),
    ],
)
def test_headers_are_checked(tmp_path, moments, changes, message):
    moments.save(tmp_path / "m")
    change_header(tmp_path / "m", **changes)
    with pytest.raises(FileFormatError, match=message):
        ClassMoments.load(tmp_path / "m")


def test_arrays_are_checked(tmp_path, moments):
    path = tmp_path / "m"
    moments.save(path)
    contents = members(path)
    header = json.loads(contents[persist.HEADER])
    longer = io.BytesIO()
    np.save(longer, np.zeros(7))
    other = io.BytesIO()
    np.save(other, np.zeros(6))
    objects = io.BytesIO()
    np.save(objects, np.array([None] * 6, dtype=object), allow_pickle=True)
    for data in (longer.getvalue(), other.getvalue(), objects.getvalue(), b"x", b""):
        rewrite(path, contents | {"scatter_1.npy": data})
        with pytest.raises(FileFormatError, match="m: "):
            ClassMoments.load(path)
    rewrite(path, contents | {"extra.npy": b"x"})
    with pytest.raises(FileFormatError, match="members"):
        ClassMoments.load(path)
    rewrite(path, contents, zipfile.ZIP_DEFLATED)
    with pytest.raises(FileFormatError, match="not stored uncompressed"):
        ClassMoments.load(path)
    header["arrays"]["scatter_1"]["shape"] = [10**15]
    rewrite(path, contents | {persist.HEADER: json.dumps(header)})
    with pytest.raises(FileFormatError, match="scatter_1"):
        ClassMoments.load(path)


def test_not_finite_content_is_refused(tmp_path, moments):
    path = tmp_path / "m"
    meta, arrays = moments._meta(), dict(moments._arrays())
    for name, value in (("weights", -1.0), ("weights", np.nan), ("scatter_0", np.inf)):
        bad = {k: v.copy() for k, v in arrays.items()}
        bad[name][0] = value
        persist.write(path, "class moments", meta, bad.items())
        with pytest.raises(FileFormatError, match="expected finite"):
            ClassMoments.load(path)


def test_a_declared_size_beyond_memory_is_refused(tmp_path, moments):
    path = tmp_path / "m"
    moments.save(path)
    meta = moments._meta() | {"n_features": 10**9}
    change_header(path, meta=meta)
    with pytest.raises((FileFormatError, MemoryError)):
        ClassMoments.load(path)


def test_a_failed_save_leaves_the_old_file_and_no_scraps(tmp_path, moments, monkeypatch):
    path = tmp_path / "m"
    moments.save(path)
    before = path.read_bytes()

    def fail(*_):
        raise OSError("disk full")

    monkeypatch.setattr(os, "fsync", fail)
    with pytest.raises(OSError, match="disk full"):
        moments.update([[1.0, 2.0, 3.0]], ["a"]).save(path)
    assert path.read_bytes() == before
    assert os.listdir(tmp_path) == ["m"]


def test_labels_that_files_cannot_hold_are_named(tmp_path):
    labels = np.empty(2, dtype=object)
    labels[:] = [("a", 1), ("b", 2)]
    moments = ClassMoments().update([[1.0], [2.0]], labels)
    with pytest.raises(ValueError, match="classes: expected numbers or strings to save"):
        moments.save(tmp_path / "m")
    assert os.listdir(tmp_path) == []
