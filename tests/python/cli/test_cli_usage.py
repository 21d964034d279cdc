"""Wrong options and files of every command, help, and progress."""

import json
import os
import re
import shlex
import subprocess
import sys

import numpy as np
import pytest
from command_line import run
from flat_gem import gem_classifier
from table_files import csv_text

import eigenfeat as ef
from eigenfeat import ClassMoments, TableClassifier
from eigenfeat.cli import main as cli
from eigenfeat.cli.main import program


@pytest.fixture
def files(tmp_path, rng):
    y = np.arange(90) % 3
    X = rng.standard_normal((90, 3)) * (1 + y[:, None])
    (tmp_path / "rows.csv").write_text(csv_text(X, y))
    (tmp_path / "one.csv").write_text(csv_text(X, 0 * y))
    np.save(tmp_path / "other.npy", X)
    (tmp_path / "rows.svm").write_text("1 0:1 2:3\n0 1:1\n")
    (tmp_path / "link.csv").symlink_to(tmp_path / "rows.csv")
    ef.save(gem_classifier(n_directions=1).fit(X, y), tmp_path / "model.efm")
    ef.save(ef.GEM(n_directions=1).fit(X, y), tmp_path / "gem.efm")
    ef.save(ClassMoments().update(X, y), tmp_path / "rows.efm")
    return tmp_path


FIT = ("fit", "rows.csv", "--target", "kind", "-o", "out.efm")
GEM, LDG = (*FIT, "--model", "gem"), (*FIT, "--model", "ldg")
PREDICT = ("predict", "model.efm", "rows.csv")
EVALUATE = ("evaluate", "model.efm", "rows.csv", "--target", "kind")
REPORT = ("report", *EVALUATE[1:], "-o", "page.html")
COMPARE, SEARCH = ("compare", *FIT[1:4]), ("search", *FIT[1:])
INPUT = "--output: expected another file than the input"
RIDGE = "ridge: The 'ridge' parameter of GEM must be a float in the range [0.0, inf), a str among"
MISUSE = {
    (*GEM, "--set", "ridge=-1"): f"--set {RIDGE}",
    (*FIT, "--features", "--set", "ridge=-1"): f"--set {RIDGE}",
    ("fit", "--moments", "rows.efm", "-o", "x", "--set", "ridge=-1"): f"--set {RIDGE}",
    (*GEM, "--set", "ridge=much"): "Got 'much' instead.",
    (*GEM, "--set", "penalty=nan"): "--set penalty: The 'penalty' parameter of MultinomialLogit",
    (*FIT, "--memory", "-1"): "'--memory': -1.0 is not in the range x>=0",
    (*FIT, "--columns", ","): "--columns: rows.csv: expected at least one feature column, got none",
    (*FIT, "--delimiter", "xy"): "'--delimiter': expected one character or 'tab', got 'xy'",
    (*FIT, "--drop", "x7"): "--drop: expected a column of ",
    (*FIT[:3], "knid", *FIT[4:]): "got 'knid' (did you mean 'kind'?)",
    ("fit", "rows.csv", "-o", "x"): "--target: expected the column of labels, got none",
    ("fit", "rows.svm", "-o", "x", "--drop", "1"): "--drop: expected none with svmlight files",
    ("fit", "rows.svm", "-o", "x", "--no-zero-based"): "--zero-based: expected True for rows.svm",
    ("moments", "rows.csv", "--target", "9", "-o", "x"): "--target: expected a column of rows.csv",
    ("moments", "merge", "rows.efm", "-o", "x"): "merge: expected two files of moments or more",
    ("moments", *FIT[1:], "--every", "0"): "'--every': 0 is not in the range",
    FIT[:-2]: "Missing option '-o' / '--output'.",
    ("predict", "-o", "x.csv"): "Missing argument 'MODEL'.",
    ("frob",): "No such command 'frob'.",
    ("fit", "--targett", "x"): "No such option '--targett'. Did you mean '--target'?",
    (*PREDICT, "-o", "x.txt"): "--output: expected a name that ends in one of .csv .parquet .npy",
    (*PREDICT, "-o", "x.csv", "--columns", "x9"): "--columns: expected a column of rows.csv (x0,",
    ("transform", "rows.efm", "rows.csv", "-o", "x"): "--output: expected a name that ends in one",
    (*LDG, "--seed", "-1"): "'--seed': -1 is not in the range",
    (*LDG, "--set", "colour=3"): "--set colour: expected a parameter of LDG: ",
    (*LDG, "--set", "gamma=-1"): "--set gamma: The 'gamma' parameter of LDG",
    (*LDG, "--features"): "--features: expected none with --model ldg",
    (*FIT, "--set", "views=columns,x"): "--set views: expected 'auto' or distinct names out of",
    (*FIT, "--classifier", "lda"): "--classifier: expected none with --model table",
    (*FIT, "--set", "ridge"): "expected NAME=VALUE, got 'ridge'",
    (*FIT, "--model", "svm"): "'--model': 'svm' is not one of 'table', 'gem', 'ldg', 'reliable'",
    (*FIT[:-1], "-"): "--output: expected the name of a file, got -",
    (*FIT, "--moments", "rows.efm"): "--moments: expected no files of rows beside it, got rows.csv",
    ("fit", "-o", "x"): "DATA: expected files of rows, or --moments, got neither",
    ("fit", "--moments", "rows.efm", "-o", "x", "--set", "depth=2"): "--set depth: expected a para",
    (*SEARCH, "--grid", "colour=1"): "--grid colour: expected a parameter of GEMClassifier: catego",
    (*SEARCH, "--grid", "penalty=x"): "--grid penalty: The 'penalty' parameter of Multinomial",
    (*SEARCH, "--model", "table"): "'--model': 'table' is not one of 'gem', 'reliable'.",
    (*SEARCH, "--set", "powers=[5]"): "--set powers: expected",
    (*SEARCH, "--extractor", "pca"): "No such option",
    (*PREDICT[:2], "-", "-o", "-"): "--format: expected the format of standard input, got",
    (*PREDICT[:2], "-", "rows.csv", "-o", "-"): "DATA: expected - alone, got 2 names",
    ("moments", "-", *FIT[2:]): "DATA: expected names of files, got -",
    ("inspect", "rows.csv", "other.npy"): "DATA: expected none with rows.csv",
    EVALUATE[:3]: "--target: expected the column of labels, got none",
    (*EVALUATE, "--cv", "2", "--holdout", ".5"): "--cv: expected none with --holdout",
    (*EVALUATE, "--cv", "50"): "--cv: expected 2 to 30 folds, the number of samples of the largest",
    (*EVALUATE, "--holdout", "1.5"): "--holdout",
    (*REPORT, "--image-shape", "3x3"): "--image-shape: expected 3 pixels, got 3 x 3",
    (*REPORT, "--image-shape", "3"): "expected rows and columns, as 8x8",
    (*COMPARE, "--picture", "x.doc"): "--picture: expected a name that ends in one of .png",
    (*COMPARE, "--cv", "80"): "--cv: expected 2 to ",
    (*LDG, "--memory", "0"): "--memory: expected at most 0 GB of rows with --model ldg, got more",
    (*FIT, "--task", "regression", "--memory", "0"): "at most 0 GB of rows with --task regression",
    (*FIT, "--cv", "2", "--memory", "0"): "--memory: expected at most 0 GB of rows with --cv",
    (*SEARCH, "--memory", "0"): "--memory: expected at most 0 GB of rows with search, got more",
    (*COMPARE, "--memory", "0"): "--memory: expected at most 0 GB of rows with compare, got more",
    (*FIT[:-1], "rows.csv"): INPUT,
    (*FIT[:-1], "link.csv"): INPUT,
    ("moments", *FIT[1:-1], "rows.csv"): INPUT,
    ("moments", *FIT[1:], "--checkpoint", "rows.csv"): INPUT,
    (*PREDICT, "--columns", "x0,x1,x2", "-o", "rows.csv"): INPUT,
    ("moments", "merge", "rows.efm", "rows.efm", "-o", "rows.efm"): INPUT,
    ("fit", "--moments", "rows.efm", "-o", "rows.efm"): INPUT,
}


ONE = "one.csv: column 'kind': expected samples of at least two classes, got 1 class (0)"
FAILURES = {
    ("fit", "none.csv", "--target", "kind", "-o", "x"): "none.csv: No such file or directory",
    ("fit", "model.efm", "--target", "kind", "-o", "x"): "model.efm: expected a name that ends in",
    (*FIT[:-1], "nodir/x"): "nodir: No such file or directory",
    (*REPORT[:-1], "nodir/page.html"): "nodir: No such file or directory",
    ("fit", "one.csv", *FIT[2:]): ONE,
    ("fit", "one.csv", *FIT[2:], "--cv", "2"): ONE,
    ("compare", "one.csv", *FIT[2:4]): ONE,
    ("evaluate", "model.efm", "one.csv", *FIT[2:4], "--cv", "2"): ONE,
    ("predict", "rows.efm", "rows.csv", "-o", "x.csv"): "rows.efm: expected a classifier or a re",
    ("predict", "gem.efm", "rows.csv", "-o", "x.csv"): "gem.efm: expected a classifier or a regr",
    ("predict", "rows.csv", "rows.csv", "-o", "x.csv"): "rows.csv: not an eigenfeat file",
    ("transform", *PREDICT[1:], "-o", "x.csv"): "expected a model of features (fit --features)",
    ("report", "rows.efm", *REPORT[2:]): "rows.efm: expected a model, got ClassMoments",
    ("evaluate", "rows.efm", "rows.csv"): "rows.efm: expected a model, got ClassMoments",
    (*EVALUATE, "--weight", "x0"): "rows.csv: column 'x0': expected finite numbers >= 0, got",
    ("inspect", "."): ".: expected one file, got a folder",
}


@pytest.mark.parametrize("command", MISUSE | FAILURES, ids=lambda command: " ".join(command)[:60])
def test_an_error_is_a_line_and_a_status_and_changes_no_file(files, command, monkeypatch):
    monkeypatch.chdir(files)
    before = {path.name: path.read_bytes() for path in files.iterdir()}
    text = (MISUSE | FAILURES)[command]
    kind, expected = ("usage", 2) if command in MISUSE else ("data", 1)
    kind = "file" if "No such file" in text or "a folder" in text else kind
    status, out, err = run(*command)
    assert (status, out) == (expected, "")
    assert text in err.splitlines()[-1]
    assert "Traceback" not in err
    status, out, err = run(*command, "--json")
    found = json.loads(out)
    assert (status, found["kind"], found["exit"]) == (expected, kind, expected)
    assert err in ("", "eigenfeat: more rows than --memory: fitting block by block\n")
    assert text in found["error"]
    assert {path.name: path.read_bytes() for path in files.iterdir()} == before


def test_a_model_with_names_takes_columns_without(files, monkeypatch):
    monkeypatch.chdir(files)
    assert run(*FIT, "--set", "views=columns")[0] == 0  # the model knows names of columns
    status, _, err = run("predict", "out.efm", "other.npy", "-o", "x.csv")
    assert (status, err) == (0, "")


def test_no_command_shows_the_commands():
    assert run() == run("--help")
    assert run()[0] == 0


@pytest.mark.parametrize("name", [*program.commands])
def test_help_of_every_command(name):
    status, out, err = run(*name.split(), "--help")
    assert (status, err) == (0, "")
    assert out.startswith(f"Usage: eigenfeat {name} ")
    assert all(len(line) <= 100 for line in out.splitlines())


def test_shells_complete():
    ask = {**os.environ, "_EIGENFEAT_COMPLETE": "bash_complete", "COMP_WORDS": "eigenfeat ev"}
    command = [sys.executable, "-m", "eigenfeat"]
    ask["COMP_CWORD"] = "1"
    done = subprocess.run(command, env=ask, capture_output=True, text=True, check=True)
    assert "evaluate" in done.stdout


def test_escape_sequences_do_not_reach_the_terminal(files, monkeypatch):
    monkeypatch.chdir(files)
    wild = "a\x1b[31mred"
    rows = "".join(f"{i % 7},{i % 3},{wild if i % 2 else 'b'}\n" for i in range(60))
    (files / "wild.csv").write_text(f"u\x1b]0;x,v,kind\n{rows}")
    for command in (
        ("fit", "wild.csv", "--target", "kind", "-o", "wild.efm"),
        ("inspect", "wild.efm"),
        ("inspect", "wild.csv"),
        ("evaluate", "wild.efm", "wild.csv", "--target", "kind"),
        ("fit", "wild\x1b.csv", "--target", "kind", "-o", "x"),
        ("fit", "wild.csv", "--target", "k\x1b", "-o", "x"),
    ):
        _, out, err = run(*command)
        assert out + err
        assert "\x1b" not in out + err


def test_fields_between_tabs(files, monkeypatch):
    monkeypatch.chdir(files)
    (files / "tabs.csv").write_text((files / "rows.csv").read_text().replace(",", "\t"))
    command = ("fit", "tabs.csv", *FIT[2:], "--set", "views=columns")
    status, out, err = run(*command, "--delimiter", "tab", "--columns", "x0")
    assert (status, " 1 feature, 3 classes" in out, err) == (0, True, "")


@pytest.mark.usefixtures("undrawn")
def test_a_model_remembers_how_its_files_are_written(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    rng = np.random.default_rng(0)
    x = rng.standard_normal((60, 2))
    kinds = np.where(x[:, 0] > 0, "m\u00f6we", "gans")
    lines = [f"{a:.4f},{b:.4f},{kind}" for (a, b), kind in zip(x, kinds, strict=True)]
    plain = "\n".join(["a,b,kind", *lines, ""])
    (tmp_path / "plain.csv").write_text(plain)
    written = "# 2024\n" + plain.replace(",", ";").replace(".", ",")
    (tmp_path / "rows.csv").write_text(written, encoding="latin-1")
    given = ("--delimiter", ";", "--decimal", ",", "--encoding", "latin-1", "--comment", "#")
    fit = ("fit", "rows.csv", "--target", "kind", "-o", "m.efm", "--set", "views=columns")
    assert run(*fit, *given)[0] == 0
    for command in (("evaluate", "m.efm"), ("inspect", "m.efm"), ("report", "m.efm")):
        more = ("-o", "page.html") if command[0] == "report" else ()
        found, expected = (run(*command, "rows.csv", *more, *one) for one in ((), given))
        assert (found[0], found[2]) == (0, expected[2])
    predict = ("predict", "m.efm", "-o", "found.csv")
    status, out, err = run(*predict, "rows.csv")
    assert (status, out[:18], err) == (0, "found.csv: 60 rows", "")
    found = (tmp_path / "found.csv").read_text()
    (tmp_path / "utf8.csv").write_text(written, encoding="utf-8")
    status, out, err = run("evaluate", "m.efm", "utf8.csv")
    assert (status, "m\u00f6we" in out, "\u00c3" in out) == (0, True, False), err
    end = "; read with --decimal ',' --delimiter ';' --comment '#', as in the fit of m.efm"
    for command in (predict, ("evaluate", "m.efm")):
        status, _, err = run(*command, "plain.csv")
        assert (status > 0, end in err) == (True, True), err
    others = ("--delimiter", ",", "--decimal", ".", "--encoding", "utf-8")
    assert run(*predict, "plain.csv", *others)[0] == 0
    assert (tmp_path / "found.csv").read_text() == found
    assert (
        "expected a character other than the delimiter"
        in run(*predict, "plain.csv", *others[:2])[2]
    )


def test_progress_ends_at_the_end(files, monkeypatch):
    monkeypatch.chdir(files)
    predict = ("predict", "out.efm", "rows.csv", "-o", "x.csv")
    for command in ((*FIT, "--set", "views=columns"), predict, ("moments", *FIT[1:])):
        status, _, err = run(*command, "--progress")
        assert status == 0
        lines = err.splitlines()
        assert re.fullmatch(r"\w+: 90 rows, [\d,]+ rows/s 100% 0:00:00", lines[-1])
        assert " 0%" not in err
    err = run(*FIT, "--progress", "--memory", "0")[2]
    assert "%" not in err  # it went through the first block alone


def test_numerical_errors_are_one_line(files, monkeypatch):
    def fit(*_):
        raise FloatingPointError("the Gram matrix of the features cannot be factorised")

    monkeypatch.chdir(files)
    monkeypatch.setattr(TableClassifier, "fit", fit)
    status, out, err = run(*FIT)
    assert (status, out) == (1, "")
    assert err == "eigenfeat: the Gram matrix of the features cannot be factorised\n"


@pytest.mark.parametrize("place", ["folder", "nodir/x"])
@pytest.mark.parametrize(
    "command",
    [
        ("fit", "bad.csv", "--target", "kind", "-o"),
        ("predict", "model.efm", "bad.csv", "--columns", "x0,x1,x2", "-o"),
        ("moments", "bad.csv", "--target", "kind", "-o", "out.efm", "--checkpoint"),
    ],
    ids=lambda command: command[0],
)
def test_outputs_are_checked_before_samples_are_read(files, command, place, monkeypatch):
    """The input has bad rows, which would be reported if the input were read first."""
    monkeypatch.chdir(files)
    place += ".csv"
    (files / "folder.csv").mkdir()
    lines = (files / "rows.csv").read_text().splitlines()
    lines[50] = "word,1,1,0"
    (files / "bad.csv").write_text("\n".join(lines) + "\n")
    before = sorted(files.iterdir())
    status, _, err = run(*command, place)
    assert status == 1
    assert err.splitlines()[-1].startswith(f"eigenfeat: {place.split('/')[0]}: "), err
    assert sorted(files.iterdir()) == before


@pytest.mark.skipif(not os.path.exists("/dev/full"), reason="this system has no /dev/full")
@pytest.mark.parametrize(
    ("command", "expected", "error"),
    [
        (("--help",), 1, "standard output: No space left on device"),
        (("frob", "--json"), 2, "No such command 'frob'."),
    ],
)
def test_standard_output_without_room(command, expected, error):
    with open("/dev/full", "w") as full:
        program = [sys.executable, "-m", "eigenfeat", *command]
        done = subprocess.run(program, stdout=full, stderr=subprocess.PIPE, text=True, check=False)
    assert (done.returncode, done.stderr) == (expected, f"eigenfeat: {error}\n")


@pytest.mark.skipif(not os.path.exists("/dev/full"), reason="this system has no /dev/full")
def test_output_of_a_command_without_room(files, monkeypatch, capsys):
    monkeypatch.chdir(files)
    with open("/dev/full", "w") as full:
        monkeypatch.setattr(sys, "stdout", full)
        assert cli.main(["inspect", "rows.csv", "--json"]) == 1
    assert capsys.readouterr().err == "eigenfeat: standard output: No space left on device\n"


@pytest.mark.skipif(os.name != "posix", reason="needs a POSIX shell")
@pytest.mark.parametrize(
    ("command", "closed"),
    [("--help", "2>&- >/dev/null"), ("--help", ">&-"), ("inspect rows.csv", ">&- 2>&-")],
)
def test_closed_standard_streams(files, command, closed):
    program = f"{shlex.quote(sys.executable)} -m eigenfeat {command} {closed}"
    assert subprocess.run(program, shell=True, cwd=files, check=False).returncode == 0


@pytest.mark.filterwarnings("default")
def test_warnings_are_one_line_without_code(files, monkeypatch):
    monkeypatch.chdir(files)
    lines = (files / "rows.csv").read_text().splitlines()
    notes = [f"note {i} of many,{line}" for i, line in enumerate(lines)]
    (files / "notes.csv").write_text("\n".join(["note," + lines[0], *notes[1:]]) + "\n")
    fit = ("fit", "notes.csv", *FIT[2:], "--set", "views=columns")
    status, _, err = run(*fit)
    assert status == 0
    assert re.fullmatch(r"warning: [^\n]*'note'[^\n]*\n", err)


def test_a_row_and_an_error_are_singular(files, monkeypatch):
    monkeypatch.chdir(files)
    lines = (files / "rows.csv").read_text().splitlines()
    (files / "row.csv").write_text(f"{lines[0]}\n{lines[1]}\n")
    command = ("predict", "model.efm", "row.csv", "--drop", "kind", "-o", "x.csv")
    assert "x.csv: 1 row, " in run(*command)[1]
    wrong = (int((files / "x.csv").read_text().split()[1]) + 1) % 3
    (files / "row.csv").write_text(f"{lines[0]}\n{lines[1].rpartition(',')[0]},{wrong}\n")
    said = run("evaluate", "model.efm", "row.csv", *EVALUATE[3:])[1]
    assert ": 1 error in 1 row (100.0%)" in said
