"""The options of every command with values that are missing, huge, text, NaN and the like.

A value that is refused ends with status 2, or 1 for a file, in one line that names the option, the
argument it stands for or the file, and nothing is written. No value ends in a traceback.
"""

from __future__ import annotations

import click
import numpy as np
import pytest
from command_line import run
from flat_gem import gem_classifier
from table_files import arrow_modules, csv_text

import eigenfeat as ef
from eigenfeat.cli import demo
from eigenfeat.cli.main import program

HUGE = "9" * 26
VALUES = ["none.file", "folder", "-1", f"-{HUGE}", HUGE, "1e999", "-inf", "word", "nan", "", "0"]
VALUES += ["3.5", "é", "a\nb", "tab", "x0", "kind"]

COMMANDS = {
    "demo": ["demo"],
    "moments": ["moments", "rows.csv", "--target", "kind", "-o", "out.efm"],
    "inspect": ["inspect", "rows.csv"],
    "fit": ["fit", "rows.csv", "--target", "kind", "-o", "out.efm"],
    "predict": ["predict", "model.efm", "rows.csv", "--columns", "x0,x1,x2", "-o", "out.csv"],
    "evaluate": [
        "evaluate",
        "model.efm",
        "rows.csv",
        "--target",
        "kind",
        "--columns",
        "x0,x1,x2",
    ],
    "search": ["search", "rows.csv", "--target", "kind", "-o", "out.efm", "--grid", "penalty=1"],
    "report": [
        *("report", "model.efm", "rows.csv", "--target", "kind", "--columns", "x0,x1,x2"),
        *("-o", "out.html"),
    ],
    "transform": [
        "transform",
        "features.efm",
        "rows.csv",
        "--columns",
        "x0,x1,x2",
        "-o",
        "out.npy",
    ],
}


SLOW = ("report", "search")  # a page is drawn, several models are fitted
OPTIONS = {
    name: [
        max(param.opts, key=len)
        for param in command.params
        if isinstance(param, click.Option) and not param.is_flag
    ]
    for name, command in program.commands.items()
}


def values_of(name, option):
    """Two values where an option comes for the first time, one of them in other quick commands."""
    owners = [other for other in OPTIONS if option in OPTIONS[other]]
    place = sum(map(len, [*OPTIONS[name][: OPTIONS[name].index(option)], option]))
    many = [VALUES[(place + 7 * j) % len(VALUES)] for j in range(2)]
    return many if name == owners[0] else many[: name not in SLOW]


# Columns and separators are wrong only in the light of what the files have: the message is about
# the column of labels, the columns of the model, or what is in a field.
ALSO_NAMED = {
    "--checkpoint": (".: Is a directory",),
    "--delimiter": ("--target: ", "--columns: ", "rows.csv: "),
    "--target": ("label", "--target", "--columns: "),
    "--columns": ("rows.csv: ", "--drop: ", "--columns"),
    "--drop": ("rows.csv: ", "--columns"),
    "--header": ("rows.csv: ", "--target: "),
    "--comment": ("rows.csv: ", "--target: ", "--columns: "),
    "--encoding": ("rows.csv: ", "--target: ", "--columns: "),
    "--format": ("rows.csv: ",),
}


@pytest.fixture(scope="module")
def files(tmp_path_factory):
    arrow_modules()
    folder = tmp_path_factory.mktemp("sweep")
    rng = np.random.default_rng(0)
    y = np.arange(90) % 3
    X = rng.standard_normal((90, 3)) * (1 + y[:, None])
    (folder / "rows.csv").write_text(csv_text(X, y))
    (folder / "folder").mkdir()
    ef.save(gem_classifier(n_directions=1).fit(X, y), folder / "model.efm")
    ef.save(ef.GEM(n_directions=1).fit(X, y), folder / "features.efm")
    ef.ClassMoments().update(X, y).save(folder / "rows.efm")
    return folder


def test_every_command_is_swept():
    assert set(COMMANDS) == set(program.commands)
    assert sum(map(len, OPTIONS.values())) > 50


@pytest.mark.parametrize("name", COMMANDS)
def test_the_commands_do_without_further_options(files, name, monkeypatch):
    monkeypatch.chdir(files)
    monkeypatch.setattr(demo, "demo", lambda _: 0)
    status, _, err = run(*COMMANDS[name])
    assert (status, err) == (0, "")
    clear(files)


def clear(folder):
    """Take away what commands have written; the names of what was left over."""
    known = {"rows.csv", "folder", "model.efm", "features.efm", "rows.efm"}
    found = [path for path in folder.iterdir() if path.name not in known]
    for path in found:
        path.unlink()
    return [path.name for path in found]


@pytest.mark.long
@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("name", [name for name in COMMANDS if OPTIONS[name]])
def test_odd_values_of_options(files, name, monkeypatch):
    monkeypatch.chdir(files)
    # A demonstration takes long: here it is what its options are that is of interest.
    monkeypatch.setattr(demo, "demo", lambda _: 0)
    wrong = []
    for option in OPTIONS[name]:
        for value in values_of(name, option):
            if "\n" in value and option == "--output":
                continue  # a name of a file like others
            status, _, err = run(*COMMANDS[name], f"{option}={value}")
            left = clear(files)
            if status == 0:
                continue
            last = (err.splitlines() or [""])[-1]
            named = (option, *ALSO_NAMED.get(option, ()))
            about_file = status == 1 and value and value in last
            says_what = any(text in last for text in named) or about_file
            lines = len(err.splitlines())
            good = (
                status in (1, 2)
                and says_what
                and "Traceback" not in err
                and lines == 1
                and not left
            )
            if not good:
                wrong.append((option, value, status, lines, left, last))
    assert wrong == []
    assert sorted(path.name for path in (files / "folder").iterdir()) == []


@pytest.mark.parametrize("command", ["moments", "fit", "predict"])
@pytest.mark.parametrize("place", ["folder", "nodir/x"])
@pytest.mark.parametrize("option", ["--output", "--checkpoint"])
def test_outputs_are_checked_before_samples_are_read(files, command, place, option, monkeypatch):
    """Rows that are bad in the middle would be complained of if they had been read first."""
    if option == "--checkpoint" and command != "moments":
        pytest.skip("a command without checkpoints")
    if command == "predict":
        place += ".csv"
        (files / "folder.csv").mkdir(exist_ok=True)
    monkeypatch.chdir(files)
    lines = (files / "rows.csv").read_text().splitlines()
    lines[50] = "word,1,1,0"
    (files / "bad.csv").write_text("\n".join(lines) + "\n")
    given = [command, "bad.csv", *COMMANDS[command][2:], f"{option}={place}"]
    if command == "predict":
        given[1:3] = ["model.efm", "bad.csv"]
    status, _, err = run(*given)
    assert status == 1
    assert err.splitlines()[-1].startswith(f"eigenfeat: {place.split('/')[0]}: "), err
    (files / "bad.csv").unlink()
    if command == "predict":
        (files / "folder.csv").rmdir()
    assert clear(files) == []
