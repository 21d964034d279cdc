"""`eigenfeat moments`: resumed runs write the bytes of a run without interruption."""

import json
import os
import re
import signal
import subprocess
import sys
import time

import numpy as np
import pytest
from command_line import run
from table_files import csv_text

import eigenfeat as ef
from eigenfeat import ClassMoments
from eigenfeat.cli.output import Advance


@pytest.fixture
def files(tmp_path, rng):
    X = rng.standard_normal((2000, 6)).astype(np.float32)
    y = rng.integers(0, 3, 2000)
    np.save(tmp_path / "X.npy", X)
    np.save(tmp_path / "y.npy", y)
    return tmp_path, X, y


def moments(folder, *more, output="out.efm"):
    data = ["moments", folder / "X.npy", "--target", folder / "y.npy", "--block-rows", "100"]
    return [*data, "-o", folder / output, *more]


def test_moments_of_a_file_are_those_of_its_blocks(tmp_path, rng):
    X, y = rng.standard_normal((500, 4)), rng.integers(0, 3, 500)
    (tmp_path / "rows.csv").write_text(csv_text(X, y))
    out = tmp_path / "out.efm"
    command = ["moments", tmp_path / "rows.csv", "--target", "kind", "-o", out]
    status, said, _ = run(*command, "--block-rows", "150")
    assert status == 0
    assert said.startswith(f"{out}: 500 rows, 4 features, 3 classes (0, 1, 2); ")
    expected = ClassMoments()
    for start in range(0, 500, 150):
        part = slice(start, start + 150)
        expected.update(X[part], y[part])
    assert ef.load(out) == expected
    assert [p.name for p in tmp_path.iterdir() if "checkpoint" in p.name or ".part" in p.name] == []


def test_the_result_as_json(files):
    folder, _, _ = files
    status, said, err = run(*moments(folder, "--json", "--threads", "1"))
    assert (status, err) == (0, "")
    found = json.loads(said)
    assert found.pop("seconds") > 0
    assert found.pop("rows_per_second") > 0
    assert found == {
        "status": "ok",
        "command": "moments",
        "output": str(folder / "out.efm"),
        "rows": 2000,
        "skipped": 0,
        "features": 6,
        "classes": [0, 1, 2],
        "dtype": "float32",
        "resumed_from": 0,
    }
    for threads in (2, 7):
        run(*moments(folder, "--threads", threads, output="again.efm"))
        assert (folder / "again.efm").read_bytes() == (folder / "out.efm").read_bytes()
    assert run(*moments(folder, "--dtype", "float64", "--json"))[0] == 0
    assert ef.load(folder / "out.efm").dtype == np.float64


def interrupt_after(monkeypatch, blocks, number=signal.SIGINT):
    """Send the signal `number` to this process at the call of Advance number `blocks`."""
    if sys.platform == "win32":
        pytest.skip("the test sends a POSIX signal")
    advance, calls = Advance.__call__, []

    def counted(self, rows, fraction):
        calls.append(rows)
        if len(calls) == blocks:
            os.kill(os.getpid(), number)
        return advance(self, rows, fraction)

    monkeypatch.setattr(Advance, "__call__", counted)


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_an_interrupted_run_leaves_a_checkpoint_and_says_so(files, monkeypatch, number):
    folder, X, _ = files
    X[3, 0] = np.nan
    np.save(folder / "X.npy", X)
    assert run(*moments(folder, "--skip-bad", output="whole.efm"))[0] == 0
    before = signal.getsignal(number)
    with monkeypatch.context() as patch:
        interrupt_after(patch, 7, number)
        status, said, err = run(*moments(folder, "--skip-bad"))
    assert status == 128 + number
    assert said == ""
    checkpoint = folder / "out.efm.checkpoint"
    assert err == (
        f"eigenfeat: interrupted: after 700 rows, saved in {checkpoint}; the same command with "
        "--resume continues\n"
    )
    assert not (folder / "out.efm").exists()
    assert signal.getsignal(number) == before
    status, said, err = run("inspect", checkpoint)
    assert status == 0
    assert "kind: moments checkpoint\n" in said
    assert "rows: 700\n  skipped: 1\n" in said
    status, said, err = run(*moments(folder, "--skip-bad", "--resume", "--json"))
    assert status == 0
    assert err == f"eigenfeat: resuming after 700 rows from {checkpoint}\n"
    found = json.loads(said)
    assert (found["resumed_from"], found["rows"], found["skipped"]) == (700, 1999, 1)
    assert (folder / "out.efm").read_bytes() == (folder / "whole.efm").read_bytes()
    assert not checkpoint.exists()
    err = run(*moments(folder, "--skip-bad", "--resume"))[2]
    assert err == f"eigenfeat: no checkpoint {checkpoint}: starting from the first row\n"
    with monkeypatch.context() as patch:
        interrupt_after(patch, 2, number)
        more = ("--json", "--skip-bad", "--checkpoint", folder / "state")
        status, said, _ = run(*moments(folder, *more))
    found = json.loads(said)
    assert (status, found["kind"], found["exit"]) == (128 + number, "interrupted", 128 + number)
    assert (folder / "state").exists()


def test_a_checkpoint_of_something_else_is_refused(files, monkeypatch):
    folder, X, y = files
    with monkeypatch.context() as patch:
        interrupt_after(patch, 3)
        assert run(*moments(folder))[0] == 130
    checkpoint = folder / "out.efm.checkpoint"
    state = checkpoint.read_bytes()
    start = f"eigenfeat: {checkpoint}: expected a checkpoint of these files and options, got one "
    start += "that differs: "
    end = "; without --resume the run starts anew\n"
    real = (folder / "X.npy").resolve()

    def refused(said, *more):
        status, _, err = run(*moments(folder, "--resume", *more))
        assert (status, err) == (1, start + said + end)
        assert checkpoint.read_bytes() == state

    refused("drop was [] and is ['2']", "--drop", "2")
    before = os.stat(folder / "X.npy").st_mtime_ns
    os.utime(folder / "X.npy", ns=(1, 1))
    refused(f"time of {real} was {before} and is 1")
    size = (folder / "X.npy").stat().st_size
    np.save(folder / "X.npy", X[:1999])
    np.save(folder / "y.npy", y[:1999])
    refused(f"bytes of {real} was {size} and is {size - 24}")
    checkpoint.write_bytes(state[:-1])
    status, _, err = run(*moments(folder, "--resume"))
    assert status == 1
    assert err.startswith(f"eigenfeat: {checkpoint}: not an eigenfeat file, or a truncated")
    run(*moments(folder, output="other.efm"))
    status, _, err = run(*moments(folder, "--resume", "--checkpoint", folder / "other.efm"))
    assert status == 1
    assert "expected a checkpoint of moments, got ClassMoments(" in err
    position = {"file": 0, "row": 0, "rows": 0, "skipped": 0}
    others = {"moments": [], "identity": {"files": []}, "position": position}
    for content in (others, {"moments": ClassMoments()}):
        ef.save(content, folder / "other.efm")
        for command in (moments(folder, "--resume", "--checkpoint"), ("inspect",)):
            status, _, err = run(*command, folder / "other.efm")
            assert status == 1
            assert f"expected a checkpoint of moments, got a dictionary of {[*content]}" in err
    assert run(*moments(folder))[0] == 0  # without --resume the checkpoint is replaced


COMMAND = [
    sys.executable,
    "-c",
    "import sys; from eigenfeat.cli.main import main; sys.exit(main())",
]


def started(arguments):
    return subprocess.Popen(
        [*COMMAND, *map(str, arguments)], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    )


@pytest.mark.long
@pytest.mark.skipif(sys.platform == "win32", reason="the test sends a POSIX signal")
def test_a_killed_run_is_resumed(tmp_path, rng):
    np.save(tmp_path / "X.npy", rng.standard_normal((30000, 8)))
    np.save(tmp_path / "y.npy", rng.integers(0, 3, 30000))
    arguments = moments(tmp_path, "--every", "500", "--block-rows", "25")
    checkpoint = tmp_path / "out.efm.checkpoint"
    places = []
    for number in (signal.SIGKILL, signal.SIGINT):
        child = started([*arguments, "--resume"])
        state = checkpoint.read_bytes() if checkpoint.exists() else b""
        deadline = time.monotonic() + 60
        while not checkpoint.exists() or checkpoint.read_bytes() == state:
            assert time.monotonic() < deadline
            assert child.poll() is None
            time.sleep(0.002)
        child.send_signal(number)
        _, err = child.communicate(timeout=60)
        assert child.returncode == (130 if number == signal.SIGINT else -number)
        places += map(int, re.findall(r"after ([\d,]+) rows", err.replace(",", "")))
    assert "with --resume continues" in err
    (tmp_path / ".out.efm.checkpoint.0123.part").write_bytes(b"of a killed run")
    status, said, _ = run(*arguments, "--resume", "--json")
    assert status == 0
    places.append(json.loads(said)["resumed_from"])
    assert places == sorted(places)
    assert 0 < places[0] <= places[-1] < 30000
    assert run(*moments(tmp_path, "--block-rows", "25", output="whole.efm"))[0] == 0
    assert (tmp_path / "out.efm").read_bytes() == (tmp_path / "whole.efm").read_bytes()
    left = {path.name for path in tmp_path.iterdir()}
    assert left == {"X.npy", "y.npy", "out.efm", "whole.efm"}


def test_merging(files):
    folder, X, y = files
    parts = []
    for i in range(3):
        parts.append(folder / f"part{i}.efm")
        ef.save(ClassMoments().update(X[i::3], y[i::3]), parts[-1])
    out = folder / "all.efm"
    status, said, _ = run("moments", "merge", *parts, "-o", out, "--json")
    assert status == 0
    expected = ef.load(parts[0])
    for part in parts[1:]:
        expected.merge(ef.load(part))
    assert ef.load(out) == expected
    assert json.loads(said) == {
        "status": "ok",
        "command": "moments",
        "output": str(out),
        "merged": [str(part) for part in parts],
        "classes": [0, 1, 2],
        "weights": {str(c): int((y == c).sum()) for c in range(3)},
    }


def test_bad_values_are_named_by_file_and_place(files):
    folder = files[0]
    path = folder / "X.npy"
    np.save(path, np.full((2000, 2), np.nan))
    text = f"{path}: row 0, column '0': expected a finite number, got NaN or a missing value"
    found = run(*moments(folder))
    assert found == (1, "", f"eigenfeat: {text}; --skip-bad leaves such rows out\n")
    status, _, err = run(*moments(folder, "--skip-bad"))
    assert status == 1
    start = (
        f"eigenfeat: {path}: expected at least one row, got none; 2,000 bad rows were left out, "
    )
    assert err == f"{start}the first: {text.removeprefix(f'{path}: ')}\n"
