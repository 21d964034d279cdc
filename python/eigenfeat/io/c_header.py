"""Classifiers of streams as C headers, for microcontrollers and other programs without Python."""

from __future__ import annotations

import os
import re
from importlib.resources import files
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from eigenfeat._base.saved_files import replacing
from eigenfeat._base.validation import check_path, show
from eigenfeat._base.version import __version__
from eigenfeat.early.reliable import ReliableClassifier
from eigenfeat.early.reliable_search import ReliableClassifierCV
from eigenfeat.early.streams import StreamTables, stream_tables

if TYPE_CHECKING:
    from collections.abc import Sequence

    from sklearn.base import BaseEstimator

__all__ = ["to_c"]

_TEMPLATE = "early_stream.h.in"


def to_c(
    model: BaseEstimator,
    path: str | os.PathLike[str] | None = None,
    *,
    dtype: str = "float64",
    name: str | None = None,
    reliability: float | Sequence[float] | None = None,
    steps: Sequence[int] | None = None,
) -> str:
    """Write a fitted classifier of streams as a C header.

    The header is C99 and C++11, needs ``erfc`` and ``exp`` of ``<math.h>`` and nothing else, and
    allocates no memory. ``NAME_begin(&state)`` begins a series, ``NAME_push(&state, sample)`` takes
    its next sample and returns the class once the series is decided, and ``NAME_finish(&state)``
    decides a series that has ended early. Labels and times are those of ``model.stream()``.

    Parameters
    ----------
    model : ReliableClassifier or ReliableClassifierCV
        Fitted, with the rule "pairwise" and linear discriminants, one for each class, such as
        ``ReliableClassifier(LinearDiscriminantAnalysis())``. Its completion may have one Gaussian
        or one for each class.
    path : str or path-like, optional
        File to which the header is also written; an existing file is replaced once the new file is
        complete.
    dtype : {"float32", "float64"}
        Type of the samples and of all numbers. With float32 series that are close to the threshold
        may be decided one look earlier or later.
    name : str, optional
        Prefix of every name in the header; by default the name of the file, or ``eigenfeat``.
    reliability : float, optional
        tau; by default the estimator's.
    steps : ascending integers in 1..length, optional
        Numbers of samples after which series may be decided; by default the estimator's.
        Each adds a table of k (k - 1) / 2 numbers for each part of the completion.

    Returns
    -------
    str
        The header. Its tables have about d (d + 2 k) / 2 numbers for each part of the completion.

    Raises
    ------
    ValueError
        If the model is of another kind, uses another rule, its labels are neither whole numbers nor
        strings, or an argument is invalid.
    NotFittedError
        If the model is not fitted.

    See Also
    --------
    eigenfeat.io.to_onnx : Models for ONNX runtimes.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from sklearn.discriminant_analysis import LinearDiscriminantAnalysis
    >>> from eigenfeat.early import ReliableClassifier
    >>> from eigenfeat.io import to_c
    >>> X, y = load_iris(return_X_y=True)
    >>> model = ReliableClassifier(LinearDiscriminantAnalysis()).fit(X, y)
    >>> header = to_c(model, name="flower")
    >>> "static inline int flower_push(" in header
    True
    """
    if not isinstance(dtype, str) or dtype not in ("float32", "float64"):
        raise ValueError(f"dtype: expected 'float32' or 'float64', got {show(dtype)}")
    if path is not None:
        check_path(path)
    name = _name_of(path, name)
    if isinstance(model, ReliableClassifierCV):
        model = getattr(model, "best_estimator_", model)
    if not isinstance(model, ReliableClassifier):
        raise ValueError(f"model: expected a fitted ReliableClassifier, got {show(model)}")
    made = _filled(stream_tables(model, reliability, steps), name, dtype)
    if path is not None:
        with replacing(path) as file:
            file.write(made.encode())
    return made


def _name_of(path: Any, name: Any) -> str:
    if name is None:
        stem = "eigenfeat" if path is None else re.sub(r"\W", "_", Path(path).stem, flags=re.A)
        name = f"_{stem}" if stem[:1].isdigit() else stem
    if not isinstance(name, str) or not re.fullmatch(r"[A-Za-z_][A-Za-z0-9_]*", name):
        raise ValueError(f"name: expected letters, digits and underscores, got {show(name)}")
    return name


def _filled(tables: StreamTables, name: str, dtype: str) -> str:
    """The template with the model's numbers."""
    numbers = _Numbers(dtype)
    parts, d = tables.means.shape
    k = len(tables.classes)
    diagonals = np.einsum("gtt->gt", tables.factors)
    rows, columns = np.tril_indices(d, -1)
    higher, lower = np.tril_indices(k, -1)
    apart = tables.deviations[:, :, higher, lower]
    with np.errstate(divide="ignore"):
        scales = np.where(apart > 0, 1 / (np.sqrt(2) * apart), 0.0)
    looks = np.full(tables.length + 1, -1)
    looks[tables.times] = np.arange(len(tables.times))
    arrays = {
        "START_SCORES": tables.scores,
        "START_WEIGHTS": np.log(tables.weights),
        "MEANS": tables.means,
        "RECIPROCALS": 1 / diagonals,
        "LOGARITHMS": -np.log(diagonals),
        "FACTORS": _at_least_one(tables.factors[:, rows, columns]),
        "GAINS": tables.gains,
        "RISKS": tables.risks if len(tables.risks) else np.zeros(1),
        "PAIRS": _at_least_one(scales if len(scales) else np.zeros((1, parts, len(higher)))),
    }
    size = np.dtype(dtype).itemsize
    kind, labels, print_as = _labels(tables.classes)
    words = {
        "NAME": name,
        "UPPER": name.upper(),
        "VERSION": __version__,
        "TAU": format(tables.tau, ".15g"),
        "F": "f" if dtype == "float32" else "",
        "REAL": "float" if dtype == "float32" else "double",
        "CHANNELS": str(tables.channels),
        "LENGTH": str(tables.length),
        "CLASSES": str(k),
        "PARTS": str(parts),
        "ENTRIES": str(d),
        "LABEL_TYPE": kind,
        "LABELS": labels,
        "TARGETS": ", ".join(map(str, tables.is_target.astype(int))),
        "FORMAT": f'"{print_as} after %d samples\\n"',
        "LOOKS": ", ".join(map(str, looks)),
        "N_LOOKS": str(max(1, len(tables.times))),
        "N_PAIRS": str(max(1, len(higher))),
        "FACTOR_LENGTH": str(max(1, len(rows))),
        "STATE_BYTES": str(size * (parts * (d + k + 1) + tables.channels) + 8),
        "TABLE_BYTES": str(
            size * sum(array.size for array in arrays.values()) + 2 * len(looks) + k
        ),
        **{key: numbers(array) for key, array in arrays.items()},
    }
    template = files("eigenfeat.io").joinpath(_TEMPLATE).read_text(encoding="utf-8")
    return re.sub(r"@([A-Z_]+)@", lambda match: words[match.group(1)], template)


def _at_least_one(array: NDArray[Any]) -> NDArray[Any]:
    """Replace an array of length 0, which C does not have, by zeros of length 1."""
    return array if array.shape[-1] else np.zeros((*array.shape[:-1], 1))


def _labels(classes: NDArray[Any]) -> tuple[str, str, str]:
    """The type of the labels in C, the labels, and their format for ``printf``."""
    if classes.dtype.kind in "iub":
        whole = [int(label) for label in classes]
        if max(map(abs, whole)) < 2**31:
            return "const long", ", ".join(map(str, whole)), "%ld"
    elif all(isinstance(label, str) for label in classes.tolist()):
        return "const char *const", ", ".join(map(_quoted, classes.tolist())), "%s"
    raise ValueError(
        "classes: expected strings, or whole numbers of at most 31 bits, got "
        f"{show(classes.tolist())}"
    )


def _quoted(text: str) -> str:
    """A string of C; bytes other than plain ASCII in octal, which ends after three digits."""
    plain = set(range(32, 127)) - set(b'"\\?')
    return '"' + "".join(chr(b) if b in plain else f"\\{b:03o}" for b in text.encode()) + '"'


class _Numbers:
    """Arrays and numbers as C writes them, without loss."""

    def __init__(self, dtype: str) -> None:
        self._dtype = np.dtype(dtype)
        self._digits = ".9g" if dtype == "float32" else ".17g"
        self._suffix = "f" if dtype == "float32" else ""

    def number(self, value: float) -> str:
        """Format a number."""
        with np.errstate(over="ignore"):
            rounded = self._dtype.type(value)
        if not np.isfinite(rounded):
            raise ValueError(f"dtype: expected a type that holds the model's numbers, got {value}")
        text = format(rounded, self._digits)
        return (text if "." in text or "e" in text else f"{text}.0") + self._suffix

    def __call__(self, array: NDArray[Any]) -> str:
        if array.ndim > 1:
            return "{" + ",\n".join(self(row) for row in array) + "}"
        pieces = [self.number(value) for value in array]
        lines = [", ".join(pieces[i : i + 6]) for i in range(0, len(pieces), 6)]
        return "{" + ",\n".join(lines) + "}"
