"""Files of moments: exact round trips, and errors for damaged and foreign files."""

import errno
import os
import pickle
import stat
import struct
import tracemalloc
import zipfile
from datetime import date, timedelta
from decimal import Decimal

import numpy as np
import pandas as pd
import pytest
from saved_files import array_at, change_array, change_value, members, npy, rewrite

import eigenfeat as ef
from eigenfeat import ClassMoments
from eigenfeat._base.saved_files import replacing
from eigenfeat.exceptions import FileFormatError


@pytest.fixture
def moments(rng):
    X = rng.standard_normal((40, 3)) + 5
    return ClassMoments().update(X, np.array(["a", "b", "long one", "d"])[np.arange(40) % 4])


@pytest.fixture
def path(tmp_path, moments):
    ef.save(moments, tmp_path / "m.efm")
    return tmp_path / "m.efm"


def refusal(path):
    with pytest.raises(FileFormatError, match=f"^{path}: ") as caught:
        ef.load(path)
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
    path, X = tmp_path / "moments", rng.standard_normal((3, 4))
    moments = ClassMoments(dtype="float32").update(X, labels)
    flat = np.asarray(labels).ravel()
    assert moments.classes_.tolist() == sorted(set(flat.tolist()))
    for c in moments.classes_.tolist():
        np.testing.assert_allclose(moments.mean(c), X[flat == c].mean(axis=0), rtol=1e-6)
    ef.save(moments, path)
    loaded = ef.load(str(path))
    assert loaded == moments
    assert loaded.dtype == np.float32
    assert loaded.classes_.tolist() == moments.classes_.tolist()
    assert loaded.classes_.dtype == moments.classes_.dtype
    assert list(map(type, loaded.classes_.tolist())) == list(map(type, moments.classes_.tolist()))
    again = rng.standard_normal((3, 4))
    assert loaded.update(again, labels) == moments.update(again, labels)


def test_empty_and_fixed_accumulators(tmp_path):
    path = tmp_path / "m"
    ef.save(ClassMoments(), path)
    assert ef.load(path) == ClassMoments()
    ef.save(ClassMoments(classes=["a", "b"]).update([[1.0]], ["a"]), path)
    loaded = ef.load(path)
    assert loaded.weight("b") == 0
    with pytest.raises(ValueError, match="got 'c'"):
        loaded.update([[1.0]], ["c"])


def test_equal_moments_make_equal_files_and_loaded_moments_accept_updates(tmp_path, moments, rng):
    ef.save(moments, tmp_path / "one")
    ef.save(moments, tmp_path / "two")
    assert (tmp_path / "one").read_bytes() == (tmp_path / "two").read_bytes()
    X, y = rng.standard_normal((9, 3)), ["b", "new", "a"] * 3
    ef.save(ef.load(tmp_path / "one").update(X, y), tmp_path / "resumed")
    ef.save(moments.update(X, y), tmp_path / "whole")
    assert (tmp_path / "resumed").read_bytes() == (tmp_path / "whole").read_bytes()


def test_no_part_of_a_file_depends_on_the_clock(path):
    with zipfile.ZipFile(path) as archive:
        assert archive.testzip() is None
        assert {info.date_time for info in archive.infolist()} == {(1980, 1, 1, 0, 0, 0)}


def test_every_truncation_is_refused(path):
    whole = path.read_bytes()
    for length in [*range(0, len(whole), 37), len(whole) - 1]:
        path.write_bytes(whole[:length])
        assert "not an eigenfeat file" in refusal(path)


def test_foreign_files_are_refused(tmp_path):
    path = tmp_path / "foreign"
    np.savez(path.with_name("a.npz"), a=np.zeros(3))
    for content in (b"", b"some text\n" * 99, path.with_name("a.npz").read_bytes()):
        path.write_bytes(content)
        refusal(path)
    with pytest.raises(FileNotFoundError):
        ef.load(tmp_path / "missing")
    with pytest.raises(IsADirectoryError):
        ef.load(tmp_path)


def test_arrays_are_checked(path):
    contents, (member, _) = members(path), array_at(path, "sums", 1)
    objects = npy(np.array([None] * 6, dtype=object), allow_pickle=True)
    records, big = npy(np.zeros(6, dtype="f4,f4")), npy(np.zeros(6, ">f8"))
    wrong = (npy(np.zeros(7)), npy(np.zeros((6, 1))), npy(np.zeros(12, "f4")), big)
    for data in (*wrong, b"x", b"", contents[member] + b" ", objects, records):
        rewrite(path, contents | {member: data})
        assert "not an eigenfeat file" in refusal(path)
    rewrite(path, {name: data for name, data in contents.items() if name != member})
    assert member in refusal(path)
    data = contents[member]
    for shape in ("(10**15,)", "(1000000000000,)", "(-6,)", "(4611686018427387904, 4)", "(6,)" * 9):
        text = b"{'descr': '<f8', 'fortran_order': False, 'shape': %s, }" % shape.encode()
        start = data[:8] + struct.pack("<H", 502) + text.ljust(501) + b"\n"
        rewrite(path, contents | {member: start + data[-48:]})
        tracemalloc.start()
        refusal(path)
        assert tracemalloc.get_traced_memory()[1] < 2**21
        tracemalloc.stop()


def test_impossible_sums_and_weights_are_refused(path):
    whole = path.read_bytes()
    change_array(path, "sums", 0, to=lambda sums: sums * np.nan)
    assert "expected finite numbers" in refusal(path)
    for weights in ([10, -1, 10, 10], [10, np.nan, 10, 10], [10, np.inf, 10, 10], [10] * 5, [10]):
        path.write_bytes(whole)
        change_array(path, "weights", to=npy(np.array(weights, dtype=float)))
        refusal(path)
    path.write_bytes(whole)
    for columns in (10**9, 2**31, 0, -1, 1.5, "3", True):
        change_value(path, "n_features", to=columns)
        refusal(path)
        path.write_bytes(whole)


def test_impossible_labels_are_refused(path):
    for labels in (["a"] * 4, ["a"], [[1, 2], [3, 4]]):
        change_array(path, "labels", to=npy(np.array(labels)))
        refusal(path)


# ---- archives ------------------------------------------------------------------------------------


def test_members_that_share_their_bytes_are_refused(path):
    contents = members(path)
    rewrite(path, contents)
    data = path.read_bytes()
    begin = data.index(b"PK\1\2")
    size = len(data) - begin - 22
    entries, end = data[begin : begin + size], bytearray(data[begin + size :])
    named = [entries.replace(b".npy", b"%03d." % i) for i in range(60)]
    more = b"".join(one.replace(b".json", b"%04d." % i) for i, one in enumerate(named))
    end[8:20] = struct.pack("<HHLL", *2 * [61 * len(contents)], size + len(more), begin)
    path.write_bytes(data[:begin] + entries + more + bytes(end))
    assert "members are longer than the file" in refusal(path)


def test_lengths_of_members_are_not_trusted(path):
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
        archive.writestr("schema.json", npy(np.ones(4)))
    assert "two members have the same name" in refusal(path)


# ---- writing -------------------------------------------------------------------------------------


def test_a_failed_save_leaves_the_old_file_and_no_other_file(path, moments, monkeypatch):
    before = path.read_bytes()

    def fail(*_):
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(os, "fsync", fail)
    with pytest.raises(OSError, match=r"No space left on device: '.*m\.efm'"):
        ef.save(moments.update([[1.0, 2.0, 3.0]], ["a"]), path)
    assert path.read_bytes() == before
    assert os.listdir(path.parent) == ["m.efm"]


@pytest.mark.parametrize(
    "label", [date(2024, 1, 1), Decimal(1), timedelta(1), ("a", date(2024, 1, 1))], ids=str
)
def test_labels_that_files_cannot_hold_are_named(path, label):
    before, labels = path.read_bytes(), np.empty(20, dtype=object)
    labels[:] = [label] * 20
    moments = ClassMoments(classes=labels[:1]).update(np.eye(20, 2), labels)
    what = rf"expected classes that are numbers or text, got .*{type(label).__name__}"
    what = what.replace("tuple", "date")
    for model, name in ((moments, "model"), ({"a": [moments]}, r"model\.a\[0\]")):
        with pytest.raises(ValueError, match=f"^{name}: {what}$"):
            ef.save(model, path)
    assert path.read_bytes() == before
    assert os.listdir(path.parent) == ["m.efm"]
    assert pickle.loads(pickle.dumps(moments)) == moments


def test_links_and_permissions_stay(path, moments):
    link = path.with_name("link")
    link.symlink_to(path)
    path.chmod(0o640)
    ef.save(moments.update([[1.0, 2.0, 3.0]], ["a"]), link)
    assert link.is_symlink()
    assert ef.load(path) == moments
    assert stat.S_IMODE(path.stat().st_mode) == 0o640


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="no named pipes on this system")
def test_pipes_are_refused_and_devices_written_through(tmp_path, moments):
    os.mkfifo(tmp_path / "pipe")
    with pytest.raises(OSError, match=r"expected a file to write, got a pipe or socket: '.*pipe'"):
        ef.save(moments, tmp_path / "pipe")
    assert stat.S_ISFIFO((tmp_path / "pipe").stat().st_mode)
    (tmp_path / "null").symlink_to("/dev/null")
    ef.save(moments, tmp_path / "null")
    ef.save(moments, "/dev/null")
    assert stat.S_ISCHR(os.stat("/dev/null").st_mode)
    assert sorted(os.listdir(tmp_path)) == ["null", "pipe"]
    with pytest.raises(IsADirectoryError):
        ef.save(moments, tmp_path)


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
