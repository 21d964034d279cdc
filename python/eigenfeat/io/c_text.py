"""Numbers, labels and templates of C headers."""

from __future__ import annotations

import re
from importlib.resources import files
from typing import Any

import numpy as np
from numpy.typing import NDArray

from eigenfeat._base.validation import show
from eigenfeat._base.version import __version__

__all__ = ["CNumbers", "filled_template", "integers"]


class CNumbers:
    """Arrays and numbers of a type as C writes them, without loss.

    Attributes
    ----------
    itemsize : int
        Bytes of a number.
    """

    def __init__(self, dtype: str) -> None:
        self._dtype = np.dtype(dtype)
        self._digits = ".9g" if dtype == "float32" else ".17g"
        self._suffix = "f" if dtype == "float32" else ""
        self.itemsize = self._dtype.itemsize

    def __call__(self, array: NDArray[Any]) -> str:
        """Initialiser of an array; C has no empty arrays, so that these become a zero."""
        if not array.size:
            array = np.zeros([max(length, 1) for length in array.shape])
        if array.ndim > 1:
            return "{" + ",\n".join(self(row) for row in array) + "}"
        return "{" + _lines([self._number(value) for value in array], 6) + "}"

    def _number(self, value: float) -> str:
        with np.errstate(over="ignore"):
            rounded = self._dtype.type(value)
        if not np.isfinite(rounded):
            raise ValueError(f"dtype: expected a type that holds the model's numbers, got {value}")
        text = format(rounded, self._digits)
        return (text if "." in text or "e" in text else f"{text}.0") + self._suffix


def integers(values: Any) -> str:
    """Whole numbers in lines."""
    return _lines([str(int(value)) for value in values], 24)


def _lines(pieces: list[str], width: int) -> str:
    return ",\n".join(", ".join(pieces[i : i + width]) for i in range(0, len(pieces), width))


def filled_template(
    template: str,
    name: str,
    classes: NDArray[Any],
    numbers: CNumbers,
    words: dict[str, str],
    arrays: dict[str, NDArray[Any]],
) -> str:
    """Replace the words of a template, and its arrays of numbers."""
    kind, labels, print_as = _labels(classes)
    words = {
        "NAME": name,
        "UPPER": name.upper(),
        "VERSION": __version__,
        "F": "f" if numbers.itemsize == 4 else "",
        "REAL": "float" if numbers.itemsize == 4 else "double",
        "CLASSES": str(len(classes)),
        "LABEL_TYPE": kind,
        "LABELS": labels,
        "FORMAT": f'"{print_as} after %d samples\\n"',
        "TABLE_BYTES": str(numbers.itemsize * sum(array.size for array in arrays.values())),
        **words,
        **{key: numbers(array) for key, array in arrays.items()},
    }
    text = files("eigenfeat.io").joinpath(template).read_text(encoding="utf-8")
    return re.sub(r"@([A-Z_]+)@", lambda match: words[match.group(1)], text)


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
