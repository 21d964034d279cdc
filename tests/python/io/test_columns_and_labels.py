"""Columns and labels of files: names, header, index, types, encodings; models remember them."""

import gzip
import warnings

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
from command_line import run
from every_estimator import ESTIMATORS
from hypothesis import given, settings
from hypothesis import strategies as st
from pyarrow import parquet
from table_files import write_table

import eigenfeat as ef
from eigenfeat import TableClassifier, open_rows
from eigenfeat.exceptions import BadRowError
from eigenfeat.io import delimited
from eigenfeat.io.errors import OptionError


def labels_of(rows):
    return [label for block in rows for label in block.y.tolist()]


def matrix_of(rows):
    return np.concatenate([block.X for block in rows])


@pytest.fixture
def table(rng):
    X = rng.normal(size=(200, 3)) * [1, 10, 100]
    frame = pd.DataFrame(X, columns=["a", "b", "c"])
    return frame.assign(kind=np.where(X[:, 0] + X[:, 1] / 10 > 0, "p", "q"))


@pytest.mark.parametrize(
    ("name", "form"),
    [
        *(("GEM", "csv"), ("GEMClassifierCV", "csv"), ("GEMEnsemble", "parquet")),
        *(("MultinomialLogit", "feather"), ("FisherLDA", "csv")),
    ],
)
def test_models_find_their_columns_by_name(tmp_path, table, name, form):
    def write(frame, name):
        path = tmp_path / f"{name}.{form}"
        getattr(frame, f"to_{form}")(path, **({} if form == "feather" else {"index": False}))
        return path

    table["d"] = table["a"] * table["b"]
    first, second = write(table, "one"), write(table[["c", "kind", "a", "d", "b"]], "two")
    model = ESTIMATORS[name]().fit(open_rows(first, "kind"))
    assert model.feature_names_in_.tolist() == ["a", "b", "c", "d"]
    method = "predict" if hasattr(model, "predict") else "transform"
    expected, found = (
        np.concatenate(list(getattr(model, method)(open_rows(path)))) for path in (first, second)
    )
    np.testing.assert_array_equal(found, expected)
    in_memory = getattr(model, method)(table[["a", "b", "c", "d"]])
    if method == "predict":
        np.testing.assert_array_equal(found, in_memory)
    else:
        np.testing.assert_allclose(found, in_memory, rtol=1e-9, atol=1e-12)
    lacking = write(table.drop(columns="b").assign(e=1.0), "three")
    with pytest.raises(ValueError, match="got none named 'b'; the file also has 'e'; columns"):
        list(getattr(model, method)(open_rows(lacking, "kind")))


def test_parts_may_have_their_columns_in_another_order(tmp_path, table):
    table[:100].to_csv(tmp_path / "1.csv", index=False)
    table[100:][["kind", "c", "b", "a"]].to_csv(tmp_path / "2.csv", index=False)
    rows = open_rows(tmp_path, "kind")
    np.testing.assert_array_equal(matrix_of(rows), table[["a", "b", "c"]])
    assert labels_of(rows) == table["kind"].tolist()


@pytest.mark.parametrize("index", [None, "case", ("u", "v")])
def test_an_index_is_not_a_feature(tmp_path, table, index, rng):
    table = table.iloc[rng.permutation(200)]
    if isinstance(index, tuple):
        numbers = [np.arange(200), np.arange(200) % 7]
        table = table.set_index(pd.MultiIndex.from_arrays(numbers, names=index))
    elif index:
        table = table.rename_axis(index)
    table.to_parquet(tmp_path / "rows.parquet")
    assert open_rows(tmp_path / "rows.parquet", "kind").feature_names == ["a", "b", "c"]
    if index == "case":  # an index that is chosen is a feature
        assert open_rows(tmp_path / "rows.parquet", "kind", columns=["case"]).n_features == 1


@pytest.mark.parametrize(("names", "target"), [([0, 1, 2], "kind"), ([700.5, 701.0, 701.5], -1)])
def test_a_first_line_of_numbers_can_be_a_header(tmp_path, table, names, target):
    table.columns = [*names, "kind"]
    table.to_csv(tmp_path / "rows.csv", index=False)
    rows = open_rows(tmp_path / "rows.csv", target)
    assert rows.feature_names == [str(name) for name in names]
    assert labels_of(rows) == table["kind"].tolist()
    table.to_csv(tmp_path / "rows.csv", index=False, header=False)
    assert open_rows(tmp_path / "rows.csv", -1).n_rows == 200


def test_labels_stay_exact(tmp_path):
    big = ["11898508762506083287", "11898508762506083288"]
    long = ["118985087625060832870", "118985087625060832871"]
    for labels, kind in ((big, int), (long, str), (["-9223372036854775808", "7"], int)):
        (tmp_path / "rows.csv").write_text("a,y\n" + "".join(f"1,{y}\n" for y in labels))
        assert labels_of(open_rows(tmp_path / "rows.csv", "y")) == [kind(y) for y in labels]
    (tmp_path / "rows.svm").write_text("9007199254740993 1:1\n9007199254740992 1:2\n")
    assert labels_of(open_rows(tmp_path / "rows.svm")) == [9007199254740993, 9007199254740992]


def test_decimals_and_dictionaries_of_numbers(tmp_path):
    from decimal import Decimal

    columns = {
        "a": pa.array([Decimal("1.50"), None, Decimal("-2.25")], pa.decimal128(9, 2)),
        "b": pa.array([5, 7, 5]).dictionary_encode(),
        "y": pa.array([Decimal(3), Decimal(4), Decimal(3)], pa.decimal128(20, 0)),
    }
    parquet.write_table(pa.table(columns), tmp_path / "rows.parquet")
    rows = open_rows(tmp_path / "rows.parquet", "y", missing=True)
    np.testing.assert_array_equal(matrix_of(rows), [[1.5, 5], [np.nan, 7], [-2.25, 5]])
    assert labels_of(rows) == [3, 4, 3]


def test_hive_folders_are_columns(tmp_path, table):
    for year, part in (("2023", table[:80]), ("2024", table[80:])):
        (tmp_path / f"year={year}").mkdir()
        part.to_parquet(tmp_path / f"year={year}" / "part.parquet", index=False)
    rows = open_rows(tmp_path, "kind")
    assert rows.feature_names == ["a", "b", "c", "year"]
    np.testing.assert_array_equal(matrix_of(rows)[:, 3], [2023] * 80 + [2024] * 120)
    assert labels_of(open_rows(tmp_path, "year", drop=["kind"])) == [2023] * 80 + [2024] * 120


@pytest.mark.parametrize(
    ("text", "options", "rows"),
    [
        ("a;b\n1,5;2\n3;4,25\n", {"delimiter": ";", "decimal": ","}, [[1.5, 2], [3, 4.25]]),
        ("# x\na,b\n1,2\n# 3,4\n5,6\n", {"comment": "#"}, [[1, 2], [5, 6]]),
        ("a,b\r1,2\r3,4\r", {}, [[1, 2], [3, 4]]),
        ("a,n\n1,é\n2,ü\n", {"encoding": "latin-1", "drop": ["n"]}, [[1], [2]]),
        ("a,n\n1,é\n2,ü\n", {"encoding": "utf-16", "columns": ["a"]}, [[1], [2]]),
        ('a,n\n1,"x\ny, z"\n2,"u ""v"""\n', {"columns": ["a"]}, [[1], [2]]),
        ("a,b,,\n1,2,,\n3,4,,\n", {"columns": ["a", "b"]}, [[1, 2], [3, 4]]),
    ],
)
def test_options_of_csv_files(tmp_path, text, options, rows):
    encoding = options.get("encoding", "utf-8")
    (tmp_path / "rows.csv").write_text(text, encoding=encoding, newline="")
    assert matrix_of(open_rows(tmp_path / "rows.csv", **options)).tolist() == rows


@pytest.mark.parametrize(
    ("text", "line"),
    [
        ('a,y\n1,"u\n2,w\n3,v\n', 2),
        ('a,y\n1,u\n2,"w\n3,"v"\n4,w\n', 3),
        ('a,n,y\n1,"x,u\n2,"z,w\n3,z,u\n', 2),
    ],
)
def test_unclosed_quotes_are_errors_with_a_line(tmp_path, text, line):
    (tmp_path / "rows.csv").write_text(text)
    for options in ({}, {"skip_bad": True}):
        with pytest.raises(ValueError, match=rf"rows\.csv: line {line}: expected quoted fields"):
            list(open_rows(tmp_path / "rows.csv", "y", columns=["a"], **options))


@pytest.mark.parametrize("encoding", ["utf-8", "utf-8-sig", "utf-16", "utf-16-le", "latin-1"])
@pytest.mark.parametrize("end", ["\n", "\r\n", "\r"])
def test_comments_and_line_ends_in_every_encoding(tmp_path, encoding, end):
    lines = ["\u00a7 one", "x,kind", "1,\u00e4", '\u00a7 "two', '2,"b"', "\u00a7 three"]
    (tmp_path / "a.csv").write_bytes(end.join([*lines, ""]).encode(encoding))
    given = None if encoding.startswith("utf-8") else encoding
    rows = open_rows(tmp_path / "a.csv", "kind", comment="\u00a7", encoding=given)
    assert matrix_of(rows).tolist() == [[1], [2]]
    assert labels_of(rows) == ["\u00e4", "b"]


@pytest.mark.parametrize("comment", [None, "#"])
@pytest.mark.parametrize("encoding", ["utf-8", "ascii", "utf-16-le"])
def test_text_in_another_encoding(tmp_path, comment, encoding):
    text = "x,kind\n" + "1,a\n" * 9000 + "2,\u00e4\n"
    (tmp_path / "a.csv").write_bytes(text.encode("latin-1"))
    if encoding == "utf-8":
        wrong = r"a\.csv: line 9002: expected text in UTF-8, got b'2,\\xe4'; set encoding"
    else:
        wrong = rf"a\.csv: expected text in {encoding}, got b'"
    with pytest.raises(ValueError, match=wrong):
        list(open_rows(tmp_path / "a.csv", -1, encoding=encoding, comment=comment))


def test_errors_keep_blanks_in_a_path(tmp_path):
    path = tmp_path / "two  blanks.csv"
    path.write_text('x,kind\n1,a\n2,"b\n3,b\n')
    with pytest.raises(ValueError, match=rf"^{path}: line 3: expected quoted fields"):
        list(open_rows(path, "kind"))


@pytest.mark.parametrize(
    ("name", "tab"),
    [("A.TSV", True), ("a.tsv.gz", True), ("A.TSV.GZ", True), ("a.tsv.csv", False)],
)
def test_the_suffix_decides_the_delimiter(tmp_path, name, tab):
    text = b"x\tkind\n1\ta\n2\tb\n" if tab else b"x,kind\n1,a\n2,b\n"
    (tmp_path / name).write_bytes(gzip.compress(text) if name.lower().endswith("gz") else text)
    assert labels_of(open_rows(tmp_path / name, "kind")) == ["a", "b"]


@pytest.mark.parametrize("wrong", [0.5, None, True, b"x", ["x"]], ids=str)
def test_columns_are_names_or_whole_numbers(tmp_path, wrong):
    (tmp_path / "a.csv").write_text("x,y,kind\n1,2,a\n")
    for name in ("columns", "drop", "categorical"):
        with pytest.raises(OptionError, match=f"^{name}: expected names or numbers, got "):
            open_rows(tmp_path / "a.csv", **{name: ["y", wrong]})
    rows = open_rows(tmp_path / "a.csv", columns=[np.int64(1), "0"])
    assert rows.feature_names == ["y", "x"]


def test_long_rows_and_labels(tmp_path):
    d = 12_000
    with open(tmp_path / "wide.csv", "w") as file:  # lines beyond a megabyte
        file.write(",".join(f"c{j}" for j in range(d)) + "\n")
        for i in range(3):
            file.write(",".join(["0.1" + 100 * "0"] * (d - 1)) + f",{i}\n")
    rows = open_rows(tmp_path / "wide.csv", f"c{d - 1}")
    assert labels_of(rows) == [0, 1, 2]
    assert rows.n_features == d - 1
    table = pa.table({"a": [1.0, 2.0], "y": ["u", "v" * 400_000]})
    parquet.write_table(table, tmp_path / "rows.parquet")
    with pytest.raises(ValueError, match=r"column 'y': expected labels of at most 1,000 char"):
        list(open_rows(tmp_path / "rows.parquet", "y"))


def test_lines_are_limited_in_length(tmp_path, monkeypatch):
    monkeypatch.setattr(delimited, "_MAX_LINE_BYTES", 1 << 20)
    with gzip.open(tmp_path / "rows.csv.gz", "wb", 1) as file:
        file.write(b"1" * (1 << 21))
    with pytest.raises(ValueError, match=r"line 1: expected rows of at most 1,048,576 bytes"):
        open_rows(tmp_path / "rows.csv.gz")


FIELDS = st.one_of(
    st.floats(allow_nan=False).map(repr),
    st.integers(-(10**20), 10**20).map(str),
    st.sampled_from(["", " ", "+1", "+.5", "1.", "-0", "1e5", "1E-3", "nan", "NA", "inf", "-INF"]),
    st.sampled_from(
        ['"1"', '" 2 "', '"3\n"', "１２", "1_0", "0x1", "x", '"a,b"', " 7", "8\t", "1e400"]
    ),
)


@settings(max_examples=10, deadline=None)
@given(lines=st.lists(st.lists(FIELDS, min_size=1, max_size=4), min_size=1, max_size=6))
def test_skipping_bad_rows_keeps_exactly_the_good_rows(tmp_path_factory, lines):
    """A row that is read alone without an error is good; its values are equal in both readings."""
    path = tmp_path_factory.mktemp("rows") / "rows.csv"
    good = ["1,2,u"] * 3
    wanted = [",".join([*line, "v"]) for line in lines]
    path.write_text("\n".join(["a,b,kind", *good, *wanted]) + "\n", newline="")
    options = {"target": "kind", "missing": True, "block_rows": 5}
    for columns in (["a", "b"], ["a"]):
        lenient = open_rows(path, columns=columns, skip_bad=True, **options)
        marked = open_rows(path, columns=columns, mark_bad=True, **options | {"target": None})
        found = matrix_of(lenient)
        assert len(found) + lenient.n_skipped == len(good) + len(lines)
        assert sum(map(len, marked)) == len(good) + len(lines)
        bad = np.concatenate([block.y for block in marked])
        np.testing.assert_array_equal(matrix_of(marked)[~bad], found)
        # Read each line in a file of its own.
        rows = []
        for line in [*good, *wanted]:
            path.write_text("\n".join(["a,b,kind", "1,2,u", line]) + "\n", newline="")
            try:
                rows.append(matrix_of(open_rows(path, columns=columns, **options))[1])
            except BadRowError:
                continue
        np.testing.assert_array_equal(np.array(rows).reshape(-1, len(columns)), found)
        path.write_text("\n".join(["a,b,kind", *good, *wanted]) + "\n", newline="")


def test_repeated_names_are_errors_only_if_they_are_chosen(tmp_path):
    path = tmp_path / "rows.csv"
    path.write_text("a,b,a,,kind\n1,2,3,4,p\n5,6,7,8,q\n")
    for read in (list, TableClassifier().fit):
        with pytest.raises(
            ValueError, match=r"got no name for column 3, 'a' for columns 0, 2; .*--drop 2,3\)"
        ):
            read(open_rows(path, "kind"))
    with pytest.raises(OptionError, match=r"columns: .* in which 'a' occurs 2 times"):
        open_rows(path, "kind", columns=["a"])
    assert matrix_of(open_rows(path, "kind", columns=["b"])).tolist() == [[2], [6]]
    assert matrix_of(open_rows(path, "kind", columns=[2, 3])).tolist() == [[3, 4], [7, 8]]
    assert matrix_of(open_rows(path, "kind", drop=["a", 3])).tolist() == [[2], [6]]


@pytest.mark.parametrize("choice", [{"drop": [0]}, {"drop": [2]}, {"columns": [0, 1]}])
def test_a_feature_may_share_its_name_with_a_dropped_column(tmp_path, rng, choice):
    path, model, out = tmp_path / "rows.csv", tmp_path / "m.efm", tmp_path / "p.csv"
    lines = [f"{a:.3f},{b:.3f},{c:.3f},{'pq'[int(a > 0)]}" for a, b, c in rng.normal(size=(60, 3))]
    path.write_text("\n".join(["a,b,a,kind", *lines]) + "\n")
    kept = choice.get("columns", sorted({0, 1, 2} - {*choice.get("drop", ())}))
    wanted = pd.read_csv(path, header=None, skiprows=1)[kept].to_numpy()
    np.testing.assert_array_equal(matrix_of(open_rows(path, "kind", **choice)), wanted)
    both = matrix_of(open_rows([path, path], "kind", **choice))
    np.testing.assert_array_equal(both, np.vstack([wanted, wanted]))
    ((name, places),) = choice.items()
    option = (f"--{name}", ",".join(map(str, places)))
    fit = ("fit", path, "--target", "kind", "-o", model, "--set", "views=columns")
    assert run(*fit, *option)[0] == 0
    assert run("predict", model, path, "-o", out, *option)[0] == 0
    expected = ef.load(model).predict(open_rows(path, "kind", **choice))
    assert pd.read_csv(out)["prediction"].tolist() == np.concatenate([*expected]).tolist()
    status, _, err = run("predict", model, path, "-o", out)
    assert (status, "in which 'a' occurs 2 times" in err) == (2, True)


@pytest.mark.parametrize("choice", [{"drop": [2]}, {"columns": ["a", 1]}])
def test_columns_that_share_a_name_have_equal_places_in_all_files(tmp_path, choice):
    """Otherwise different columns `b` of the two files would be one feature."""
    for name, header in (("one.csv", "a,b,b,kind"), ("two.csv", "b,b,a,kind")):
        (tmp_path / name).write_text(f"{header}\n1,2,3,p\n4,5,6,q\n")
    wrong = r"two\.csv: expected 'b' as columns 1, 2, as in .*one\.csv, got columns 0, 1; rename"
    with pytest.raises(ValueError, match=wrong):
        open_rows([tmp_path / "one.csv", tmp_path / "two.csv"], "kind", **choice)


def test_the_index_of_pandas_in_a_csv_file_is_not_a_feature(tmp_path, table):
    some = table.sample(frac=0.8, random_state=0)  # its index is not sorted
    some.to_csv(tmp_path / "index.csv")
    some.to_csv(tmp_path / "plain.csv", index=False)
    left_out = r"index\.csv: the first column has row numbers and no name, and is left out"
    with pytest.warns(UserWarning, match=left_out):
        rows = open_rows(tmp_path / "index.csv", "kind")
    model = TableClassifier("columns").fit(rows)  # without a second warning
    assert model.feature_names_in_.tolist() == ["a", "b", "c"]
    expected = TableClassifier("columns").fit(open_rows(tmp_path / "plain.csv", "kind"))
    assert matrix_of(rows).tolist() == matrix_of(open_rows(tmp_path / "plain.csv", "kind")).tolist()
    assert model.score(rows) == expected.score(some[["a", "b", "c"]], some["kind"])
    ef.save(model, tmp_path / "m.efm")
    predict = ("predict", tmp_path / "m.efm", tmp_path / "index.csv", "-o", tmp_path / "p.csv")
    with warnings.catch_warnings():
        warnings.simplefilter("default")
        status, _, err = run(*predict)
    assert (status, err.count("is left out")) == (0, 1)
    for choice in ({"drop": [0]}, {"drop": [""]}, {"columns": ["a"]}, {"target": 0}):
        open_rows(tmp_path / "index.csv", **choice)  # without a warning
    assert open_rows(tmp_path / "index.csv", "kind", columns=[0, "a"]).n_features == 2


@pytest.mark.parametrize("cells", ["121", "12x", ["1", "", "2"], ["1", "2", "2.5"]])
def test_other_columns_without_a_name_are_refused(tmp_path, cells):
    lines = [f"{cell},{row * row},{'pq'[row % 2]}" for row, cell in enumerate(cells)]
    (tmp_path / "rows.csv").write_text("\n".join([",a,kind", *lines]) + "\n")
    with pytest.raises(ValueError, match=r"got no name for column 0; leave such columns out"):
        list(open_rows(tmp_path / "rows.csv", "kind"))


@pytest.mark.parametrize("form", ["csv", "parquet"])
@pytest.mark.filterwarnings("ignore:.*the first column has row numbers")
def test_predictions_ignore_columns_that_the_model_lacks(tmp_path, table, form):
    """A column without a name, such as pandas' index, a repeated name, and a column of lists."""
    model = TableClassifier("gem").fit(table[["a", "b", "c"]], table["kind"])
    names = ["", *table, "note", "note"]
    columns = [np.arange(200), *(table[name] for name in table), ["u", "v"] * 100, ["w", "x"] * 100]
    path = tmp_path / f"new.{form}"
    if form == "csv":
        lines = (",".join(map(str, row)) for row in zip(*columns, strict=True))
        path.write_text("\n".join([",".join(names), *lines]) + "\n")
    else:
        new = pa.Table.from_arrays([pa.array(column) for column in columns], names)
        write_table(path, new.append_column("lists", pa.array([[1]] * 200)))
    rows = open_rows(path, "kind")
    assert model.score(rows) == model.score(table[["a", "b", "c"]], table["kind"])
    nameless = "" if form == "csv" else "no name for column 0, "
    with pytest.raises(ValueError, match=rf"got {nameless}'note' for columns 5, 6;"):
        list(rows)
    ef.save(model, tmp_path / "m.efm")
    out = tmp_path / "found.csv"
    assert run("predict", tmp_path / "m.efm", path, "-o", out)[0] == 0
    assert run("evaluate", tmp_path / "m.efm", path, "--target", "kind")[0] == 0
    status, _, err = run("moments", path, "--target", "kind", "-o", tmp_path / "x.efm")
    assert (status, "distinct name for each column" in err) == (1, True)
