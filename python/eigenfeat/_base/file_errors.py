"""File system errors that name the file."""

from __future__ import annotations

import errno
from collections.abc import Iterator
from contextlib import contextmanager

TYPE_CHECKING = False  # typing and pathlib take time to import
if TYPE_CHECKING:
    from pathlib import Path

__all__ = ["is_of_file", "naming"]


@contextmanager
def naming(name: str, scratch: Path | None = None) -> Iterator[None]:
    """Name the file `name` in errors of a full disk, and in errors of the file `scratch`."""
    try:
        yield
    except OSError as error:
        if not is_of_file(scratch, error):
            raise
        raise OSError(error.errno, error.strerror or str(error), name) from None


def is_of_file(scratch: Path | None, error: OSError) -> bool:
    """Whether an error names the file `scratch`, or is due to a full disk, which names no file."""
    full = error.errno in (errno.ENOSPC, errno.EDQUOT, errno.EFBIG)
    return (full and error.filename is None) or (
        scratch is not None and error.filename in (scratch, str(scratch))
    )
