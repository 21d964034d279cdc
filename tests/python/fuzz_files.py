"""Small sound files of every format, and ways to damage them, for `fuzz_readers`."""

from __future__ import annotations

import gzip
import io
import re
import tempfile
import warnings
import zipfile
from pathlib import Path

import numpy as np

__all__ = ["FILES", "damaged", "inside", "npy", "table"]

ROWS = 23

Files = dict[str, bytes]


# ---- sound files ---------------------------------------------------------------------------------


def table():
    """Rows with a column of every type that readers take, and labels of text."""
    rng = np.random.default_rng(5)
    X = rng.standard_normal((ROWS, 3))
    return X, np.array(["ash", "birch", "elm"])[np.arange(ROWS) % 3]


def csv_files() -> Files:
    X, y = table()
    rows = [[*map(repr, row), str(label)] for row, label in zip(X.tolist(), y, strict=True)]
    text = "a,b,c,kind\n" + "".join(",".join(row) + "\n" for row in rows)
    quoted = "a,b,c,kind\r\n" + "".join(
        ",".join([*row[:3], f'"{row[3]}, ""big"""']) + "\r\n" for row in rows
    )
    bare = "".join(f"{j},{j % 2},{j * 0.5},{j % 3}\n" for j in range(ROWS))
    truth = "a,b,kind\n" + "".join(f"{j},{j % 2 == 0},{j % 3}\n" for j in range(ROWS))
    return {
        "rows.csv": text.encode(),
        "quoted.csv": quoted.encode(),
        "bare.csv": bare.encode(),
        "truth.csv": truth.encode().replace(b"True", b"true").replace(b"False", b"false"),
        "rows.tsv": text.replace(",", "\t").encode(),
        "mark.csv": b"\xef\xbb\xbf" + text.encode(),
        "rows.csv.gz": gzip.compress(text.encode()),
    }


def arrow_table():
    import pyarrow as pa

    X, y = table()
    some = [None if j % 7 == 0 else bool(j % 2) for j in range(ROWS)]
    return pa.table(
        {
            "a": X[:, 0],
            "b": X[:, 1].astype(np.float32),
            "c": pa.array(np.arange(ROWS), pa.int16()),
            "d": pa.array([j % 2 == 0 for j in range(ROWS)]),
            "e": pa.array([None if j == 3 else float(j) for j in range(ROWS)]),
            "f": pa.array(some),
            "kind": pa.array(y),
            "code": pa.array(y).dictionary_encode(),
            "long": pa.array(y).cast(pa.large_string()),
            "day": pa.array(np.arange(ROWS, dtype=np.int32)).cast(pa.date32()),
            "view": pa.array(y).cast(pa.string_view()),
        }
    )


def arrow_files() -> Files:
    import pyarrow as pa
    from pyarrow import feather, ipc

    rows = arrow_table()
    plain = rows.drop_columns(["view"])
    found = {}
    for compression in ("uncompressed", "lz4", "zstd"):
        out = io.BytesIO()
        feather.write_feather(plain, out, compression=compression, chunksize=9)
        found[f"{compression}.feather"] = out.getvalue()
    for name, make in (("rows.arrow", ipc.new_file), ("stream.arrow", ipc.new_stream)):
        sink = pa.BufferOutputStream()
        with make(sink, rows.schema) as writer:
            writer.write_table(rows, max_chunksize=9)
        found[name] = sink.getvalue().to_pybytes()
    return found


def parquet_files() -> Files:
    from pyarrow import parquet

    rows = arrow_table().drop_columns(["view"])
    ways = {
        "plain": {"compression": "none", "use_dictionary": False, "store_schema": False},
        "snappy": {"compression": "snappy"},
        "zstd": {"compression": "zstd", "data_page_version": "2.0", "data_page_size": 64},
        "delta": {
            "compression": "gzip",
            "use_dictionary": False,
            "data_page_version": "2.0",
            "column_encoding": {
                **{"c": "DELTA_BINARY_PACKED", "day": "DELTA_BINARY_PACKED"},
                **{"kind": "DELTA_BYTE_ARRAY", "long": "DELTA_LENGTH_BYTE_ARRAY"},
                **{"a": "BYTE_STREAM_SPLIT", "b": "BYTE_STREAM_SPLIT"},
            },
        },
    }
    found = {}
    for name, options in ways.items():
        out = io.BytesIO()
        parquet.write_table(rows, out, row_group_size=9, **options)
        found[f"{name}.parquet"] = out.getvalue()
    return found


def npy(array, version=None) -> bytes:
    out = io.BytesIO()
    np.lib.format.write_array(out, array, version=version)
    return out.getvalue()


def npy_files() -> Files:
    X, _ = table()
    whole = np.rint(4 * X)
    return {
        "rows.npy": npy(X),
        "fortran.npy": npy(np.asfortranarray(X.astype(np.float32))),
        "bytes.npy": npy(whole.astype(np.int8)),
        "second.npy": npy(X.astype(">f8"), (2, 0)),
        "half.npy": npy(X.astype(np.float16)),
        "truth.npy": npy(X > 0),
        "unsigned.npy": npy(np.abs(whole).astype(np.uint64), (3, 0)),
    }


def svmlight_files() -> Files:
    X, _ = table()
    lines = [
        f"{j % 3} " + " ".join(f"{i + 1}:{x!r}" for i, x in enumerate(row) if x > -0.5)
        for j, row in enumerate(X.tolist())
    ]
    text = "\n".join(lines) + "\n"
    more = "# header\n" + "\n".join(f"{line} # note {j}" for j, line in enumerate(lines))
    query = text.replace(" 1:", " qid:3 1:", 5)
    return {
        "rows.svm": text.encode(),
        "comments.svm": more.encode(),
        "query.svm": query.encode(),
        "rows.svm.gz": gzip.compress(text.encode()),
    }


def model_files() -> Files:
    from fitted_models import MODELS

    import eigenfeat as ef

    names = (
        "GEM",
        "LDG",
        "GEMClassifier, deep",
        "MulticlassSVM, sparse",
        "ReliableClassifier, QDA",
    )
    found = {}
    with tempfile.TemporaryDirectory() as folder, warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for number, name in enumerate(names):
            ef.save(MODELS[name](), Path(folder) / "model")
            found[f"{number}.efm"] = (Path(folder) / "model").read_bytes()
    return found


def moments_files() -> Files:
    import eigenfeat as ef

    X, y = table()
    found = {}
    with tempfile.TemporaryDirectory() as folder:
        for name, labels in (("text", y), ("whole", np.arange(ROWS) % 3)):
            ef.ClassMoments().update(X, labels).save(Path(folder) / "moments")
            found[f"{name}.efm"] = (Path(folder) / "moments").read_bytes()
    return found


# ---- damage --------------------------------------------------------------------------------------

_EDGES = (0, 1, -1, 2, 127, 255, 2**15, 2**16, 2**30, 2**31 - 1, -(2**31), 2**40, 2**62, 2**63 - 1)
_WORDS = (
    *(b"nan", b"inf", b"-", b"1e999", b"1e300", b"1e-999", b"True", b"9" * 20, b"qid:"),
    *(bytes([byte]) for byte in b"\"'\0\n\r,;:#{}[]()\xff"),
)


def damaged(whole: bytes, others: list[bytes], rng: np.random.Generator) -> bytes:
    """The same bytes but for one to four changes."""
    data = bytearray(whole)
    for _ in range(1 + int(rng.geometric(0.6)) % 4):
        _change(data, others, rng)
    return bytes(data)


def _change(data: bytearray, others: list[bytes], rng: np.random.Generator) -> None:
    size = len(data)
    at, to = (int(rng.integers(0, size + 1)) for _ in range(2))
    some = int(rng.integers(1, 40))
    way = int(rng.integers(0, 12))
    if not size or way == 0:
        data[at:at] = rng.bytes(some)
    elif way <= 2:
        data[at % size] ^= 1 << int(rng.integers(0, 8))
    elif way == 3:
        data[at % size] = int(rng.integers(0, 256))
    elif way <= 5:  # a number of 2 to 8 bytes, aligned as Arrow's are or not
        width = int(rng.choice([2, 4, 8]))
        place = at // width * width if rng.random() < 0.7 else at
        edge = int(rng.choice(np.array(_EDGES, dtype=object)))
        data[place : place + width] = (edge % 2 ** (8 * width)).to_bytes(width, "little")
    elif way == 6:
        del data[at : at + some]
    elif way == 7:
        data[at : at + some] = data[to : to + some]
    elif way == 8:
        data[at : at + some] = bytes(len(data[at : at + some]))
    elif way == 9:
        data[at:at] = _WORDS[int(rng.integers(0, len(_WORDS)))]
    elif way == 10:
        other = others[int(rng.integers(0, len(others)))]
        data[at : at + some] = other[to % len(other) : to % len(other) + some]
    else:
        del data[at:]


def as_text(data: bytes, rng: np.random.Generator) -> bytes:
    """Mostly the same in plain letters, so that more than the first check looks at it."""
    if rng.random() < 0.2:
        return data
    return bytes(byte & 127 or 48 for byte in data)


def damaged_numbers(data: bytes, rng: np.random.Generator) -> bytes:
    """Text one number of which is another: shapes, lengths and counts."""
    found = list(re.finditer(rb"\d+", data[:20_000]))
    if not found:
        return data
    match = found[int(rng.integers(0, len(found)))]
    edge = str(int(rng.choice(np.array(_EDGES, dtype=object)))).encode()
    return data[: match.start()] + edge + data[match.end() :]


def inside(name: str, whole: bytes, others: list[bytes], rng: np.random.Generator) -> bytes:
    """Damage below a checksum, a compression or an index of contents, which fit still."""
    if name.endswith(".parquet"):  # its pages alone
        footer = len(whole) - 8 - int.from_bytes(whole[-8:-4], "little")
        return damaged(whole[:footer], others, rng)[:footer].ljust(footer, b"\1") + whole[footer:]
    if name.endswith((".feather", ".arrow")):  # nothing that moves what follows
        return (
            damaged(whole, others, rng)[: len(whole) - 400].ljust(len(whole) - 400, b"\1")
            + (whole[-400:])
        )
    if name.endswith(".gz"):
        return gzip.compress(as_text(damaged(gzip.decompress(whole), [b"0123456789"], rng), rng))
    if name.endswith((".csv", ".tsv", ".svm")):
        return as_text(damaged(whole, others[:-1], rng), rng)
    if name.endswith(".efm"):
        return _repacked(whole, rng)
    if name.endswith(".npy") and rng.random() < 0.5:
        return damaged_numbers(whole, rng)
    return damaged(whole, others, rng)


def _repacked(whole: bytes, rng: np.random.Generator) -> bytes:
    from saved_files import members

    contents = members(io.BytesIO(whole))
    member = list(contents)[int(rng.integers(0, len(contents)))]
    data = contents[member]
    if rng.random() < 0.5:
        contents[member] = damaged_numbers(data, rng)
    else:
        contents[member] = damaged(data, list(contents.values()), rng)
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w") as archive:
        for key, value in contents.items():
            archive.writestr(key, value)
    return out.getvalue()


FILES = {
    "csv": csv_files,
    "parquet": parquet_files,
    "arrow": arrow_files,
    "npy": npy_files,
    "svmlight": svmlight_files,
    "model": model_files,
    "moments": moments_files,
}
