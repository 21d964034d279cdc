"""Class moments of files: rows per second beside those of equal rows in memory, and memory.

    python bench/files.py --gigabytes 10 --folder /some/disk --formats npy parquet csv

writes a file of float32 rows in each format to a temporary folder and measures `eigenfeat moments`
on the file in a new process. Prints the rate, its ratio to the rate for rows in memory (as many as
fit into 1 GB), and the peak memory of the process. CSV is also compared with pyarrow's reading of
the file, which bounds the rate. A file is read once before it is measured, unless it is larger than
the memory: such a file is read from the disk every time.
"""

import argparse
import io
import json
import os
import tempfile
import time
from contextlib import redirect_stdout
from itertools import islice
from pathlib import Path

import numpy as np

from eigenfeat import ClassMoments
from eigenfeat.cli import main as cli
from timing import from_fresh_process, status_kib

CLASSES = 10
PIECE_BYTES = 64_000_000
CSV_SHARE = 10  # CSV files have a tenth of the rows, because text is long and slow to write


def piece(number, rows, columns):
    """Rows and labels of a piece, equal for all formats."""
    random = np.random.default_rng(number)
    X = random.standard_normal((rows, columns), dtype=np.float32)
    return X, random.integers(0, CLASSES, rows)


def write_npy(folder, pieces, n, columns):
    path = folder / "rows.npy"
    X = np.lib.format.open_memmap(path, "w+", np.float32, (n, columns))
    y = np.lib.format.open_memmap(folder / "labels.npy", "w+", np.int64, (n,))
    start = 0
    for rows, labels in pieces:
        X[start : start + len(rows)], y[start : start + len(rows)] = rows, labels
        start += len(rows)
    del X, y
    return path, ["--target", str(folder / "labels.npy")]


def table(rows, labels):
    import pyarrow as pa

    columns = {f"x{j}": np.ascontiguousarray(rows[:, j]) for j in range(rows.shape[1])}
    return pa.table(columns | {"kind": labels})


def parquet_writer(path, schema):
    from pyarrow import parquet

    return parquet.ParquetWriter(path, schema, compression="NONE", use_dictionary=False)


def arrow_writer(path, schema):
    from pyarrow import ipc

    return ipc.new_file(path, schema)


def csv_writer(path, schema):
    from pyarrow import csv

    return csv.CSVWriter(path, schema)


WRITERS = {"npy": None, "parquet": parquet_writer, "arrow": arrow_writer, "csv": csv_writer}


def write_table(folder, name, pieces, columns):
    path = folder / f"rows.{name}"
    with WRITERS[name](str(path), table(*piece(0, 1, columns)).schema) as writer:
        for rows, labels in islice(pieces, 0, None, CSV_SHARE if name == "csv" else 1):
            writer.write_table(table(rows, labels))
    return path, ["--target", "kind", *(["--dtype", "float32"] if name == "csv" else [])]


def in_memory(columns, threads, repeats):
    """Rows per second of the moments of 1 GB in memory, the best of `repeats` runs."""
    X, y = piece(0, int(1e9 / 4 / columns), columns)
    return best_rate(len(X), lambda: ClassMoments().update(X, y, n_threads=threads), repeats)


def best_rate(rows, call, repeats):
    rates = []
    for _ in range(repeats):
        started = time.perf_counter()
        call()
        rates.append(rows / (time.perf_counter() - started))
    return max(rates)


def command(arguments):
    """Yield rows per second, rows and peak bytes of `eigenfeat moments`, run in this process."""
    with redirect_stdout(io.StringIO()) as out:
        cli.main(["moments", *arguments, "--json"])
    found = json.loads(out.getvalue())
    yield found["rows_per_second"], found["rows"], 1024 * status_kib("VmHWM")


def measure(options, folder, name):
    from pyarrow import csv

    n = int(options.gigabytes * 1e9 / 4 / options.columns)
    size = max(int(PIECE_BYTES / 4 / options.columns), 1)
    starts = range(0, n, size)
    pieces = (piece(i, min(size, n - s), options.columns) for i, s in enumerate(starts))
    if name == "npy":
        path, arguments = write_npy(folder, pieces, n, options.columns)
    else:
        path, arguments = write_table(folder, name, pieces, options.columns)
    arguments = [str(path), *arguments, "-o", str(path.with_suffix(".efm"))]
    if options.threads:
        arguments += ["--threads", str(options.threads)]
    runs, memory, readings = [], [], []
    for _ in range(options.repeats):  # interleaved, because the machine may be busy
        memory.append(in_memory(options.columns, options.threads, 1))
        runs += from_fresh_process(command, arguments, threads=options.threads, seconds=3600)
        if name == "csv":
            readings.append(best_rate(runs[-1][1], lambda: csv.read_csv(path), 1))
    rate = max(runs)[0]
    peak = max(run[2] for run in runs)
    line = f"{name:8} {path.stat().st_size / 1e9:7.2f} GB {rate:12,.0f} rows/s"
    line += f" {rate * options.columns * 4 / 1e6:7.0f} MB/s of float32"
    line += f"  {100 * rate / max(memory):4.0f}% of in memory, peak {peak / 1e6:5.0f} MB"
    if readings:
        line += f", {100 * rate / max(readings):.0f}% of pyarrow's {max(readings):,.0f} rows/s"
    print(line, flush=True)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--gigabytes", type=float, default=1.0, help="of float32 rows (default 1)")
    parser.add_argument("--columns", type=int, default=100)
    parser.add_argument("--threads", type=int)
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--formats", nargs="+", choices=WRITERS, default=list(WRITERS))
    parser.add_argument("--folder", type=Path, help="where files go (default: a temporary folder)")
    options = parser.parse_args()
    os.environ.setdefault("OMP_WAIT_POLICY", "passive")  # for new processes, as in the command
    memory = in_memory(options.columns, options.threads, options.repeats)
    print(f"in memory: {memory:,.0f} rows/s, {memory * options.columns * 4 / 1e6:.0f} MB/s")
    for name in options.formats:
        with tempfile.TemporaryDirectory(dir=options.folder) as folder:
            measure(options, Path(folder), name)


if __name__ == "__main__":
    main()
