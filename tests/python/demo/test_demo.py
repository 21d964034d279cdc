"""The command line, and the demonstration from end to end."""

from functools import partial

import numpy as np
import pandas as pd
from sklearn.discriminant_analysis import LinearDiscriminantAnalysis

from eigenfeat import ReliableClassifier, TableClassifier
from eigenfeat.cli import main as cli
from eigenfeat.demo import digits as demo
from eigenfeat.demo.early import signals, steps_table
from eigenfeat.demo.parcels import parcels


def test_the_demo_draws_a_table_and_pictures(tmp_path, capsys, monkeypatch):
    folder = tmp_path / "new" / "pictures"
    made, compare = [], demo.compare
    monkeypatch.setattr(demo, "PENALTIES", [1e-2])  # CI runs the demo with all of them
    monkeypatch.setattr(demo, "compare", lambda *a, **o: made.append(compare(*a, **o)) or made[-1])
    assert cli.main(["demo", "digits", "--splits", "1", "--output", str(folder)]) == 0
    out = capsys.readouterr().out
    (outcomes,) = made
    assert all(name in out for name in outcomes.index)
    assert str(folder) in out
    for stem in ("errors", "filters", "spectrum"):
        assert (folder / f"{stem}.png").read_bytes()[:4] == b"\x89PNG"
        assert f"{stem}.png" in out
    errors = outcomes["test error %"]
    assert errors["GEM"] < 0.7 * errors["pixels"]
    assert errors["GEM"] < errors["random directions"]
    assert outcomes["columns"].nunique() == 2


def test_the_demo_of_a_table_writes_what_the_readme_uses(tmp_path, capsys, monkeypatch):
    monkeypatch.setattr("eigenfeat.cli.demo.N_TRAIN", 120)  # CI runs the demo with all rows
    monkeypatch.setattr("eigenfeat.cli.demo.N_NEW", 60)
    quick = partial(TableClassifier, ["columns"])
    monkeypatch.setattr("eigenfeat.report.comparison.TableClassifier", quick)
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
    model = TableClassifier(["columns", "interactions"]).fit(X[:300], y[:300])
    assert model.score(X[300:], y[300:]) > np.mean(y[300:] == "in time") + 0.1


def test_the_demo_of_early_decisions(tmp_path, capsys):
    assert cli.main(["demo", "early", "--output", str(tmp_path / "new")]) == 0
    out = capsys.readouterr().out
    for text in ("One signal of 60 samples", "decided", "certified", "minimum cost"):
        assert text in out
    for stem in ("early-decision", "early-times"):
        assert (tmp_path / "new" / f"{stem}.png").read_bytes()[:4] == b"\x89PNG"


def test_a_signal_is_followed_to_its_decision(rng):
    X, y = signals(200, rng)
    model = ReliableClassifier(LinearDiscriminantAnalysis(), reliability=0.9).fit(X[:150], y[:150])
    early = model.predict_early(X[150:151])
    cells = [[*column.cells] for column in steps_table(model, X[150]).columns]
    assert (cells[0][-1], cells[2][-1]) == (str(early.time[0]), early.label[0])
    assert ["decided" in cell for cell in cells[3]] == [False] * (len(cells[3]) - 1) + [True]


def test_a_folder_that_cannot_be_made_is_one_line(tmp_path, capsys):
    (tmp_path / "taken").write_text("a file")
    assert cli.main(["demo", "--output", str(tmp_path / "taken")]) == 2
    err = capsys.readouterr().err
    assert "taken" in err
    assert len(err.splitlines()) == 1
