"""How `bench.papers` is run: processes, threads, failures, interrupts, misuse."""

from __future__ import annotations

import csv
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import papers_support
import pytest
from papers_support import PROTOCOLS

from bench.papers import __main__ as cli
from bench.papers import choosing, measuring, runner
from bench.papers.protocol import Context, DataError, Job, Method, check_files

ROOT = Path(__file__).resolve().parents[3]
LINEAR = Method("logistic regression", choosing.standardised_logistic)


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return papers_support.write_all(tmp_path_factory.mktemp("data"))


def job(folder, method, context=Context(quick=True)):  # noqa: B008
    return Job(PROTOCOLS["defaults"].problems[0], method, folder, context)


def lines_of(path):
    with path.open(newline="", encoding="utf-8") as file:
        return list(csv.DictReader(file))


# ---- processes -----------------------------------------------------------------------------------


@pytest.mark.long
def test_a_method_is_measured_in_a_process_of_its_own(folder):
    ballast = np.ones(2**26)  # half a gigabyte, which is this process's and not the method's
    steps = []
    outcome = measuring.measure(job(folder, LINEAR, context=Context(threads=1)), steps.append)
    assert measuring.peak_bytes() > ballast.nbytes
    assert steps == ["loading", "training", "testing"]
    assert outcome.scores.error < 0.5
    assert (outcome.n_train, outcome.n_test) == (200, 60)
    assert 2**25 < outcome.peak_bytes < ballast.nbytes
    assert outcome.train_seconds > 0


@pytest.mark.long
@pytest.mark.skipif(sys.platform == "win32", reason="it has no signal 9")
@pytest.mark.parametrize(
    ("build", "failure"),
    [
        (papers_support.dies, "the process ended early (exit code -9)"),
        (papers_support.fails, "ValueError: ridge: expected a number, got none"),
    ],
)
def test_a_failure_is_an_outcome(build, failure, folder):
    outcome = measuring.measure(job(folder, Method("doomed", build)), lambda step: None)
    assert outcome.failure == failure
    assert outcome.scores is None


# ---- the command ---------------------------------------------------------------------------------


def test_the_command_prints_a_table_and_writes_a_file(folder, tmp_path, capsys, monkeypatch):
    """In this process: that each method has one of its own is seen above."""
    monkeypatch.setitem(runner.reproduce.__kwdefaults__, "measure", measuring.run)
    arguments = ["defaults", "--data", str(folder), "--quick", "--only", "logistic"]
    arguments += ["--threads", "1", "--output", str(tmp_path / "new")]
    assert cli.main(arguments) == 0
    out = capsys.readouterr().out
    for problem in PROTOCOLS["defaults"].problems:
        assert problem.title in out
    assert len(lines_of(tmp_path / "new" / "defaults-quick.csv")) == 6


@pytest.mark.long
@pytest.mark.skipif(sys.platform == "win32", reason="signals are sent as POSIX has them")
def test_control_c_ends_the_command_with_its_rows(folder, tmp_path):
    arguments = ["defaults", "--data", str(folder), "--output", str(tmp_path)]
    command = [sys.executable, "-m", "bench.papers", *arguments, "--only", "logistic"]
    process = subprocess.Popen(
        command,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        cwd=ROOT,
        start_new_session=True,  # a group of its own, to which a terminal would send the signal
        # A shell's background jobs, and what they start, are born deaf to it.
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL),
    )
    path, until = tmp_path / "defaults.csv", time.monotonic() + 60
    while not path.exists() and time.monotonic() < until:
        time.sleep(0.02)
    os.killpg(process.pid, signal.SIGINT)
    out, err = process.communicate(timeout=60)
    assert process.returncode == 130, (out, err)
    assert "Isolet" in out
    assert err == "eigenfeat: interrupted\n"
    assert 1 <= len(lines_of(path)) < 4


def test_a_missing_or_strange_file_is_named(tmp_path, capsys):
    arguments = ["mnist", "--data", str(tmp_path), "--output", str(tmp_path / "out")]
    assert cli.main(arguments) == 1
    printed = capsys.readouterr().err
    assert f"{tmp_path / 'mnist.npz'} with arrays X_train: (60000, 784) pixels" in printed
    assert printed.rstrip().endswith("got no such file")
    assert len(printed.splitlines()) == 1
    (tmp_path / "mnist.npz").write_text("no arrays")
    with pytest.raises(DataError, match="got a file of another kind"):
        check_files(PROTOCOLS["mnist"], tmp_path)
    np.savez(tmp_path / "mnist.npz", X_train=[0], y_train=[0])
    with pytest.raises(DataError, match="got no X_test, y_test"):
        check_files(PROTOCOLS["mnist"], tmp_path)
    assert not (tmp_path / "out").exists()
