"""svmlight (libsvm) text files: a label and the nonzero features of a row on every line."""

from __future__ import annotations

import math
import re
import warnings
from collections.abc import Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
from numpy.lib import NumpyVersion
from scipy.sparse import csr_matrix

from eigenfeat._base.types import DType
from eigenfeat._base.validation import check_whole, show
from eigenfeat.tables.errors import BadRowError, OptionError, missing_value, unfit_label
from eigenfeat.tables.source import (
    Choice,
    Chunk,
    ColumnNumbers,
    Options,
    Source,
    SparseChunk,
    label_kind,
    line_chunks,
    open_bytes,
)

__all__ = ["SvmlightSource"]

_CHUNK_BYTES = 4 << 20
_COMMENT = re.compile(rb"#[^\n]*")
_QUERY = re.compile(rb"qid:\S*")
_EMPTY_LINE = re.compile(rb"^[ \t\r]*\n", re.MULTILINE)
_NEW_LINE, _COLON, _SPACE = 10, 58, 32


class _Rows(NamedTuple):
    """Parsed lines; `indices` as they are in the file."""

    labels: npt.NDArray[np.float64]
    indptr: npt.NDArray[np.int64]
    indices: npt.NDArray[np.float64]
    data: npt.NDArray[np.float64]


class SvmlightSource(Source):
    """A file of sparse rows, parsed in chunks of whole lines; restart points are bytes."""

    format = "svmlight"
    sparse = True

    def __init__(self, path: Path, options: Options, first: Source | None) -> None:
        self.path, self.dtype = path, np.dtype(options.dtype or np.float64)
        self._skip_bad, self._mark_bad = options.skip_bad, options.mark_bad
        if options.columns is not None or options.drop:
            option = "drop" if options.columns is None else "columns"
            raise OptionError(option, f"expected none with svmlight files, as {path}")
        if options.target not in (None, "label", "y", "0", 0):
            raise OptionError(
                "target",
                "expected none with svmlight files, which begin lines with their labels, "
                f"got {show(options.target)}",
            )
        self._base, count = self._index_range(options)
        if isinstance(first, SvmlightSource):
            count = max(count, first.n_features) if options.n_features is None else count
            self.label_kind = first.label_kind
        else:
            self.label_kind = label_kind(self._first_labels(), options.labels, whole=True)
        self.widen(count)

    def widen(self, n_features: int) -> None:
        """Set the number of columns: the largest of all files."""
        self._n_features = n_features
        self.names = ColumnNumbers(n_features)
        self.types = [self.dtype.name]
        self.choice = Choice(range(n_features), None)

    @property
    def feature_names(self) -> Sequence[str]:
        """Names of the features, which are all columns."""
        return self.names

    @property
    def target_name(self) -> str:
        """Name of the labels."""
        return "label"

    def _index_range(self, options: Options) -> tuple[int, int]:
        """Index of the first column, and the number of columns."""
        if options.n_features is not None:
            count = check_whole(options.n_features, "n_features", at_least=1)
            return int(not options.zero_based), count
        low, high = 1, 0
        for place, lines in line_chunks(self.path, 0, _CHUNK_BYTES):
            indices = self._good_rows(lines, place, 0, None)[0].indices
            if len(indices):
                low, high = min(low, int(indices.min())), max(high, int(indices.max()))
        base = low if options.zero_based is None else int(not options.zero_based)
        if low < base:
            raise OptionError("zero_based", f"expected True for {self.path}, which has a column 0")
        return base, max(high + 1 - base, 1)

    def _first_labels(self) -> npt.NDArray[np.float64]:
        place, lines = next(line_chunks(self.path, 0, _CHUNK_BYTES), (0, b""))
        return self._good_rows(lines, place, self._base, None)[0].labels

    def chunks(self, offset: int, skip: int) -> Iterator[_SvmlightChunk]:
        """Yield parsed lines; restart points are bytes at which a line starts."""
        for place, lines in line_chunks(self.path, offset, _CHUNK_BYTES):
            stop = self._base + self._n_features
            rows, dropped = self._good_rows(lines, place, self._base, stop, mark=self._mark_bad)
            if len(rows.labels) or dropped:
                yield _SvmlightChunk(rows, self._base, self._n_features, place, dropped, lines)

    def _good_rows(
        self, lines: bytes, place: int, first: int, stop: int | None, *, mark: bool = False
    ) -> tuple[_Rows, int]:
        """Rows of lines, and the number of those left out; BadRowError unless they may be.

        With `mark` they stay, and have a NaN in the first column.
        """
        rows = _parsed(lines)
        if rows is not None and _columns_fit(rows.indices, first, stop):
            return rows, 0
        kept, dropped, marked = [], 0, []
        for index, line in enumerate(lines.split(b"\n")):
            what = _fault(line, first, stop)
            if what is None:
                if _content(line):
                    kept.append(line)
            elif mark:
                marked.append(len(kept))
                kept.append(b"0 %d:0" % first)
            elif self._skip_bad or self._mark_bad:
                dropped += 1
            else:
                number = self._line_number(place) + index
                raise BadRowError(self.path, "line", number, None, what)
        rows = _parsed(b"\n".join(kept))
        if rows is None:
            number = self._line_number(place)
            raise ValueError(f"{self.path}: cannot read the lines from {number} on")
        rows.data[rows.indptr[np.array(marked, dtype=np.intp)]] = np.nan
        return rows, dropped

    def _line_number(self, place: int) -> int:
        with open_bytes(self.path) as file:
            count = 1
            while place and (data := file.read(min(place, _CHUNK_BYTES))):
                count += data.count(b"\n")
                place -= len(data)
        return count

    def complaint(self, chunk: Chunk, row: int, column: int | None, dtype: DType) -> BadRowError:
        """Say what is wrong with the label of a row."""
        value = float(chunk.labels(slice(row, row + 1))[0][0])
        filled = [i for i, line in enumerate(chunk.lines.split(b"\n")) if _content(line)]
        number = self._line_number(chunk.offset) + filled[row]
        what = unfit_label(value, str(self.label_kind))
        return BadRowError(self.path, "line", number, "label", what)

    def fraction(self, offset: int, skip: int) -> float | None:
        """Part of the bytes that lie before a restart point."""
        if self.path.suffix == ".gz":
            return None
        return offset / max(self.path.stat().st_size, 1)

    def facts(self) -> dict[str, object]:
        """The index of the first column."""
        return {"zero_based": self._base == 0}


class _SvmlightChunk(SparseChunk):
    """Lines as a CSR matrix."""

    def __init__(
        self, rows: _Rows, base: int, n_features: int, offset: int, dropped: int, lines: bytes
    ) -> None:
        self.offset, self.dropped, self.lines = offset, dropped, lines
        self._labels = rows.labels
        indices = rows.indices.astype(np.int64) - base
        shape = (len(rows.labels), n_features)
        self._matrix = csr_matrix((rows.data, indices, rows.indptr), shape=shape)

    def __len__(self) -> int:
        return len(self._labels)

    def matrix(self, rows: slice) -> Any:
        return self._matrix[rows]

    def labels(self, rows: slice) -> tuple[npt.NDArray[Any], None]:
        return self._labels[rows], None


def _parsed(lines: bytes) -> _Rows | None:
    """Rows of lines, all at once; None if any of them is malformed."""
    if b"#" in lines:
        lines = _COMMENT.sub(b"", lines)
    if b"qid:" in lines:
        lines = _QUERY.sub(b"", lines)
    lines = _EMPTY_LINE.sub(b"", lines if lines.endswith(b"\n") else lines + b"\n")
    text = np.frombuffer(lines, dtype=np.uint8)
    ends = np.flatnonzero(text == _NEW_LINE)
    counts = _per_line(text == _COLON, ends)
    blank = (text <= _SPACE) | (text == _COLON)
    starts = ~blank
    starts[1:] &= blank[:-1]
    if not np.array_equal(_per_line(starts, ends), 1 + 2 * counts):
        return None
    try:
        with _errors_for_warnings():
            values = np.fromstring(lines.replace(b":", b" "), sep=" ")
    except (ValueError, DeprecationWarning):
        return None
    if len(values) != len(ends) + 2 * counts.sum() or not np.isfinite(values).all():
        return None
    indptr = np.concatenate([[0], np.cumsum(counts)]).astype(np.int64)
    heads = np.arange(len(ends)) + 2 * indptr[:-1]
    rest = np.delete(values, heads).reshape(-1, 2)
    return _Rows(values[heads], indptr, rest[:, 0].copy(), rest[:, 1].copy())


def _errors_for_warnings() -> AbstractContextManager[object]:
    """NumPy before 2.4 warns of what is no number, where newer ones raise ValueError."""
    if NumpyVersion(np.__version__) >= "2.4.0":
        return nullcontext()  # filters of warnings belong to all threads: they are left alone
    return _raised_warnings()


@contextmanager
def _raised_warnings() -> Iterator[None]:
    with warnings.catch_warnings():
        warnings.simplefilter("error", DeprecationWarning)
        yield


def _per_line(flags: npt.NDArray[np.bool_], ends: npt.NDArray[np.intp]) -> npt.NDArray[np.int64]:
    """How many flags are set on each line."""
    return np.diff(np.searchsorted(np.flatnonzero(flags), ends), prepend=0)


def _columns_fit(indices: npt.NDArray[np.float64], first: int, stop: int | None) -> bool:
    if not len(indices):
        return True
    bound = 2.0**31 if stop is None else stop
    whole = np.array_equal(indices, np.rint(indices))
    return whole and bool(indices.min() >= first and indices.max() < bound)


def _content(line: bytes) -> bytes:
    return _QUERY.sub(b"", _COMMENT.sub(b"", line)).strip()


def _fault(line: bytes, first: int, stop: int | None) -> str | None:
    """What is wrong with a line; None if nothing is."""
    head, *entries = _content(line).split() or [b"0"]
    if not _is_finite(head):
        return missing_value(label=True) if b":" in head else f"expected a label, got {_text(head)}"
    for entry in entries:
        index, _, value = entry.partition(b":")
        if not index.isdigit() or not _is_finite(value):
            return f"expected column:number, got {_text(entry)}"
        if int(index) < first:
            return f"expected columns from {first}, got 0: zero_based=True (--zero-based) reads it"
        if int(index) >= (2**31 if stop is None else stop):
            last = 2**31 - 1 if stop is None else stop - 1
            return f"expected columns up to {last}, got {int(index)}: n_features is too small"
    return None


def _is_finite(text: bytes) -> bool:
    try:
        return math.isfinite(float(text)) and b"_" not in text
    except ValueError:
        return False


def _text(value: bytes) -> str:
    return show(value.decode("utf-8", "replace"))
