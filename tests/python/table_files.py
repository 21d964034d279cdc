"""Rows in files of every format, and ways to damage them, for tests of readers and commands."""

import gzip

import numpy as np
import pandas as pd
import pyarrow as pa
from pyarrow import feather, ipc, parquet


def csv_text(X, labels=None, header=True):
    """Lines of numbers that are read back to the last bit."""
    X = np.asarray(X)
    lines = [",".join(map(repr, row)) for row in X.tolist()]
    names = [f"x{j}" for j in range(X.shape[1])]
    if labels is not None:
        lines = [f"{line},{label}" for line, label in zip(lines, labels, strict=True)]
        names.append("kind")
    return "\n".join([",".join(names)] * header + lines) + "\n"


def loans(n=300):
    """A table with words, truth values and gaps; the label needs a word and a number."""
    random = np.random.RandomState(0)
    age, job = (
        random.randint(18, 80, n).astype(float),
        random.choice(["clerk", "smith", "nurse"], n),
    )
    frame = pd.DataFrame(
        {
            "age": np.where(random.rand(n) < 0.1, np.nan, age),
            "job": pd.Series(job).where(random.rand(n) > 0.1, None),
            "owner": random.rand(n) < 0.5,
            "town": random.choice(["Ulm", "Bern", "Graz", "Linz"], n),
            "debts": random.randint(0, 5, n),
        }
    )
    frame.loc[7, "town"] = "Metz"  # once
    return frame.assign(kind=np.where((job == "smith") ^ (age > 50), "bad", "good"))


def write_rows(folder, name, X, labels):
    """Write rows in the format of the file's name; return its path and options of `open_rows`."""
    path, by_name = folder / name, {"target": "kind"}
    text = name.endswith((".csv", ".csv.gz", ".tsv"))
    if text:
        data = csv_text(X, labels).replace(",", "\t" if name.endswith(".tsv") else ",").encode()
        path.write_bytes(gzip.compress(data) if name.endswith(".gz") else data)
        return path, by_name | ({"dtype": X.dtype} if X.dtype == np.float32 else {})
    if name.endswith(".npy"):
        np.save(path, np.asfortranarray(X) if "fortran" in name else X)
        np.save(folder / "labels.npy", labels)
        return path, {"target": str(folder / "labels.npy")}
    if name.endswith((".svm", ".svm.gz")):
        data = svmlight_text(X, labels).encode()
        path.write_bytes(gzip.compress(data) if name.endswith(".gz") else data)
        return path, {"dtype": X.dtype}
    write_table(path, table_of(X, labels))
    return path, by_name


def table_of(X, labels):
    columns = {f"x{j}": X[:, j] for j in range(X.shape[1])}
    return pa.table(columns | {"kind": labels})


def write_table(path, table, rows=300):
    """Write an Arrow table in groups or batches of some rows."""
    if path.suffix == ".parquet":
        parquet.write_table(table, path, row_group_size=rows)
    elif path.suffix == ".feather":
        feather.write_feather(table, path, chunksize=rows)
    else:
        kind = ipc.new_stream if "stream" in path.name else ipc.new_file
        with kind(str(path), table.schema) as writer:
            writer.write_table(table, max_chunksize=rows)


def svmlight_text(X, labels):
    """Nonzero entries, columns from 1."""
    lines = (
        " ".join([str(y), *(f"{j + 1}:{row[j].item()!r}" for j in np.flatnonzero(row))])
        for row, y in zip(X, labels, strict=True)
    )
    return "\n".join(lines) + "\n"


FORMATS = (
    "rows.npy",
    "fortran.npy",
    "rows.csv",
    "rows.tsv",
    "rows.csv.gz",
    "rows.parquet",
    "rows.feather",
    "rows.arrow",
    "stream.arrow",
    "rows.svm",
    "rows.svm.gz",
)


def damaged(whole, rng):
    """The file with bytes flipped, cut, inserted, removed, copied, exchanged or set to zero."""
    data = bytearray(whole)
    at, to = sorted(rng.integers(0, len(data), 2).tolist())
    some = int(rng.integers(1, 40))
    way = rng.integers(0, 9)
    if way <= 2:
        data[at] ^= 1 << int(rng.integers(0, 8))
    elif way == 3:
        data[at] = int(rng.integers(0, 256))
    elif way == 4:
        del data[at:]
    elif way == 5:
        data[at:at] = rng.bytes(some)
    elif way == 6:
        del data[at : at + some]
    elif way == 7:
        data[at : at + some] = data[to : to + some]
    else:
        data[at : at + some] = bytes(len(data[at : at + some]))
    return bytes(data)
