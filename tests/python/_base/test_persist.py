"""Files: what was saved comes back bit for bit, and nothing else is ever taken for it."""

from __future__ import annotations

import hashlib
import io
import os
import struct
import zipfile

import numpy as np
import pytest
from saved_files import change_header, members, npy, rewrite

from eigenfeat import ClassMoments, FileFormatError
from eigenfeat._base.files import archive as _archive
from eigenfeat._base.files import persist


@pytest.fixture
def moments(rng):
    X = rng.standard_normal((40, 3)) + 5
    return ClassMoments().update(X, np.array(["a", "b", "long one", "d"])[np.arange(40) % 4])


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


def test_foreign_files_are_refused(tmp_path, rng):
    path = tmp_path / "foreign"
    savez, plain = io.BytesIO(), io.BytesIO()
    np.savez(savez, a=np.zeros(3))
    with zipfile.ZipFile(plain, "w") as archive:
        archive.writestr("header.json", '{"format": "eigenfeat"}')
    rewrite(tmp_path / "other", {"header.json": b'{"format": "other"}'})
    rewrite(tmp_path / "not json", {"header.json": b"no json"})
    rewrite(tmp_path / "no header", {"a.npy": npy(np.zeros(3))})
    ours = [(tmp_path / name).read_bytes() for name in ("other", "not json", "no header")]
    for content in (b"", b"some text\n" * 99, savez.getvalue(), plain.getvalue(), *ours):
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
        ({"version": 3}, "newer than 2"),
        ({"version": 1}, "not that of its version"),
        ({"version": "x"}, "its version is 'x'"),
        ({"kind": "model"}, "it holds 'model', not 'class moments'"),
        ({"meta": []}, "incomplete"),
        ({"meta": None}, "incomplete"),
        ({"more": 1}, "incomplete"),
        ({"version": True}, "its version is True"),
        ({"arrays": {}}, "incomplete or has more"),
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
    objects = npy(np.array([None] * 6, dtype=object), allow_pickle=True)
    fortran = npy(np.asfortranarray(np.zeros((2, 3))))
    column = npy(np.zeros((6, 1)))
    for data in (npy(np.zeros(7)), column, npy(np.zeros(12, "f4")), objects, fortran):
        rewrite(path, contents | {"scatter_1.npy": data})
        with pytest.raises(FileFormatError, match=r"m: .*scatter_1"):
            ClassMoments.load(path)
    for data in (b"x", b"", contents["scatter_1.npy"] + b" "):
        rewrite(path, contents | {"scatter_1.npy": data})
        with pytest.raises(FileFormatError, match="m: not an"):
            ClassMoments.load(path)
    rewrite(path, contents | {"extra.npy": npy(np.zeros(3))})
    with pytest.raises(FileFormatError, match="array extra has no place in it"):
        ClassMoments.load(path)
    data = contents["scatter_1.npy"]
    for shape in (
        "(10**15,)",
        "(-6,)",
        "(4e18, 1)",
        "(2**62, 2**62)",
        "(6.0,)",
        "'6'",
        "(6,)" * 33,
    ):
        text = b"{'descr': '<f8', 'fortran_order': False, 'shape': %s, }" % shape.encode()
        start = data[:8] + struct.pack("<H", 502) + text.ljust(501) + b"\n"
        rewrite(path, contents | {"scatter_1.npy": start + data[-48:]})
        with pytest.raises(FileFormatError, match=f"^{path}: "):
            ClassMoments.load(path)
    for shape in ((10**15,), (2**61, 1), (2**40, 2**40)):
        start = _archive.array_header(shape, "<f8")
        rewrite(path, contents | {"scatter_1.npy": start + data[-48:]})
        with pytest.raises(FileFormatError, match=r"scatter_1\.npy is .* too few or too many"):
            ClassMoments.load(path)


def test_an_array_that_nobody_reads_is_refused(tmp_path, moments):
    path = tmp_path / "m"
    arrays = [*moments._arrays(), ("more", np.zeros(3))]
    persist.write(path, "class moments", moments._meta(), arrays)
    with pytest.raises(FileFormatError, match="array more has no place"):
        ClassMoments.load(path)


# ---- the layout of the archive -------------------------------------------------------------------


def test_the_digest_is_of_all_that_precedes_it(tmp_path, moments):
    moments.save(tmp_path / "m")
    whole = (tmp_path / "m").read_bytes()
    assert whole[-64:] == hashlib.sha256(whole[:-64]).hexdigest().encode()
    with zipfile.ZipFile(tmp_path / "m") as archive:
        assert archive.comment == whole[-64:]
        assert archive.testzip() is None
        infos = archive.infolist()
        assert archive.read("scatter_0.npy") == npy(moments._core.packed_scatter(0))
    assert {info.date_time for info in infos} == {(1980, 1, 1, 0, 0, 0)}
    assert {(info.create_system, info.external_attr >> 16) for info in infos} == {(3, 0o600)}


def test_large_archives(tmp_path, monkeypatch):
    contents = {f"a{i}.npy": npy(np.arange(i)) for i in range(40)} | {persist.HEADER: b"{}"}
    for limit, few in ((300, 40), (2**31 - 1, 7), (10**4, 100)):
        monkeypatch.setattr(zipfile, "ZIP64_LIMIT", limit)
        monkeypatch.setattr(zipfile, "ZIP_FILECOUNT_LIMIT", few)
        rewrite(tmp_path / "m", contents)
        with open(tmp_path / "m", "rb") as file:
            archive = _archive.ArchiveReader(file)
            assert archive.sealed
            assert all(archive.content(name) == data for name, data in contents.items())


@pytest.mark.parametrize("shape", [(), (0,), (3,), (2, 0, 5), (1, 2, 3, 4)])
@pytest.mark.parametrize("dtype", ["<f8", "|b1", "<u2"])
def test_array_headers_are_numpys(shape, dtype):
    whole = npy(np.zeros(shape, dtype))
    assert whole.startswith(_archive.array_header(shape, dtype))
    assert len(_archive.array_header(shape, dtype)) % 64 == 0


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
    with pytest.raises(FileFormatError, match="mean_high_0"):
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
