"""One experiment of each kind in the papers runs from end to end on tiny files."""

import csv
import dataclasses
import io
from importlib import import_module
from importlib.util import find_spec

import numpy as np
import pytest
from rich.console import Console

from bench.papers import __main__ as cli
from bench.papers.protocol import Context, DataError, check_files
from bench.papers.runner import reproduce, run_job

QUICK = Context(quick=True)


def protocol_of(task):
    return import_module(f"bench.papers.{cli.TASKS[task]}").PROTOCOLS[task]


def blobs(rng, n, d, k, dtype):
    """Classes that differ in means and in variances; every class has rows."""
    y = np.arange(n) % k
    spread = 1 + np.abs(np.add.outer(-np.arange(k), np.arange(d)) % k == 0) * 2.0
    X = (rng.standard_normal((n, d)) * spread[y] + 2 * (spread[y] - 2)) * 8 + 100
    return X.astype(dtype), y.astype(np.uint8)


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """A tiny file of each data set that the cases below need."""
    folder, rng = tmp_path_factory.mktemp("data"), np.random.default_rng(5)
    (folder / "ucr").mkdir()
    (X, y), (X_test, y_test) = (blobs(rng, n, 16, 5, np.uint8) for n in (300, 100))
    np.savez(folder / "mnist.npz", X_train=X, y_train=y, X_test=X_test, y_test=y_test)
    for name in ("pima", "wine"):
        X, y = blobs(rng, 60, 6, 3, np.float32)
        np.savez(folder / f"uci_{name}.npz", X=X, y=y)
    X, y = blobs(rng, 60, 30, 3, np.float32)
    parts = {"X_train": X[:18], "y_train": y[:18], "X_test": X[18:], "y_test": y[18:]}
    np.savez(folder / "ucr" / "ItalyPowerDemand.npz", **parts)
    arrays = {}
    for domain in ("amazon", "webcam", "dslr"):
        X, y = blobs(rng, 40, 48, 4, np.uint8)
        arrays |= {f"X_{domain}": X, f"y_{domain}": y + 1}
    np.savez(folder / "office_surf.npz", **arrays)
    return folder


@pytest.mark.parametrize(
    ("name", "only"),
    [("mnist", None), ("ldg", None), ("ldg-transfer", None), ("early", ["LDA", "ECTS"])],
)
def test_a_protocol_runs_from_end_to_end(name, only, folder, tmp_path):
    problems = [p for p in protocol_of(name).of(QUICK) if (folder / p.file).exists()]
    protocol = dataclasses.replace(protocol_of(name), problems=problems[:2])
    console = Console(width=160, record=True, file=io.StringIO())
    given = {"only": only or (), "console": console, "measure": run_job}
    outcomes = reproduce(protocol, folder, tmp_path, QUICK, **given)
    assert {o.problem for o in outcomes} == {problem.name for problem in protocol.problems}
    assert outcomes[0].method in console.export_text()
    with (tmp_path / f"{name}-quick.csv").open(newline="", encoding="utf-8") as file:
        lines = list(csv.DictReader(file))
    assert {line["method"] for line in lines} >= {o.method for o in outcomes if not o.members}
    for line in lines:
        if not line["method"].startswith("LightGBM") or find_spec("lightgbm"):
            assert line["failure"] == ""


def test_a_missing_or_strange_file_is_named(tmp_path, capsys):
    arguments = ["mnist", "--data", str(tmp_path), "--output", str(tmp_path / "out")]
    assert cli.main(arguments) == 1
    printed = capsys.readouterr().err
    assert f"{tmp_path / 'mnist.npz'} with arrays X_train: (60000, 784) pixels" in printed
    assert printed.rstrip().endswith("got no such file")
    assert len(printed.splitlines()) == 1
    np.savez(tmp_path / "mnist.npz", X_train=[0], y_train=[0])
    with pytest.raises(DataError, match="got no X_test, y_test"):
        check_files(protocol_of("mnist").problems, tmp_path)
    assert not (tmp_path / "out").exists()
