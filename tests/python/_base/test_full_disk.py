"""A full disk: the error names the file, and nothing half-written stays behind."""

from __future__ import annotations

import io
import json
import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

import eigenfeat as ef
from eigenfeat._base.saved_files import naming
from eigenfeat.tables.writers import open_writer

resource = pytest.importorskip("resource", reason="this system has no limit on a file's length")

RNG = np.random.default_rng(0)
X, Y = RNG.standard_normal((400, 5)), np.arange(400) % 2

# Files may have 1,000 bytes: the system's error has no name of a file, as that of a full disk.
LIMITED = """
import json, resource, signal, sys
signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
import numpy as np
import eigenfeat as ef
from eigenfeat.models import to_c, to_onnx
from eigenfeat.tables.writers import open_writer
from pathlib import Path

rng = np.random.default_rng(0)
X, y = rng.standard_normal((400, 5)), np.arange(400) % 2
folder, what = Path(sys.argv[1]), sys.argv[2]
path = folder / f"written{what}"
model = ef.GEMClassifier(gem=ef.GEM(n_directions=1)).fit(X, y)
moments = ef.ClassMoments().update(np.repeat(X, 5, axis=1), y)
if what == ".html":
    from eigenfeat.report import write_report
resource.setrlimit(resource.RLIMIT_FSIZE, (1000, resource.RLIM_INFINITY))
try:
    if what == ".model":
        ef.save(model, path)
    elif what == ".npz":
        moments.save(path)
    elif what == ".onnx":
        to_onnx(model, path)
    elif what == ".html":
        write_report(model, X, y, path)
    else:
        with open_writer(path, list("abcde")) as write:
            write(X)
except OSError as error:
    print(json.dumps([error.filename, str(error)]))
print(sorted(p.name for p in folder.iterdir()))
"""


@pytest.mark.parametrize(
    "what",
    [
        *(".model", ".csv"),
        *(pytest.param(w, marks=pytest.mark.long) for w in (".npz", ".onnx", ".html", ".npy")),
        pytest.param(".parquet", marks=pytest.mark.long),
    ],
)
def test_the_error_names_the_file(tmp_path, what):
    if what == ".parquet":
        pytest.importorskip("pyarrow")
    if what == ".onnx":
        pytest.importorskip("onnx")
    if what == ".html":
        pytest.importorskip("matplotlib")
    finished = subprocess.run(
        [sys.executable, "-c", LIMITED, str(tmp_path), what],
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )
    assert finished.returncode == 0, finished.stderr[-500:]
    error, left = finished.stdout.splitlines()
    name, text = json.loads(error)
    assert name == str(tmp_path / f"written{what}")
    assert name in text
    assert ".part" not in text
    assert left == "[]"


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="this system has no /dev/full")
def test_a_device_without_room():
    for write in (lambda: ef.save(ef.GEM().fit(X, Y), "/dev/full"), _rows_to_a_device):
        with pytest.raises(OSError, match="/dev/full"):
            write()


def _rows_to_a_device():
    with open_writer(Path("/dev/full"), list("abcde")) as write:
        write(X)


def test_standard_output_without_room(monkeypatch):
    class Full(io.StringIO):
        def flush(self):
            raise OSError(28, "No space left on device")

    monkeypatch.setattr(sys, "stdout", Full())
    with (
        pytest.raises(OSError, match="'standard output'"),
        open_writer(Path("-"), ["a"]) as write,
    ):
        write(X[:, 0])


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


def test_pictures_of_the_demonstration(tmp_path, monkeypatch):
    pytest.importorskip("matplotlib")
    from matplotlib.figure import Figure

    from eigenfeat.demo.pictures import save_pictures

    def full(*_, **__):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(Figure, "savefig", full)
    with pytest.raises(OSError, match=r"errors\.png"):
        save_pictures({"errors": (Figure(), "caption")}, tmp_path)
    assert os.listdir(tmp_path) == []
