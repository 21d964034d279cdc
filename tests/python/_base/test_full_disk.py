"""On a full disk the error names the file, and no part of the file remains."""

import contextlib
import os
import re
import signal
from pathlib import Path

import numpy as np
import pytest

import eigenfeat as ef
from eigenfeat._base.file_errors import naming
from eigenfeat.cli.writers import open_writer
from eigenfeat.io import to_onnx
from eigenfeat.report import write_report

resource = pytest.importorskip("resource", reason="this system has no limit on a file's length")

RNG = np.random.default_rng(0)
X, Y = RNG.standard_normal((400, 5)), np.arange(400) % 2


@contextlib.contextmanager
def short_files():
    """Limit files to 1,000 bytes: as on a full disk, the error of the system names no file."""
    limits = resource.getrlimit(resource.RLIMIT_FSIZE)
    handler = signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    resource.setrlimit(resource.RLIMIT_FSIZE, (1000, limits[1]))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, limits)
        signal.signal(signal.SIGXFSZ, handler)


@pytest.fixture(scope="module")
def model():
    return ef.GEMClassifier(gem=ef.GEM(n_directions=1)).fit(X, Y)


def rows_to(path):
    with open_writer(path, list("abcde")) as write:
        write(X)


@pytest.mark.parametrize("what", [".model", ".csv", ".efm", ".npy", ".onnx", ".html", ".parquet"])
def test_the_error_names_the_file(tmp_path, model, what):
    if what == ".onnx":
        pytest.importorskip("onnx")
    moments = ef.ClassMoments().update(np.repeat(X, 5, axis=1), Y)
    write = {
        ".model": lambda path: ef.save(model, path),
        ".efm": lambda path: ef.save(moments, path),
        ".onnx": lambda path: to_onnx(model, path),
        ".html": lambda path: write_report(model, X, Y, path),
    }.get(what, rows_to)
    path = tmp_path / f"written{what}"
    with pytest.raises(OSError, match=re.escape(str(path))) as caught, short_files():
        write(path)
    assert caught.value.filename == str(path)
    assert ".part" not in str(caught.value)
    assert os.listdir(tmp_path) == []


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="this system has no /dev/full")
def test_a_device_without_room():
    full = Path("/dev/full")
    for write in (lambda: ef.save(ef.GEM().fit(X, Y), full), lambda: rows_to(full)):
        with pytest.raises(OSError, match="/dev/full"):
            write()


def test_other_errors_stay_as_they_are(tmp_path):
    with pytest.raises(BrokenPipeError), naming("standard output"):
        raise BrokenPipeError(32, "Broken pipe")
    with pytest.raises(FileNotFoundError, match="other"), naming("one"):
        raise FileNotFoundError(2, "No such file", "other")
    for suffix in (".csv", ".npy"):
        path = tmp_path / "nowhere" / f"x{suffix}"
        with pytest.raises(OSError, match="nowhere") as caught, open_writer(path, ["a"]):
            pass
        assert ".part" not in str(caught.value)
    assert os.listdir(tmp_path) == []
