"""Damaged files of rows raise errors that name the file.

A reader that trusts the sizes and offsets in a file may read out of bounds and end the process.
Files with wrong sizes are therefore read in a child process, which prints a line for each file.
"""

import io
import subprocess
import sys
import tracemalloc

import numpy as np
import pyarrow as pa
import pytest
from pyarrow import ipc, parquet
from table_files import write_rows, write_table

import eigenfeat as ef
from eigenfeat.io.opening import described

READ = """
import sys
import eigenfeat as ef
for path in sys.argv[1:]:
    try:
        rows = [(len(block.X), block.y.tolist()) for block in ef.open_rows(path, target="kind")]
    except ValueError as error:
        print("ValueError:", str(error).replace("\\n", " "), flush=True)
    else:
        print(rows, flush=True)
"""


def child(*arguments):
    """Run Python in a child process, which must not be ended by a signal."""
    done = subprocess.run(
        [sys.executable, *arguments], capture_output=True, text=True, timeout=120, check=False
    )
    assert done.returncode >= 0, f"ended by signal {-done.returncode}: {done.stderr[-500:]}"
    return done


def read(paths):
    """Lines that a child process prints for each file."""
    done = child("-c", READ, *map(str, paths))
    assert done.returncode == 0, done.stderr[-2000:]
    lines = done.stdout.splitlines()
    assert len(lines) == len(paths)
    return lines


def test_dictionaries_with_a_missing_value(tmp_path):
    for values in ([5, None], ["a", None]):
        path = tmp_path / "rows.arrow"
        labels = pa.DictionaryArray.from_arrays(pa.array([0, 1, 0]), pa.array(values))
        with ipc.new_file(str(path), pa.schema([("x", "f8"), ("kind", labels.type)])) as writer:
            writer.write_batch(pa.record_batch([pa.array([1.0, 2.0, 3.0]), labels], ["x", "kind"]))
        with pytest.raises(
            ef.exceptions.BadRowError, match=r"row 1, column 'kind': .* got a missing value"
        ):
            list(ef.open_rows(path, target="kind"))


def test_labels_that_are_neither_numbers_nor_text(tmp_path):
    lists = pa.table({"x": [1.0, 2.0], "kind": pa.array([[1], [2]])})
    for name in ("rows.arrow", "rows.parquet"):
        write_table(tmp_path / name, lists)
        with pytest.raises(ValueError, match=r"column 'kind': expected labels .* got list<"):
            ef.open_rows(tmp_path / name, target="kind")


@pytest.mark.parametrize("where", ["groups", "file"])
def test_parquet_files_with_another_number_of_rows(tmp_path, where):
    path = tmp_path / "rows.parquet"
    n = 123_456
    table = pa.table({"x": np.zeros(n, dtype=np.int8), "y": np.zeros(n, dtype=np.int8)})
    parquet.write_table(table, path, row_group_size=n)
    data, text = path.read_bytes(), varint(2 * n)
    footer = len(data) - 8 - int.from_bytes(data[-8:-4], "little")
    # The footer has the number of rows of the file, numbers of values of the columns, and the
    # number of rows of the group, in this order.
    start = data.rindex(text) if where == "groups" else data.index(text, footer)
    path.write_bytes(data[:start] + varint(2 * n - 2) + data[start + len(text) :])
    with pytest.raises(ValueError, match=r"rows\.parquet: it is damaged: "):
        list(ef.open_rows(path))


PEAK = """
import resource, sys
import eigenfeat as ef
good, bad = sys.argv[1:]
for _ in ef.open_rows(good): pass
before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
try:
    list(ef.open_rows(bad))
except ValueError as error:
    print(error)
print((resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before) >> 10)
"""


@pytest.mark.long
@pytest.mark.skipif(sys.platform != "linux", reason="ru_maxrss has another unit elsewhere")
def test_pages_that_claim_two_gigabytes(tmp_path):
    good, bad = tmp_path / "good.parquet", tmp_path / "bad.parquet"
    table = pa.table({"x": np.arange(1000.0), "y": np.arange(1000.0)})
    parquet.write_table(table, good, use_dictionary=False, compression="none")
    data = good.read_bytes()
    # The header of a data page; its uncompressed and compressed sizes follow.
    assert data[:7] == b"PAR1\x15\0\x15"
    start = data.index(b"\x15", 7) + 1
    size = data[7 : start - 1]
    assert data[start:].startswith(size)
    longer = varint(2 * (2**31 - 2))
    more = len(longer) - len(size)
    wrong = data[:start] + longer + data[start + len(size) : 4000] + data[4000 + more :]
    assert len(wrong) == len(data)
    bad.write_bytes(wrong)
    *errors, peak_mb = child("-c", PEAK, str(good), str(bad)).stdout.splitlines()
    assert "bad.parquet: it is damaged: " in errors[0]
    assert int(peak_mb) < 200


FIRST_BLOCK = """
import sys
import eigenfeat as ef
blocks = iter(ef.open_rows(sys.argv[1], comment="#"))
print(len(next(blocks)))
"""


@pytest.mark.long
def test_a_process_may_end_while_a_file_is_read(tmp_path):
    path = tmp_path / "rows.csv"
    path.write_text("a,b\n" + "4,5\n" * 9_000_000)
    done = child("-c", FIRST_BLOCK, str(path))
    assert done.returncode == 0, done.stderr[-500:]


def varint(number):
    """Encode a number as Thrift's compact protocol does."""
    out = bytearray()
    while number >= 128:
        out.append(number & 127 | 128)
        number >>= 7
    return bytes([*out, number])


def cut(data):
    return data[:-30]


def flipped(data):
    return data[:40] + bytes([data[40] ^ 255]) + data[41:]


def checksum(data):
    return data[:-8] + bytes(4) + data[-4:]


@pytest.mark.parametrize(
    ("name", "damage"), [("rows.csv.gz", cut), ("rows.csv.gz", checksum), ("rows.svm.gz", flipped)]
)
def test_compressed_text(tmp_path, name, damage):
    X = np.random.default_rng(0).standard_normal((50, 3))
    path, options = write_rows(tmp_path, name, X, np.arange(50) % 3)
    path.write_bytes(damage(path.read_bytes()))
    with pytest.raises(ValueError, match=r"rows\....\.gz: it is damaged: "):
        list(ef.open_rows(path, **options))


def test_a_large_column_number_of_a_sparse_row(tmp_path):
    path = tmp_path / "rows.svm"
    path.write_text("1 1:2\n0 2000000000:3\n")
    tracemalloc.start()
    rows = ef.open_rows(path)
    (block,) = rows
    assert described(path)["n_columns"] == rows.n_features == block.X.shape[1] == 2_000_000_000
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 50e6
    path.write_text("1 1:2\n0 3:3\n")
    assert ef.open_rows(path).feature_names == ["0", "1", "2"]
    np.save(tmp_path / "rows.npy", np.ones((2, 9)))
    with pytest.raises(ValueError, match=r"\(3 of sparse samples\), got \['0', '1', '2', '3', "):
        ef.open_rows([path, tmp_path / "rows.npy"])


@pytest.mark.parametrize("shape", [(2**40, 1), (0, 2**40), (2**40, 2**40)])
def test_shapes_that_are_larger_than_the_file(tmp_path, shape):
    header = io.BytesIO()
    np.lib.format.write_array_header_1_0(
        header, {"descr": "<f8", "fortran_order": False, "shape": shape}
    )
    (tmp_path / "rows.npy").write_bytes(header.getvalue() + bytes(800))
    with pytest.raises(ValueError, match=r"rows\.npy: expected .* got "):
        ef.open_rows(tmp_path / "rows.npy")


def test_carriage_returns_within_lines(tmp_path):
    path = tmp_path / "rows.csv"
    path.write_bytes(b"a,b\n1,2\n3,4\n5,\r6\n")
    with pytest.raises(
        ef.exceptions.BadRowError, match=r"rows\.csv: line 4, column 'b': expected a number"
    ):
        list(ef.open_rows(path))


@pytest.mark.filterwarnings("error")
@pytest.mark.parametrize("label", ["-1e300", "9223372036854775808"])
def test_labels_that_are_not_64_bit_integers(tmp_path, label):
    path = tmp_path / "rows.svm"
    path.write_text(f"1 1:2\n{label} 1:3\n")
    with pytest.raises(
        ef.exceptions.BadRowError, match=r"line 2, column 'label': expected a whole number of 64"
    ):
        list(ef.open_rows(path))
    np.save(tmp_path / "rows.npy", np.array([[1.0, 2.0], [float(label), 3.0]]))
    with pytest.raises(
        ef.exceptions.BadRowError, match=r"row 1, column '0': expected a whole number of 64"
    ):
        list(ef.open_rows(tmp_path / "rows.npy", target=0))


@pytest.mark.filterwarnings("error")
@pytest.mark.parametrize("name", ["rows.npy", "rows.parquet"])
def test_signalling_nan(tmp_path, name):
    X = np.ones((5, 2))
    X.view(np.uint64)[3, 0] = 0x7FF0000000000001
    path, options = write_rows(tmp_path, name, X, np.zeros(5, dtype=int))
    drop = [] if name == "rows.npy" else ["kind"]
    blocks = list(ef.open_rows(path, drop=drop, dtype="f4", mark_bad=True))
    assert blocks[0].y.tolist() == [False, False, False, True, False]
    with pytest.raises(ef.exceptions.BadRowError, match=r"row 3, column '[0x]+'"):
        list(ef.open_rows(path, **options, dtype="f4"))


LABELS = ["aa", "bb", "cc", "dd", "ee", "ff"]
OFFSETS = np.arange(0, 14, 2, dtype=np.int32).tobytes()  # of the labels in their text
CODES = np.arange(6, dtype=np.int32).tobytes()


def replaced(data, index, value):
    """Replace one of the 32-bit integers in `data`."""
    changed = np.frombuffer(data, np.int32).copy()
    changed[index] = value
    return changed.tobytes()


def test_damaged_labels_are_refused_and_intact_labels_are_read(tmp_path):
    """Offsets beyond the text, codes beyond the dictionary, and bytes that are not UTF-8."""
    text = pa.array(LABELS)
    cases = [
        ("rows.arrow", text, b"", b""),
        ("rows.arrow", text.dictionary_encode(), b"", b""),
        *(("rows.arrow", text, OFFSETS, replaced(OFFSETS, 3, offset)) for offset in (2**30, -5)),
        ("stream.arrow", text, OFFSETS, replaced(OFFSETS, 3, 2**30)),
        *(
            (name, text.dictionary_encode(), CODES, replaced(CODES, 4, code))
            for name in ("rows.arrow", "stream.arrow")
            for code in (-3, 2**31 - 1)
        ),
        *(
            (name, kind, b"aabbcc", b"aabb" + wrong)
            for name in ("rows.arrow", "stream.arrow")
            for kind in (text, text.cast(pa.large_string()))
            for wrong in (b"\xff\xff", b"\xc0\x80")  # invalid bytes, an overlong encoding
        ),
    ]
    paths = []
    for number, (name, labels, good, wrong) in enumerate(cases):
        paths.append(tmp_path / f"{number} {name}")
        write_table(paths[-1], pa.table({"x0": np.arange(6.0), "kind": labels}))
        data = paths[-1].read_bytes()
        assert not good or data.count(good) == 1
        paths[-1].write_bytes(data.replace(good, wrong) if good else data)
    lines = read(paths)
    assert lines[:2] == [f"[(6, {LABELS})]"] * 2
    for path, line in zip(paths[2:], lines[2:], strict=True):
        assert line.startswith(f"ValueError: {path}: "), line


@pytest.mark.parametrize("create", [ipc.new_file, ipc.new_stream])
def test_names_that_are_not_utf8_are_damage(tmp_path, create):
    table, path = pa.table({"length": [1.0, 2.0], "kind": [0, 1]}), tmp_path / "rows.arrow"
    with pa.OSFile(str(path), "wb") as file, create(file, table.schema) as writer:
        writer.write_table(table)
    path.write_bytes(path.read_bytes().replace(b"length", b"len\xaeth"))
    with pytest.raises(ValueError, match=r"rows.arrow: it is damaged: 'utf-8' codec can't decode"):
        ef.open_rows(path, target="kind")
