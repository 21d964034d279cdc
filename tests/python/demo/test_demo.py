"""The command line, and the demonstration from end to end."""

from __future__ import annotations

import subprocess
import sys

import numpy as np
import pandas as pd

from eigenfeat import TableClassifier
from eigenfeat.cli import main as cli
from eigenfeat.demo import digits as demo
from eigenfeat.demo import early as demo_early
from eigenfeat.demo.parcels import parcels


def test_the_demo_draws_a_table_and_pictures(tmp_path, capsys, monkeypatch):
    folder = tmp_path / "new" / "pictures"
    made, compare = [], demo.compare
    monkeypatch.setattr(demo, "compare", lambda *a, **o: made.append(compare(*a, **o)) or made[-1])
    assert cli.main(["demo", "digits", "--splits", "1", "--output", str(folder)]) == 0
    out = capsys.readouterr().out
    for name in (demo.PIXELS, demo.FOURIER, demo.RANDOM, demo.OURS):
        assert name in out
    assert str(folder) in out
    for stem in ("errors", "filters", "spectrum"):
        assert (folder / f"{stem}.png").read_bytes()[:4] == b"\x89PNG"
        assert f"{stem}.png" in out
    (outcomes,) = made
    errors = {name: outcome.errors[0] for name, outcome in outcomes.items()}
    assert errors[demo.OURS] < 0.7 * errors[demo.PIXELS]
    assert errors[demo.OURS] < errors[demo.RANDOM]
    assert len({outcomes[name].n_columns for name in errors if name != demo.PIXELS}) == 1


def test_the_demo_of_a_table_writes_what_the_readme_uses(tmp_path, capsys):
    assert cli.main(["demo", "table", "--output", str(tmp_path)]) == 0
    out = capsys.readouterr().out
    assert "TableClassifier" in out
    names = ["table.csv", "new.csv", "report.html", "models.png"]
    assert out.splitlines()[-1].endswith(f"Files in {tmp_path.resolve()}: {', '.join(names)}")
    assert sorted(path.name for path in tmp_path.iterdir()) == sorted(names)
    table = pd.read_csv(tmp_path / "table.csv")
    assert table.isna().any().drop("fate").all()
    assert "Parcels" in (tmp_path / "report.html").read_text()


def test_parcels_have_words_gaps_and_classes_that_a_model_finds():
    X, y = parcels(400, np.random.default_rng(1))
    again, _ = parcels(400, np.random.default_rng(1))
    pd.testing.assert_frame_equal(X, again)
    assert set(y) == {"in time", "late", "damaged"}
    assert 0.03 < X.isna().to_numpy().mean() < 0.09
    model = TableClassifier().fit(X[:300], y[:300])
    assert model.score(X[300:], y[300:]) > np.mean(y[300:] == "in time") + 0.1


def test_the_demo_of_early_decisions(tmp_path, capsys):
    assert cli.main(["demo", "early", "--output", str(tmp_path / "new")]) == 0
    out = capsys.readouterr().out
    for text in (
        "One signal of 60 samples",
        "decided",
        "certified",
        "minimum cost",
    ):
        assert text in out
    for stem in ("early-decision", "early-times"):
        assert (tmp_path / "new" / f"{stem}.png").read_bytes()[:4] == b"\x89PNG"


def test_the_early_demonstration_follows_a_signal_to_its_decision():
    shown = demo_early.demonstrate(1)
    early = shown.model.predict_early(shown.signal[None])
    last = shown.looks[-1]
    assert [look.decided for look in shown.looks] == [False] * (early.time[0] - 1) + [True]
    assert (last.seen, last.outlook.label) == (early.time[0], early.label[0])
    assert [look.value for look in shown.looks] == shown.signal[: last.seen].tolist()
    table = demo_early.looks_table(shown.looks)
    assert table.row_count <= demo_early.MAX_LINES + 3
    assert list(table.columns[0].cells)[-1] == str(last.seen)
    assert shown.scores["reliable, tau 0.95"].reliability > 0.9


def test_the_table_shows_mean_and_spread():
    outcome = demo.Outcome(errors=[0.01, 0.03], seconds=[1.0, 2.0], penalties=[0.1, 0.1])
    table = demo.table({"GEM": outcome}, "title")
    cells = [next(iter(column.cells)) for column in table.columns]
    assert cells == ["GEM", "0", "2.00", "1.41", "0.1", "1.50"]


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
