"""Rows from standard input, and predictions to standard output."""

import csv
import io
import os
import subprocess
import sys

import numpy as np
import pytest
from command_line import run
from flat_gem import gem_classifier
from table_files import csv_text

from eigenfeat import load, open_rows, save

COMMAND = [sys.executable, "-m", "eigenfeat"]
FIT = ["--target", "kind", "--set", "views=columns,gem"]


@pytest.fixture
def files(tmp_path, rng, monkeypatch):
    monkeypatch.chdir(tmp_path)
    y = rng.integers(0, 2, 90)
    X = rng.standard_normal((90, 3)) * (1 + 2 * y[:, None])
    text = csv_text(X, np.array(["in", "out"])[y])
    (tmp_path / "rows.csv").write_text(text)
    assert run("fit", "rows.csv", *FIT, "-o", "model.efm")[0] == 0
    return text


def piped(monkeypatch, text, *arguments):
    """Status, output and errors of a command that reads this text."""
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(text.encode())))
    return run(*arguments)


def test_predictions_through_pipes_are_those_of_files(files, tmp_path, monkeypatch):
    command = ["predict", "model.efm", "-", "--format", "csv", "--proba", "-o", "-"]
    status, out, err = piped(monkeypatch, files, *command)
    assert (status, err) == (0, "eigenfeat: 90 rows\n")
    assert run("predict", "model.efm", "rows.csv", "--proba", "-o", "found.csv")[0] == 0
    assert out == (tmp_path / "found.csv").read_text()
    assert len(list(csv.reader(io.StringIO(out)))) == 91


@pytest.mark.usefixtures("undrawn")
def test_a_model_fitted_to_standard_input_is_that_of_the_file(files, tmp_path, monkeypatch):
    command = ["fit", "-", "--format", "csv", *FIT, "-o", "piped.efm"]
    status, _, err = piped(monkeypatch, files, *command)
    assert (status, err) == (0, "")
    models = [load(tmp_path / name) for name in ("piped.efm", "model.efm")]
    rows = open_rows(tmp_path / "rows.csv", "kind")
    chances = [np.concatenate(list(one.predict_proba(rows))) for one in models]
    np.testing.assert_array_equal(*chances)
    command = ["evaluate", "piped.efm", "-", "--format", "csv", "--target", "kind"]
    said = piped(monkeypatch, files, *command)[1]
    assert "Measures come from rows that the model was fitted to, and are too good." in said
    command = ["report", "piped.efm", "-", "--format", "csv", "-o", "page.html"]
    assert piped(monkeypatch, files, *command)[0] == 0
    assert "standard input" in (tmp_path / "page.html").read_text()


@pytest.mark.long
def test_a_reader_may_stop(files, tmp_path):
    lines = files.splitlines(keepends=True)
    (tmp_path / "many.csv").write_text(lines[0] + "".join(lines[1:]) * 60)
    rows = open_rows(tmp_path / "rows.csv", "kind")
    save(gem_classifier(n_directions=1).fit(rows), tmp_path / "model.efm")
    program = " ".join(COMMAND)
    script = (
        f"set -o pipefail; cat many.csv | {program} predict model.efm - --format csv --proba -o - "
        "| head -2"
    )
    strict = {**os.environ, "PYTHONWARNINGS": "error"}
    found = subprocess.run(["bash", "-c", script], capture_output=True, text=True, env=strict)
    assert found.returncode == 0, found.stderr
    assert "Traceback" not in found.stderr
    assert len(found.stdout.splitlines()) == 2
