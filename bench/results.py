"""Functions that benchmarks share: UCR series, files of results, and tables in Markdown."""

import numpy as np
import pandas as pd


def set_names(folder, asked=None):
    """Names of sets of the archive in ``folder/ucr``: those asked for, or all."""
    return asked or sorted(path.stem for path in (folder / "ucr").glob("*.npz"))


def read_set(folder, name, rows=None, seed=0):
    """Arrays X_train, y_train, X_test and y_test, with at most `rows` random test series."""
    with np.load(folder / "ucr" / f"{name}.npz", allow_pickle=False) as file:
        X, y, T, truth = (file[name] for name in ("X_train", "y_train", "X_test", "y_test"))
    kept = np.random.default_rng(seed).permutation(len(truth))[:rows]
    parts = X.astype(float), y, T[kept].astype(float), truth[kept]
    return dict(zip(("X_train", "y_train", "X_test", "y_test"), parts, strict=True))


def finished(file, *columns):
    """Values of these columns in the lines of a CSV file, which may not exist yet."""
    if not file.exists():
        return set()
    table = pd.read_csv(file)
    return set(zip(*(table[name] for name in columns), strict=True))


def add_lines(file, lines):
    """Print the lines of a data frame, and add them to a CSV file."""
    print(lines.to_string(header=False, index=False, float_format="%.3g"), flush=True)
    lines.to_csv(file, mode="a", header=not file.exists(), index=False)


def print_markdown(table, digits=3):
    """Print a data frame of numbers as a table in Markdown; NaN is an empty cell."""
    print("| |", " | ".join(map(str, table)), "|\n|---|" + "---:|" * table.shape[1])
    for name, row in table.iterrows():
        cells = ("" if np.isnan(value) else f"{value:.{digits}g}" for value in row)
        print(f"| {name} |", " | ".join(cells), "|", flush=True)
