"""The command line, and the demonstration from end to end."""

from __future__ import annotations

import csv
import subprocess
import sys

import numpy as np

from eigenfeat.cli import main as cli
from eigenfeat.demo import datasets, report
from eigenfeat.demo import digits as demo


def test_the_demo_draws_a_table_and_pictures(tmp_path, capsys):
    folder = tmp_path / "new" / "pictures"
    assert cli.main(["demo", "--quick", "--splits", "1", "--output", str(folder)]) == 0
    out = capsys.readouterr().out
    for name in (demo.PIXELS, demo.FOURIER, demo.RANDOM, demo.OURS):
        assert name in out
    assert str(folder) in out
    for stem in ("errors", "filters", "projections", "spectrum"):
        assert (folder / f"{stem}.png").read_bytes()[:4] == b"\x89PNG"
        assert f"{stem}.png" in out
    with (folder / "errors.csv").open(newline="") as file:
        lines = {line["method"]: line for line in csv.DictReader(file)}
    errors = {name: float(line["error"]) for name, line in lines.items()}
    assert errors[demo.OURS] < 0.7 * errors[demo.PIXELS]
    assert errors[demo.OURS] < errors[demo.RANDOM]
    sizes = {line["columns"] for name, line in lines.items() if name != demo.PIXELS}
    assert len(sizes) == 1


def test_splits_are_stratified_disjoint_and_repeatable():
    y = np.repeat(np.arange(4), 25)
    first, again, other = (list(datasets.random_splits(y, 3, 0.4, s)) for s in (0, 0, 1))
    for one, two in zip(first, again, strict=True):
        assert np.array_equal(one.train, two.train)
        assert sorted([*one.train, *one.test]) == list(range(100))
        assert np.bincount(y[one.test]).tolist() == [10] * 4
    assert not np.array_equal(first[0].train, other[0].train)
    assert not np.array_equal(first[0].train, first[1].train)


def test_the_table_shows_mean_and_spread(tmp_path):
    outcome = demo.Outcome(errors=[0.01, 0.03], seconds=[1.0, 2.0], penalties=[0.1, 0.1])
    table = report.comparison_table({"GEM": outcome}, "title")
    cells = [next(iter(column.cells)) for column in table.columns]
    assert cells == ["GEM", "0", "2.00", "1.41", "0.1", "1.50"]
    report.write_csv({"GEM": outcome}, tmp_path / "errors.csv")
    assert len((tmp_path / "errors.csv").read_text().splitlines()) == 3


def test_a_folder_that_cannot_be_made_is_one_line(tmp_path, capsys):
    (tmp_path / "taken").write_text("a file")
    assert cli.main(["demo", "--output", str(tmp_path / "taken")]) == 2
    err = capsys.readouterr().err
    assert "taken" in err
    assert len(err.splitlines()) == 1


def test_the_module_runs():
    run = subprocess.run(
        [sys.executable, "-m", "eigenfeat", "--version"], capture_output=True, text=True, check=True
    )
    assert run.stdout.startswith("eigenfeat ")
    assert run.stderr == ""
