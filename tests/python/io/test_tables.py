"""Reading files in blocks: every format returns the rows that were written, from any position."""

import datetime
import threading

import numpy as np
import pyarrow as pa
import pytest
from pyarrow import csv
from table_files import FORMATS, csv_text, write_rows, write_table

from eigenfeat import GEMClassifier, open_rows


@pytest.fixture
def rows(rng):
    X = rng.standard_normal((1000, 6)).astype(np.float32)
    X[X < -0.5] = 0
    return X, rng.integers(0, 3, 1000)


def dense(X):
    return X.toarray() if hasattr(X, "toarray") else X


def collected(found):
    blocks = list(found)
    return (
        np.concatenate([dense(block.X) for block in blocks]),
        np.concatenate([block.y for block in blocks]),
    )


@pytest.mark.parametrize(
    ("name", "dtype"),
    [*((name, np.float32) for name in FORMATS), ("rows.csv", float), ("rows.parquet", float)],
)
def test_every_format_returns_the_rows_that_were_written(tmp_path, rows, name, dtype):
    X, y = rows[0].astype(dtype), rows[1]
    path, options = write_rows(tmp_path, name, X, y)
    found = open_rows(path, block_rows=150, **options)  # blocks split batches of Arrow files
    assert found.dtype == dtype
    assert (found.n_features, found.n_rows) == (6, 1000)
    back, labels = collected(found)
    assert back.dtype == dtype
    np.testing.assert_array_equal(back, X)
    np.testing.assert_array_equal(labels, y)
    assert labels.dtype == np.int64
    whole = list(found.blocks())
    assert [len(block) for block, _ in whole] == [150] * 6 + [100]
    fractions = [position.fraction for _, position in whole]
    if fractions[0] is not None:
        assert fractions == sorted(fractions)
    for index, (_, position) in enumerate(whole):  # reading continues from any block
        assert position.rows == min(150 * (index + 1), 1000)
        rest = list(open_rows(path, block_rows=150, **options).blocks(position))
        assert len(rest) == len(whole) - index - 1
        for (block, after), (same, there) in zip(rest, whole[index + 1 :], strict=True):
            assert (after, block.start) == (there, same.start)
            np.testing.assert_array_equal(dense(block.X), dense(same.X))
            np.testing.assert_array_equal(block.y, same.y)


@pytest.mark.parametrize("name", ["rows.csv", "rows.svm"])
def test_text_is_read_in_pieces_of_whole_lines(tmp_path, rows, name, monkeypatch):
    from eigenfeat.io import delimited, svmlight

    path, options = write_rows(tmp_path, name, *rows)
    at_once = [position for _, position in open_rows(path, block_rows=170, **options).blocks()]
    monkeypatch.setattr(delimited, "_BLOCK_BYTES", 1000)
    monkeypatch.setattr(svmlight, "_PIECE_BYTES", 1000)
    found = open_rows(path, block_rows=170, **options)
    back, labels = collected(found)
    np.testing.assert_array_equal(back, rows[0])
    np.testing.assert_array_equal(labels, rows[1])
    positions = [position for _, position in found.blocks()]
    # Positions do not depend on the size of the pieces.
    assert positions == at_once
    np.testing.assert_array_equal(
        next(found.blocks(at_once[2]))[0].y, next(found.blocks(positions[2]))[0].y
    )


def test_several_files_are_read_as_one(tmp_path, rows):
    X, y = rows
    for i in range(3):
        part = slice(400 * i, 400 * (i + 1))
        (tmp_path / f"part{i}.csv").write_text(csv_text(X[part], y[part]))
    (tmp_path / "_SUCCESS").write_text("")
    (tmp_path / "notes.md").write_text("not rows")
    parts = sorted(tmp_path.glob("*.csv"))
    for path in (parts, tmp_path, str(tmp_path / "part*.csv")):
        found = open_rows(path, "kind", dtype=X.dtype, block_rows=170)
        assert [len(block) for block in found] == [170] * 5 + [150]
        np.testing.assert_array_equal(collected(found)[0], X)
        whole = list(found.blocks())
        assert whole[-1][1].file == 2
        for index, (_, position) in enumerate(whole[:-1]):
            block, _ = next(found.blocks(position))
            np.testing.assert_array_equal(block.X, whole[index + 1][0].X)


def test_sparse_files_are_as_wide_as_the_widest(tmp_path):
    (tmp_path / "a.svm").write_text("1 1:2\n0 3:4\n")
    (tmp_path / "b.svm").write_text("1 7:1\n")
    X, y = collected(open_rows(tmp_path))
    assert X.tolist() == [[2, 0, 0, 0, 0, 0, 0], [0, 0, 4, 0, 0, 0, 0], [0, 0, 0, 0, 0, 0, 1]]
    assert y.tolist() == [1, 0, 1]
    assert open_rows(tmp_path / "a.svm", n_features=9).n_features == 9
    (tmp_path / "a.svm").write_text("1 0:2\n")
    assert collected(open_rows(tmp_path / "a.svm"))[0].tolist() == [[2]]


def test_columns_of_svmlight_files_are_counted_as_in_the_fit(tmp_path):
    path = tmp_path / "rows.svm"
    path.write_text("0 0:1 1:2\n1 0:4 1:1\n0 1:3\n1 0:5\n" * 5)
    model = GEMClassifier().fit(open_rows(path))
    path.write_text("0 1:3\n")  # in this file, 1 could be the number of the first column
    found = np.concatenate(list(model.predict_proba(open_rows(path))))
    np.testing.assert_allclose(found, model.predict_proba(np.array([[0.0, 3.0]])), atol=1e-6)


def test_svmlight_comments_queries_and_empty_lines(tmp_path):
    path = tmp_path / "a.svm"
    path.write_text("# a comment\n+1 qid:3 1:2 3:-4e-1 # why: 5\n\n  \n-1\n2 2:.5")
    X, y = collected(open_rows(path))
    assert X.tolist() == [[2, 0, -0.4], [0, 0, 0], [0, 0.5, 0]]
    assert y.tolist() == [1, -1, 2]


def test_columns_are_chosen_by_name_or_number(tmp_path, rows):
    X, y = rows
    path, _ = write_rows(tmp_path, "rows.parquet", X, y)
    for options, wanted in (
        ({"target": "kind"}, [0, 1, 2, 3, 4, 5]),
        ({"target": -1, "drop": ["x1", 4]}, [0, 2, 3, 5]),
        ({"target": "6", "columns": ["x5", "0"]}, [5, 0]),
    ):
        found = open_rows(path, **options)
        np.testing.assert_array_equal(collected(found)[0], X[:, wanted])
        assert found.feature_names == [f"x{j}" for j in wanted]
    blocks = list(open_rows(path, drop=["kind"]))
    assert [block.y for block in blocks] == [None] * len(blocks)
    np.save(tmp_path / "both.npy", np.column_stack([y, X]))
    back, labels = collected(open_rows(tmp_path / "both.npy", target=0, drop=[2]))
    np.testing.assert_array_equal(back, X[:, [0, 2, 3, 4, 5]])
    assert labels.dtype == np.int64
    np.testing.assert_array_equal(labels, y)


LABELS = {
    "int": [3, -1, 3, 7],
    "float": [0.5, 1.5, 0.5, -2.0],
    "bool": [True, False, True, True],
    "str": ["b", "ä", "b, c", "long name"],
    "date": [datetime.date(2024, 1, day) for day in (1, 2, 1, 3)],
}


@pytest.mark.parametrize("kind", LABELS)
@pytest.mark.parametrize("name", ["rows.csv", "rows.parquet", "dictionary.arrow"])
def test_labels_of_every_kind(tmp_path, name, kind):
    table = pa.table({"x": [1.0, 2, 3, 4], "kind": LABELS[kind]})
    if name.endswith("csv"):
        csv.write_csv(table, tmp_path / name)
    elif name.startswith("dictionary"):
        column = table.column("kind").dictionary_encode()
        write_table(tmp_path / name, table.set_column(1, "kind", column))
    else:
        write_table(tmp_path / name, table)
    wanted = LABELS[kind] if kind != "date" else [str(day) for day in LABELS[kind]]
    found = open_rows(tmp_path / name, "kind", block_rows=3)
    labels = collected(found)[1]
    assert labels.tolist() == wanted
    assert type(labels.tolist()[0]) is type(wanted[0])


def test_times_are_labels_and_views_of_texts_are_categories(tmp_path):
    times = [datetime.time(7), datetime.time(8, 30)]
    write_table(tmp_path / "a.parquet", pa.table({"x": [1.0, 2.0], "kind": times}))
    labels = collected(open_rows(tmp_path / "a.parquet", "kind"))[1]
    assert labels.tolist() == ["07:00:00.000000", "08:30:00.000000"]
    texts = pa.array(["u", "v"], pa.string_view())  # as polars writes categories
    words = pa.DictionaryArray.from_arrays(pa.array([0, 1, None, 0], pa.uint32()), texts)
    write_table(tmp_path / "a.arrow", pa.table({"x": [1.0, 2, 3, 4], "word": words}))
    block = open_rows(tmp_path / "a.arrow", "x").table()
    assert block.X["word"].fillna("").tolist() == ["u", "v", "", "u"]


def test_labels_of_several_lines(tmp_path):
    (tmp_path / "a.csv").write_text('x,kind\n1,"u\n\nv"\n2, w \n3,"u\n\nv"\n', newline="")
    labels = collected(open_rows(tmp_path / "a.csv", "kind", block_rows=2))[1]
    assert labels.tolist() == ["u\n\nv", "w", "u\n\nv"]


@pytest.mark.parametrize("kind", ["int", "float", "bool", "str"])
def test_labels_in_numpy_files(tmp_path, kind):
    np.save(tmp_path / "y.npy", np.array(LABELS[kind]))
    np.save(tmp_path / "X.npy", np.ones((4, 1)))
    labels = collected(open_rows(tmp_path / "X.npy", tmp_path / "y.npy"))[1]
    assert labels.tolist() == LABELS[kind]
    texts = collected(open_rows(tmp_path / "X.npy", tmp_path / "y.npy", labels="str"))[1]
    assert texts.tolist() == [str(label) for label in LABELS[kind]]


def test_numbers_of_every_type_become_floats(tmp_path):
    kinds = ["int8", "uint8", "int32", "uint64", "float16", "float32", "float64", "bool"]
    columns = {kind: np.array([0, 1, 1], dtype=kind) for kind in kinds}
    write_table(tmp_path / "a.parquet", pa.table(columns))
    X = next(iter(open_rows(tmp_path / "a.parquet"))).X
    np.testing.assert_array_equal(X, np.array([0, 1, 1])[:, None] * np.ones(len(kinds)))
    for dtype in (*kinds, ">f4", ">i2"):
        np.save(tmp_path / "a.npy", np.array([[0, 1], [1, 1]], dtype=dtype))
        found = open_rows(tmp_path / "a.npy")
        assert found.dtype == (np.float32 if np.dtype(dtype).str[1:] in ("f2", "f4") else float)
        assert next(iter(found)).X.tolist() == [[0, 1], [1, 1]]


@pytest.mark.parametrize(
    ("text", "names"),
    [
        ("a,b\n1,2\n3,4\n", ["a", "b"]),
        ("1,2\n3,4\n", ["0", "1"]),
        ("\ufeff\n\r\na,b\r\n1,2\r\n\r\n3,4", ["a", "b"]),
        ('"a","b"\n"1"," 2 "\n+3,4.e0\n', ["a", "b"]),
        ("id,1990\n1,2\n3,4\n", ["id", "1990"]),
    ],
)
def test_csv_in_many_spellings(tmp_path, text, names):
    (tmp_path / "a.csv").write_text(text, encoding="utf-8", newline="")
    found = open_rows(tmp_path / "a.csv")
    assert found.feature_names == names
    assert next(iter(found)).X.tolist() == [[1, 2], [3, 4]]


@pytest.mark.parametrize(
    ("text", "names", "kinds"),
    [
        ("a,b\n0x1,1\n0x2,2\n", ["a", "b"], ["text", "number"]),  # pyarrow reads 0x1 as a number
        ("a,b\n1,2,3\n2020-01-01,5\n", ["a", "b"], ["date", "number"]),
        ("a,b\n12:30,tRuE\n,0\n", ["a", "b"], ["text", "bool"]),
        ("a,b", ["a", "b"], ["number", "number"]),
        ("a\n1,2\n", ["a"], ["number"]),
    ],
)
def test_columns_of_csv_files_have_kinds(tmp_path, text, names, kinds):
    (tmp_path / "a.csv").write_text(text)
    source = open_rows(tmp_path / "a.csv", delimiter=",").sources[0]
    assert [*source.names] == names
    assert [*source.kinds] == kinds


def test_text_that_begins_late_in_a_file(tmp_path):
    """Labels and columns that look like numbers for hundreds of kilobytes."""
    path, n = tmp_path / "a.csv", 60_000
    path.write_text("u,v,kind\n" + "1,2,3\n" * n + "1,word,three\n" * (n // 2))
    rows = open_rows(path, "kind", drop=["v"])
    assert {*collected(rows)[1].tolist()} == {"3", "three"}
    path.write_text("u,v,kind\n" + "1,2,a\n" * n + "1,word,a\n" * (n + 1))
    assert open_rows(path, "kind").sources[0].kinds[:2] == ["number", "text"]


def test_the_option_header_overrides_the_detection(tmp_path):
    (tmp_path / "a.csv").write_text("1990;1991\n3;4\n")
    assert open_rows(tmp_path / "a.csv", header=True, delimiter=";").n_rows == 1
    assert open_rows(tmp_path / "a.csv", header=False, delimiter=";").n_rows == 2


def test_the_reading_thread_ends_with_its_iterator(tmp_path, rows):
    path, options = write_rows(tmp_path, "rows.npy", *rows)
    before = threading.active_count()
    blocks = open_rows(path, block_rows=170, **options).blocks()
    next(blocks)
    assert threading.active_count() > before
    blocks.close()
    assert threading.active_count() == before
