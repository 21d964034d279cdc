"""Means with deviations, tables for the terminal, and CSV files that are replaced as a whole."""

import numpy as np

from eigenfeat._base.saved_files import replacing

HOW = ("quick", "threads", "seed")  # options of the run in each line of a file


def frame_of(lines, *names):
    """Return a data frame of mappings, with the columns of these names; without names, all columns.

    Empty columns are left out, and the first column is the index.
    """
    import pandas as pd

    frame = pd.DataFrame(lines)
    if names:
        frame = frame[[name for name in names if name in frame]]
    return frame.mask(frame == "").set_index(frame.columns[0]).dropna(axis=1, how="all")


def show(told, console):
    """Print text or a data frame."""
    if not isinstance(told, str):
        told = told.to_string(na_rep="", float_format="{:.5g}".format)
    console.print(told, highlight=False, markup=False, soft_wrap=True)


def mean_and_deviation(values, digits):
    """Return "mean ± deviation", the mean of a single value, or "" without values."""
    if not len(values):
        return ""
    spread = f" ± {np.std(values, ddof=1):.{digits}f}" if len(values) > 1 else ""
    return f"{np.mean(values):.{digits}f}{spread}"


def mean_fields(name, values):
    """Return fields for the mean and, of several values, the deviation."""
    found = {name: round(float(np.mean(values)), 6)} if len(values) else {}
    if len(values) > 1:
        found[f"{name}_deviation"] = round(float(np.std(values, ddof=1)), 6)
    return found


def picked(source, *names):
    """Return attributes by their names."""
    return {name: getattr(source, name) for name in names}


def write_csv(path, lines):
    """Write mappings as lines, with empty cells for missing fields."""
    import pandas as pd

    with replacing(path) as file:
        file.write(pd.DataFrame(lines).to_csv(index=False).encode())
