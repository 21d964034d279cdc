"""Errors of files, and of packages missing to read them."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING, Any

from eigenfeat._base.types import DType
from eigenfeat._base.validation import show

if TYPE_CHECKING:
    from types import ModuleType

__all__ = ["BadRowError", "OptionError", "arrow", "missing_value", "unfit_label", "unfit_value"]


class BadRowError(ValueError):
    """Error for an invalid row. The message names the file, the row or line and the column.

    Attributes
    ----------
    path : str
        Path of the file.
    row : int
        Index of the row from 0, or number of the line from 1.
    """

    def __init__(
        self, path: str | os.PathLike[str], unit: str, row: int, column: str | None, what: str
    ) -> None:
        place = f"{unit} {row}" if column is None else f"{unit} {row}, column {column!r}"
        super().__init__(f"{os.fspath(path)}: {place}: {what}")
        self.path, self.row = str(Path(path)), row


class OptionError(ValueError):
    """Error for an argument of `open_rows` that does not match the files or other arguments.

    Attributes
    ----------
    option : str
        Name of the argument.
    text : str
        The message without the name.
    """

    def __init__(self, option: str, text: str) -> None:
        super().__init__(f"{option}: {text}")
        self.option, self.text = option, text

    def __reduce__(self) -> tuple[Any, ...]:
        return type(self), (self.option, self.text)


def missing_value(label: bool = False) -> str:
    """Message for an empty field."""
    return f"expected a {'label' if label else 'number'}, got a missing value"


def unfit_value(value: object, dtype: DType) -> str:
    """Message for a value that is not a finite number, or does not fit the type."""
    return f"expected a finite {dtype} number, got {show(value)}"


def unfit_label(value: object, kind: str) -> str:
    """Message for a label of another kind than the first labels of the file."""
    article = "an" if kind == "int" else "a"
    return f"expected {article} {kind} label like those before, got {show(value)}"


def arrow(what: str) -> ModuleType:
    """The module pyarrow; an error that says how to install it where it is missing."""
    try:
        import pyarrow
        import pyarrow.compute
    except ImportError:
        raise ImportError(f"{what} needs pyarrow: pip install 'eigenfeat[arrow]'") from None
    return pyarrow
