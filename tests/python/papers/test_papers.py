"""The papers' experiments run from end to end on tiny files."""

from __future__ import annotations

import csv
import dataclasses
import io
from importlib.util import find_spec

import numpy as np
import papers_support
import pytest
from papers_support import PROTOCOLS
from rich.console import Console

from bench.papers import __main__ as cli
from bench.papers import measuring
from bench.papers.protocol import Context, DataError, check_files
from bench.papers.runner import reproduce

QUICK = Context(quick=True)


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return papers_support.write_all(tmp_path_factory.mktemp("data"))


CASES = {  # the number of problems, and the methods
    "mnist": (1, None),
    "speech": (1, None),
    "ldg": (2, None),
    "ldg-small": (1, None),
    "ldg-transfer": (1, None),
    "early": (1, ["LDA", "ECTS"]),
}


@pytest.mark.parametrize("name", [*CASES, pytest.param("defaults", marks=pytest.mark.long)])
def test_a_protocol_runs_from_end_to_end(name, folder, tmp_path):
    count, only = CASES.get(name, (None, None))
    problems = [p for p in PROTOCOLS[name].of(QUICK) if (folder / p.file).exists()]
    protocol = dataclasses.replace(PROTOCOLS[name], problems=problems[:count])
    given = {} if name == "early" else {"measure": measuring.run}
    console = Console(width=160, record=True, file=io.StringIO())
    outcomes = reproduce(protocol, folder, tmp_path, QUICK, only=only, console=console, **given)
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
        check_files(PROTOCOLS["mnist"], tmp_path)
    assert not (tmp_path / "out").exists()
