"""Damage in Arrow's files: found before any number of theirs is trusted, told as an error."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from .errors import arrow

__all__ = ["damage_named", "sound"]


def sound(batch: Any) -> Any:
    """The same record batch, once its offsets, codes and text are known to lie within it.

    pyarrow maps what a file says and follows it: an offset beyond the text, or a code beyond the
    dictionary, reads memory that belongs to something else. Numbers cost next to nothing here;
    text and codes are gone through once, where they are read anyway.

    Raises
    ------
    pyarrow.ArrowInvalid
        If the batch's parts do not fit together.
    """
    batch.validate(full=True)
    return batch


@contextmanager
def damage_named(path: str | os.PathLike[str], expected: str | None = None) -> Iterator[None]:
    """Turn pyarrow's errors into a ValueError that names the file.

    Parameters
    ----------
    path : path
        The file.
    expected : str, optional
        What the file should have been, while it is not known to be that.

    Raises
    ------
    ValueError
        If the file is damaged, or not what was expected.
    MemoryError
        If pyarrow gets less memory than the file asks for.
    """
    pa = arrow(os.fspath(path))
    try:
        yield
    except pa.ArrowCancelled:
        raise
    except pa.ArrowMemoryError as error:
        raise MemoryError(
            f"{os.fspath(path)}: it is damaged, or takes more memory than there is: {_short(error)}"
        ) from None
    except (OSError, pa.ArrowException, UnicodeDecodeError) as error:
        what = "it is damaged:" if expected is None else f"expected {expected}, got"
        raise ValueError(f"{os.fspath(path)}: {what} {_short(error)}") from None


def _short(error: BaseException) -> str:
    return " ".join(str(error).split())[:120]
