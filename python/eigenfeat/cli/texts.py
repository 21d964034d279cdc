"""Words that the help of several commands has."""

from __future__ import annotations

__all__ = ["DATA", "STATUS"]

DATA = """\
DATA is one file or several with the same columns, a folder of them, or a pattern in quotes:
CSV (.csv .tsv, also .gz), Parquet (.parquet .pq), Arrow IPC and Feather (.arrow .feather .ipc),
NumPy (.npy .npz), svmlight (.svm .svmlight .libsvm, also .gz). CSV, Parquet and Arrow need
pyarrow: pip install 'eigenfeat[arrow]'. If DATA is - and --format is given, fit, predict, evaluate,
transform, report and search read standard input; with -o - predict and transform write CSV to
standard output."""

STATUS = """\
exit status: 0 done; 1 a file cannot be read or written, or rows are bad; 2 wrong options, such as a
value out of range or a missing column; 130 (Ctrl-C) or 143 (SIGTERM) interrupted."""
