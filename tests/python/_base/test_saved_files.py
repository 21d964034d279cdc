"""Files of moments: exact round trips, and errors for damaged and foreign files."""

import io
import os
import stat
import struct
import tracemalloc
import zipfile

import numpy as np
import pandas as pd
import pytest
from saved_files import change_header, header_of, members, npy, rewrite

import eigenfeat as ef
from eigenfeat import ClassMoments
from eigenfeat._base.saved_files import META, replacing
from eigenfeat.exceptions import FileFormatError


@pytest.fixture
def moments(rng):
    X = rng.standard_normal((40, 3)) + 5
    return ClassMoments().update(X, np.array(["a", "b", "long one", "d"])[np.arange(40) % 4])


@pytest.fixture
def path(tmp_path, moments):
    moments.save(tmp_path / "m.npz")
    return tmp_path / "m.npz"


def refusal(path):
    with pytest.raises(FileFormatError, match=f"^{path}: ") as caught:
        ClassMoments.load(path)
    assert "\n" not in str(caught.value)
    return str(caught.value)


@pytest.mark.parametrize(
    "labels",
    [
        [0, 1, 2],
        [True, False, True],
        [1.5, -2.25, 1e300],
        ["a", "ü", "a\nb"],
        [b"x", b"\xff", b"x"],
        np.array(["x", "y", "x"], dtype=object),
        np.array([3, 2**60, 1], dtype=object),
        np.array([2**63, 1, 2], dtype=np.uint64),
        np.array([1.5, 2.5, 1.5], dtype=np.float32),
        pd.Series(["x", "yy", "x"], dtype="category"),
        np.array([[1], [2], [1]]),
    ],
    ids=str,
)
def test_round_trip_is_exact(tmp_path, rng, labels):
    path, X = tmp_path / "moments.npz", rng.standard_normal((3, 4))
    moments = ClassMoments(dtype="float32").update(X, labels)
    flat = np.asarray(labels).ravel()
    assert moments.classes_.tolist() == sorted(set(flat.tolist()))
    for c in moments.classes_.tolist():
        np.testing.assert_allclose(moments.mean(c), X[flat == c].mean(axis=0), rtol=1e-6)
    moments.save(path)
    loaded = ClassMoments.load(str(path))
    assert loaded == moments
    assert loaded.dtype == np.float32
    assert loaded.classes_.tolist() == moments.classes_.tolist()
    assert loaded.classes_.dtype == moments.classes_.dtype
    assert list(map(type, loaded.classes_.tolist())) == list(map(type, moments.classes_.tolist()))
    again = rng.standard_normal((3, 4))
    assert loaded.update(again, labels) == moments.update(again, labels)
    assert ef.load(path) == ClassMoments.load(path)


def test_empty_and_fixed_accumulators(tmp_path):
    path = tmp_path / "m"
    ClassMoments().save(path)
    assert ClassMoments.load(path) == ClassMoments()
    ClassMoments(classes=["a", "b"]).update([[1.0]], ["a"]).save(path)
    loaded = ClassMoments.load(path)
    assert loaded.weight("b") == 0
    with pytest.raises(ValueError, match="got 'c'"):
        loaded.update([[1.0]], ["c"])


def test_the_same_moments_make_the_same_file_and_go_on_to_the_same(tmp_path, moments, rng):
    moments.save(tmp_path / "one")
    moments.save(tmp_path / "two")
    assert (tmp_path / "one").read_bytes() == (tmp_path / "two").read_bytes()
    X, y = rng.standard_normal((9, 3)), ["b", "new", "a"] * 3
    ClassMoments.load(tmp_path / "one").update(X, y).save(tmp_path / "resumed")
    moments.update(X, y).save(tmp_path / "whole")
    assert (tmp_path / "resumed").read_bytes() == (tmp_path / "whole").read_bytes()


def test_the_file_is_a_plain_npz(path, moments):
    with np.load(path, allow_pickle=False) as arrays:
        assert arrays["weights"].tolist() == [10, 10, 10, 10]
        assert arrays["scatter_0"].shape == (6,)
    assert header_of(path)["kind"] == "class moments"
    with zipfile.ZipFile(path) as archive:
        assert archive.testzip() is None
        assert {info.date_time for info in archive.infolist()} == {(1980, 1, 1, 0, 0, 0)}


def test_every_truncation_is_refused(path):
    whole = path.read_bytes()
    for length in [*range(0, len(whole), 37), len(whole) - 1]:
        path.write_bytes(whole[:length])
        assert "not an eigenfeat file" in refusal(path)


def test_a_bit_that_changes_is_found_or_does_not_matter(path, moments):
    whole = path.read_bytes()
    for bit in range(0, 8 * len(whole), 101):
        data = bytearray(whole)
        data[bit // 8] ^= 1 << bit % 8
        path.write_bytes(data)
        try:
            loaded = ClassMoments.load(path)
        except FileFormatError:
            continue
        assert loaded == moments
        assert loaded.classes_.tolist() == moments.classes_.tolist()


def test_foreign_files_are_refused(tmp_path):
    path = tmp_path / "foreign"
    np.savez(path.with_name("a.npz"), a=np.zeros(3))
    for content in (b"", b"some text\n" * 99, path.with_name("a.npz").read_bytes()):
        path.write_bytes(content)
        refusal(path)
    texts = ('{"format": "other"}', "no json", "[" * 10**5, "1" * 10**5, "NaN", "null", "")
    objects = npy(np.array([{}], dtype=object), allow_pickle=True)
    for header in (*(npy(np.array(text)) for text in texts), objects):
        rewrite(path, {META: header})
        refusal(path)
    with pytest.raises(FileNotFoundError):
        ClassMoments.load(tmp_path / "missing")
    with pytest.raises(IsADirectoryError):
        ClassMoments.load(tmp_path)


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"version": 3}, "it is of version 3, this release reads 1"),
        ({"version": "x"}, "it is of version 'x'"),
        ({"kind": "model"}, "it holds 'model', not 'class moments'"),
        ({"kind": 3}, "incomplete"),
        ({"meta": []}, "incomplete"),
        ({"meta": None}, "not an eigenfeat file"),
        ({"format": "other"}, "another program's"),
        ({"meta": {}}, "not an eigenfeat file"),
    ],
)
def test_headers_are_checked(path, changes, message):
    change_header(path, **changes)
    assert message in refusal(path)


def test_arrays_are_checked(path):
    contents = members(path)
    objects = npy(np.array([None] * 6, dtype=object), allow_pickle=True)
    records = npy(np.zeros(6, dtype="f4,f4"))
    big = npy(np.zeros(6, ">f8"))
    for data in (npy(np.zeros(7)), npy(np.zeros((6, 1))), npy(np.zeros(12, "f4")), big):
        rewrite(path, contents | {"scatter_1.npy": data})
        assert "expected" in refusal(path)
    for data in (b"x", b"", contents["scatter_1.npy"] + b" ", objects, records):
        rewrite(path, contents | {"scatter_1.npy": data})
        assert "not an eigenfeat file" in refusal(path)
    rewrite(path, {name: data for name, data in contents.items() if name != "scatter_1.npy"})
    assert "scatter_1" in refusal(path)
    data = contents["scatter_1.npy"]
    for shape in ("(10**15,)", "(1000000000000,)", "(-6,)", "(4611686018427387904, 4)", "(6,)" * 9):
        text = b"{'descr': '<f8', 'fortran_order': False, 'shape': %s, }" % shape.encode()
        start = data[:8] + struct.pack("<H", 502) + text.ljust(501) + b"\n"
        rewrite(path, contents | {"scatter_1.npy": start + data[-48:]})
        tracemalloc.start()
        refusal(path)
        assert tracemalloc.get_traced_memory()[1] < 2**21
        tracemalloc.stop()


def test_not_finite_content_is_refused(path):
    contents = members(path)
    for name, bad in (("weights", -1.0), ("weights", np.nan), ("scatter_0", np.inf)):
        array = np.load(io.BytesIO(contents[f"{name}.npy"]))
        array[0] = bad
        rewrite(path, contents | {f"{name}.npy": npy(array)})
        assert "expected finite" in refusal(path)


def test_a_declared_number_of_columns_is_compared(path):
    for columns in (10**9, 2**31, 0, -1, 1.5, "3", True):
        change_header(path, meta=header_of(path)["meta"] | {"n_features": columns})
        refusal(path)


# ---- archives ------------------------------------------------------------------------------------


def test_members_that_share_their_bytes_are_refused(path):
    contents = members(path)
    rewrite(path, contents)
    data = path.read_bytes()
    begin = data.index(b"PK\1\2")
    size = len(data) - begin - 22
    entries, end = data[begin : begin + size], bytearray(data[begin + size :])
    more = b"".join(entries.replace(b".npy", b"%03d." % i) for i in range(60))
    end[8:20] = struct.pack("<HHLL", *2 * [61 * len(contents)], size + len(more), begin)
    path.write_bytes(data[:begin] + entries + more + bytes(end))
    assert "members are longer than the file" in refusal(path)


def test_lengths_of_members_are_not_believed(path):
    rewrite(path, members(path) | {"bomb.npy": npy(np.zeros(2**22))}, zipfile.ZIP_DEFLATED)
    data = path.read_bytes()
    at = data.rfind(b"PK\1\2")
    path.write_bytes(data[: at + 24] + struct.pack("<L", 100) + data[at + 28 :])
    tracemalloc.start()
    refusal(path)
    assert tracemalloc.get_traced_memory()[1] < 2**23
    tracemalloc.stop()


def test_members_do_not_repeat(path):
    with zipfile.ZipFile(path, "a") as archive, pytest.warns(UserWarning, match="Duplicate name"):
        archive.writestr("weights.npy", npy(np.ones(4)))
    assert "two members have the same name" in refusal(path)


# ---- writing -------------------------------------------------------------------------------------


def test_a_failed_save_leaves_the_old_file_and_no_scraps(path, moments, monkeypatch):
    before = path.read_bytes()

    def fail(*_):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "fsync", fail)
    with pytest.raises(OSError, match=r"No space left on device: '.*m\.npz'"):
        moments.update([[1.0, 2.0, 3.0]], ["a"]).save(path)
    assert path.read_bytes() == before
    assert os.listdir(path.parent) == ["m.npz"]


def test_labels_that_files_cannot_hold_are_named(tmp_path):
    labels = np.empty(2, dtype=object)
    labels[:] = [("a", 1), ("b", 2)]
    moments = ClassMoments().update([[1.0], [2.0]], labels)
    with pytest.raises(ValueError, match="classes: expected numbers or strings to save"):
        moments.save(tmp_path / "m")
    assert os.listdir(tmp_path) == []


def test_links_and_permissions_stay(path, moments):
    link = path.with_name("link")
    link.symlink_to(path)
    path.chmod(0o640)
    moments.update([[1.0, 2.0, 3.0]], ["a"]).save(link)
    assert link.is_symlink()
    assert ClassMoments.load(path) == moments
    assert stat.S_IMODE(path.stat().st_mode) == 0o640


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="no named pipes on this system")
def test_pipes_are_refused_and_devices_written_through(tmp_path, moments):
    os.mkfifo(tmp_path / "pipe")
    with pytest.raises(OSError, match=r"expected a file to write, got a pipe or socket: '.*pipe'"):
        moments.save(tmp_path / "pipe")
    assert stat.S_ISFIFO((tmp_path / "pipe").stat().st_mode)
    (tmp_path / "null").symlink_to("/dev/null")
    moments.save(tmp_path / "null")
    moments.save("/dev/null")
    assert stat.S_ISCHR(os.stat("/dev/null").st_mode)
    assert sorted(os.listdir(tmp_path)) == ["null", "pipe"]
    with pytest.raises(IsADirectoryError):
        moments.save(tmp_path)


def test_nothing_is_replaced_by_half_a_file(tmp_path):
    (tmp_path / "file").write_bytes(b"old")

    def interrupted():
        with replacing(tmp_path / "file") as file:
            file.write(b"new")
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        interrupted()
    assert (tmp_path / "file").read_bytes() == b"old"
    assert os.listdir(tmp_path) == ["file"]
