"""Errors of unreadable rows name the file, the row or line, the column, and the expected value."""

import pickle
import re

import numpy as np
import pytest
from table_files import csv_text, table_of, write_rows, write_table

from eigenfeat import TableClassifier, open_rows
from eigenfeat.exceptions import BadRowError
from eigenfeat.io.errors import OptionError


def read(path, *arguments, **options):
    return list(open_rows(path, *arguments, **options))


def message(path, text):
    return "^" + re.escape(f"{path}: {text}") + "$"


GOOD = ["1,2,a", "3,4,b", "5,6,a"]
LINES = {
    "1,2": "line 4: expected 3 fields, got 2",
    "1,zwei,a": "line 4, column 'v': expected a number, got 'zwei'",
    "0x1,2,a": "line 4, column 'u': expected a number, got '0x1'",
    ",2,a": "line 4, column 'u': expected a number, got a missing value",
    "1,nan,a": "line 4, column 'v': expected a number, got a missing value",
    "-inf,2,a": "line 4, column 'u': expected a finite float64 number, got '-inf'",
    "1,1e999,a": "line 4, column 'v': expected a finite float64 number, got '1e999'",
    "1,2,": "line 4, column 'kind': expected a label, got a missing value",
}


@pytest.mark.parametrize("line", LINES)
def test_csv_lines(tmp_path, line):
    path = tmp_path / "a.csv"
    path.write_text("\n".join(["u,v,kind", *GOOD[:2], line, GOOD[2]]) + "\n")
    with pytest.raises(BadRowError, match=message(path, LINES[line])):
        read(path, "kind")
    found = open_rows(path, "kind", skip_bad=True)
    assert found.n_rows == 3
    [(block, position)] = found.blocks()
    assert block.X.tolist() == [[1, 2], [3, 4], [5, 6]]
    assert block.y.tolist() == ["a", "b", "a"]
    assert (position.rows, position.skipped) == (3, 1)


def test_errors_can_be_pickled(tmp_path):
    """Errors of worker processes are pickled."""
    path = tmp_path / "a.csv"
    path.write_text("u,kind\n1,a\nx,b\n")
    for target in ("kind", "knid"):
        with pytest.raises(ValueError, match=r"a\.csv") as caught:
            read(path, target)
        copy = pickle.loads(pickle.dumps(caught.value))
        assert (type(copy), str(copy)) == (type(caught.value), str(caught.value))
        assert vars(copy) == vars(caught.value)


def test_csv_float32_overflow(tmp_path):
    path = tmp_path / "a.csv"
    path.write_text("u,kind\n1,a\n-1e39,b\n")
    text = "line 3, column 'u': expected a finite float32 number, got '-1e39'"
    with pytest.raises(BadRowError, match=message(path, text)):
        read(path, "kind", dtype="float32")
    assert read(path, "kind")[0].X.tolist() == [[1], [-1e39]]


@pytest.mark.parametrize(
    ("labels", "bad", "text"),
    [
        (["1", "2"], "1.5", "expected a whole number of 64 bits like earlier labels, got '1.5'"),
        (["0.5", "2"], "one", "expected a number like earlier labels, got 'one'"),
        (["true", "false"], "maybe", "expected true or false like earlier labels, got 'maybe'"),
    ],
)
def test_csv_labels_of_another_kind(tmp_path, labels, bad, text, monkeypatch):
    from eigenfeat.io import delimited

    monkeypatch.setattr(delimited, "_MIN_BLOCK_BYTES", 60)
    monkeypatch.setattr(delimited, "_SCANNED_BYTES", 60)
    path = tmp_path / "a.csv"
    path.write_text("u,kind\n" + "".join(f"1,{label}\n" for label in [*labels * 15, bad]))
    with pytest.raises(BadRowError, match=message(path, f"line 32, column 'kind': {text}")):
        read(path, "kind")
    kept = read(path, "kind", skip_bad=True)
    assert sum(len(block) for block in kept) == 30
    found = read(path, "kind", labels="str")[0].y.tolist()
    assert found == [*labels * 15, bad]


def test_many_bad_csv_lines_are_counted_from_any_position(tmp_path, rng, monkeypatch):
    from eigenfeat.io import delimited

    monkeypatch.setattr(delimited, "_BLOCK_BYTES", 2000)
    X = rng.standard_normal((3000, 3))
    lines = csv_text(X, np.arange(3000) % 2).splitlines()
    wrong = rng.choice(3000, 400, replace=False)
    for i, text in zip(
        wrong, ["1,2", "a,b,c,1", "1,,3,0", "1,2,3,", "1,nan,3,1"] * 80, strict=True
    ):
        lines[i + 1] = text
    path = tmp_path / "a.csv"
    path.write_text("\n".join(lines))
    found = open_rows(path, "kind", skip_bad=True, block_rows=100)
    good = np.setdiff1d(np.arange(3000), wrong)
    whole = list(found.blocks())
    np.testing.assert_array_equal(np.concatenate([b.X for b, _ in whole]), X[good])
    assert [len(b) for b, _ in whole] == [100] * 26
    assert whole[-1][1].rows == 2600
    for index in range(0, 25, 4):
        rest = list(found.blocks(whole[index][1]))
        assert [position for _, position in rest] == [p for _, p in whole[index + 1 :]]
        np.testing.assert_array_equal(rest[0][0].X, whole[index + 1][0].X)
    assert whole[-1][1].skipped == 400 - sum(wrong > good[-1])


def test_text_columns_are_named(tmp_path):
    X, y = np.arange(6.0).reshape(3, 2), ["a", "b", "a"]
    text = "column 'kind': expected numbers, got {}; leave it out with drop (--drop kind) or name "
    text += "the columns of numbers in columns (--columns)"
    (tmp_path / "a.csv").write_text(csv_text(X, y))
    with pytest.raises(ValueError, match=message(tmp_path / "a.csv", text.format("text"))):
        read(tmp_path / "a.csv")
    for name in ("a.parquet", "a.feather"):
        write_table(tmp_path / name, table_of(X, y))
        with pytest.raises(ValueError, match=message(tmp_path / name, text.format("text"))):
            read(tmp_path / name)
        assert read(tmp_path / name, drop=["kind"])[0].X.tolist() == X.tolist()


@pytest.mark.parametrize("name", ["a.parquet", "stream.arrow", "a.npy"])
def test_rows_of_tables_and_arrays(tmp_path, name):
    X, labels = np.arange(2000.0).reshape(1000, 2), np.arange(1000) % 3 + 0.0
    X[[7, 612, 999], [1, 1, 0]] = np.nan, np.inf, np.nan
    labels[[611, 940]] = np.nan
    path, target = write_rows(tmp_path, name, X, labels)
    names, label = ("x0", "x1"), "row 611, column 'kind'"
    if name == "a.npy":
        names, label = ("0", "1"), "labels.npy: row 611"
    for options, text in (
        (target, f"row 7, column '{names[1]}': expected a finite number, got NaN or a missing"),
        (target | {"columns": [0]}, f"{label}: expected a label, got a missing value"),
        ({"columns": [0]}, f"row 999, column '{names[0]}': expected a finite number, got NaN"),
        (
            {"columns": [1], "missing": True},
            f"row 612, column '{names[1]}': expected a finite float64 number, got inf",
        ),
    ):
        with pytest.raises(BadRowError, match=re.escape(text)):
            read(path, **options)
    found = open_rows(path, skip_bad=True, block_rows=100, **target)
    whole = list(found.blocks())
    assert (whole[-1][1].rows, whole[-1][1].skipped) == (995, 5)
    np.testing.assert_array_equal(
        np.concatenate([b.X for b, _ in whole]), np.delete(X, [7, 611, 612, 940, 999], axis=0)
    )
    assert [p for _, p in found.blocks(whole[5][1])] == [p for _, p in whole[6:]]


def test_numpy_float32_overflow(tmp_path):
    np.save(tmp_path / "a.npy", np.array([[1e39, 0]]))
    with pytest.raises(BadRowError, match=r"row 0, column '0': expected a finite float32 number"):
        read(tmp_path / "a.npy", dtype="float32")


def test_numpy_labels_that_are_not_whole(tmp_path):
    column = np.zeros(70000)
    column[69999] = 0.5
    path = tmp_path / "a.npy"
    np.save(path, np.column_stack([np.ones(70000), column]))
    text = "row 69999, column '1': expected a whole number of 64 bits like earlier labels, got 0.5"
    with pytest.raises(BadRowError, match=message(path, text)):
        read(path, 1)
    assert {len(b.y) for b in read(path, 1, labels="float")} == {70000}


SVMLIGHT = {
    "1 2": "line 3: expected LABEL COLUMN:NUMBER ..., got '1 2' (",
    "1 2:x": "line 3: expected LABEL COLUMN:NUMBER ..., got '1 2:x' (could not convert string",
    "1 2:nan": "line 3: expected a finite float64 number, got nan",
    "1 -2:3": "line 3: expected LABEL COLUMN:NUMBER ..., got '1 -2:3' (Invalid index -2",
    "1 3:1 2:1": "line 3: expected LABEL COLUMN:NUMBER ..., got '1 3:1 2:1' (Feature indices",
    "cat 2:3": "line 3: expected LABEL COLUMN:NUMBER ..., got 'cat 2:3' (could not convert",
    "nan 1:1": "line 3: expected a label, got a missing value",
    "1 0:3": "line 3: expected columns from 1, got 0; set zero_based=True (--zero-based)",
    "1 5:3": "line 3: expected columns up to 4, got 5: n_features is too small",
    "1.5 1:3": "line 3, column 'label': expected a whole number of 64 bits, got 1.5",
}


@pytest.mark.parametrize("line", SVMLIGHT)
def test_svmlight_lines(tmp_path, line):
    path = tmp_path / "a.svm"
    path.write_text(f"1 1:2 # first\n2 4:1\n{line}\n1 1:2\n")
    options = {"n_features": 4, "labels": "int"}
    with pytest.raises(BadRowError, match="^" + re.escape(f"{path}: {SVMLIGHT[line]}")):
        read(path, **options)
    found = open_rows(path, skip_bad=True, **options)
    [(block, position)] = found.blocks()
    assert block.X.toarray().tolist() == [[2, 0, 0, 0], [0, 0, 0, 1], [2, 0, 0, 0]]
    assert block.y.tolist() == [1, 2, 1]
    assert position.skipped == 1
    (block,) = open_rows(path, mark_bad=True, **options)  # `mark_bad` accepts bad labels
    assert block.y.tolist() == [False, False, "1.5" not in line, False]


def test_files_of_another_format_than_their_suffix(tmp_path):
    for name in ("a.parquet", "a.arrow", "a.npy"):
        (tmp_path / name).write_bytes(b"other bytes" * 10)
        with pytest.raises(ValueError, match=f"^{re.escape(str(tmp_path / name))}: expected an? "):
            read(tmp_path / name)
    (tmp_path / "a.csv").write_text("\n\n")
    with pytest.raises(
        ValueError, match=message(tmp_path / "a.csv", "expected rows, got an empty file")
    ):
        read(tmp_path / "a.csv")
    (tmp_path / "a.csv").write_text("u,kind\n")
    with pytest.raises(ValueError, match=r"a\.csv: expected rows, got a header alone$"):
        read(tmp_path / "a.csv")
    (tmp_path / "a.csv").write_bytes("u,kind\n1,\u00e9\n".encode("latin-1"))
    with pytest.raises(
        ValueError, match=r"a\.csv: line 2: expected text in UTF-8, got b'1,\\xe9'; set encoding"
    ):
        open_rows(tmp_path / "a.csv", "kind")
    (tmp_path / "a.csv").write_bytes(b"u,kind\n" + b"1,a\n" * 300_000 + b"1,\xe9\n")
    with pytest.raises(ValueError, match=r"a\.csv: line 300002: expected text in UTF-8, got b'1,"):
        read(tmp_path / "a.csv", "kind")
    for shape in ((3,), (2, 2, 2)):
        np.save(tmp_path / "a.npy", np.ones(shape))
        with pytest.raises(ValueError, match=r"a\.npy: expected a matrix of real numbers"):
            read(tmp_path / "a.npy")


def test_invalid_arguments(tmp_path):
    (tmp_path / "a.csv").write_text("size,kind\n1,a\n2,b\n")
    (tmp_path / "b.csv").write_text("weight,kind\n1,a\n2,b\n")
    path = tmp_path / "a.csv"
    listed = re.escape(f"expected a column of {path} (size, kind)")
    for options, text in (
        ({"target": "knid"}, rf"^target: {listed}, got 'knid' \(did you mean 'kind'\?\)$"),
        ({"target": None, "drop": ["x"]}, rf"^drop: {listed}, got 'x'$"),
        ({"target": None, "columns": [2]}, rf"^columns: {listed}, got 2$"),
        (
            {"target": "kind", "columns": ["kind"]},
            r"^target: expected a column that is not a feature, got",
        ),
        ({"target": "kind", "drop": ["size"]}, r"expected at least one feature column, got none$"),
        (
            {"labels": "date"},
            r"^labels: expected one of auto, int, float, bool, str, none, got 'date'$",
        ),
        ({"labels": "none"}, r"^labels: expected a type of labels with a target, got 'none'$"),
        ({"block_rows": 0}, r"^block_rows: expected an integer >= 1, got 0$"),
        ({"dtype": "int32"}, r"^dtype: expected None, float32 or float64, got 'int32'$"),
        (
            {"delimiter": "\u00e9"},
            r"^delimiter: expected an ASCII character that can sep.*, got '.'$",
        ),
        (
            {"delimiter": "\n"},
            r"^delimiter: expected an ASCII character that can separate fields, got",
        ),
        ({"delimiter": ";;"}, r"^delimiter: expected one character, got ';;'$"),
        ({"format": "xls"}, r"expected a name that ends in one of \.csv"),
        ({"encoding": "klingon"}, "^encoding: expected the name of a Python codec"),
        ({"decimal": ","}, "^decimal: expected a character other than the delimiter"),
        ({"comment": '"'}, "^comment: expected text that begins a line"),
    ):
        with pytest.raises(ValueError, match=text):
            open_rows(path, **{"target": "kind", **options})
    text = r"b\.csv: expected the feature columns of .*a\.csv \(\['size'\]\), got \['weight'\]$"
    with pytest.raises(ValueError, match=text):
        open_rows(tmp_path, "kind")
    (tmp_path / "b.csv").write_text("a;b\n1;2\n")
    with pytest.raises(ValueError, match=r"^delimiter: .*delimiter=';' \(--delimiter ';'\)"):
        open_rows(tmp_path / "b.csv")
    with pytest.raises(FileNotFoundError, match="none"):
        open_rows(tmp_path / "none.csv")
    with pytest.raises(FileNotFoundError, match="none"):
        open_rows(tmp_path / "none*.csv")
    (tmp_path / "empty").mkdir()
    with pytest.raises(ValueError, match=r"empty: expected a folder with files of csv, parquet"):
        open_rows(tmp_path / "empty")


def test_errors_suggest_another_decimal_point(tmp_path):
    path = tmp_path / "rows.csv"
    path.write_text("size;kind\n170,5;p\n180,25;q\n")
    with pytest.raises(BadRowError, match=r"got '170,5'; if ',' is the decimal point, set deci"):
        list(open_rows(path, "kind", delimiter=";"))
    assert [block.X.tolist() for block in open_rows(path, "kind", delimiter=";", decimal=",")] == [
        [[170.5], [180.25]]
    ]
    path.write_text("size;kind\n170,5;p\n180.25;q\n")
    with pytest.raises(BadRowError, match=r"got '180.25'; if '.' is the decimal point"):
        list(open_rows(path, "kind", delimiter=";", decimal=","))
    with pytest.raises(OptionError, match=r"decimal: .* which delimiter \(--delimiter\) sets"):
        open_rows(path, "kind", decimal=",")


def test_errors_of_targets_suggest_another_decimal_point(tmp_path):
    path = tmp_path / "rows.csv"
    for text, advice in (
        ("1,000,000.50", "; remove the separators of thousands"),
        ("1,5", "; if ',' is the decimal point, set decimal=',' (--decimal ,); if ',' separates "),
    ):
        path.write_text(f'size;price\n1;2\n2;"{text}"\n')
        with pytest.raises(BadRowError, match=re.escape(f"got '{text}'{advice}")):
            list(open_rows(path, "price", delimiter=";", labels="float"))


def test_the_first_bad_row_is_named_if_all_rows_are_bad(tmp_path):
    path = tmp_path / "rows.tsv"
    path.write_text("size\tkind\n170,5\tp\n180,25\tq\n")
    with pytest.raises(
        ValueError, match=r"rows.tsv: .* none; 2 bad rows .* the first: line 2, column 's"
    ):
        TableClassifier().fit(open_rows(path, "kind", skip_bad=True))


def test_errors_suggest_an_encoding_or_csv(tmp_path):
    path = tmp_path / "rows.csv"
    path.write_text("size,kind\n1,p\n2,q\n", encoding="utf-16")
    with pytest.raises(ValueError, match=r"set encoding \(--encoding\), for example to utf-16"):
        open_rows(path, "kind")
    assert [block.X.tolist() for block in open_rows(path, "kind", encoding="utf-16")] == [
        [[1.0], [2.0]]
    ]
    (tmp_path / "book.xlsx").write_bytes(b"PK")
    with pytest.raises(ValueError, match=r"book.xlsx: .* svmlight\); save the sheet as CSV"):
        open_rows(tmp_path / "book.xlsx", "kind")
