"""svmlight (libsvm) text files, parsed by scikit-learn in pieces of whole lines."""

from __future__ import annotations

import io
import math
import re
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
from scipy.sparse import csr_matrix
from sklearn.datasets import load_svmlight_file

from eigenfeat._base.types import DType
from eigenfeat._base.validation import check_whole, show
from eigenfeat.tables.columns import (
    Choice,
    Chunk,
    ColumnNumbers,
    Mask,
    Options,
    Source,
    typed_labels,
    whole_labels,
)
from eigenfeat.tables.damage import open_bytes
from eigenfeat.tables.errors import BadRowError, OptionError, missing_value, unfit_label

__all__ = ["SvmlightSource"]

_CHUNK_BYTES = 4 << 20
_MOST_BYTES = 64 << 20  # of a line
_EXTRA = re.compile(rb"#.*|(?<!\S)qid:\S*")
_MOST_INDEX = 2**31


class SvmlightSource(Source):
    """A file of sparse rows. Columns are counted from `base`, which all parts share."""

    format = "svmlight"
    sparse = True
    named = False
    unit = "line"

    def __init__(self, path: Path, options: Options) -> None:
        self.path, self.dtype = path, np.dtype(options.dtype or np.float64)
        if options.columns is not None or options.drop:
            option = "drop" if options.columns is None else "columns"
            raise OptionError(option, f"expected none with svmlight files, as {path}")
        if options.target not in (None, "label", "y", "0", 0):
            raise OptionError(
                "target",
                "expected none with svmlight files, which begin lines with their labels, "
                f"got {show(options.target)}",
            )
        self.base, self._stop = 0, _MOST_INDEX
        self._label = options.labels
        self._marks: list[tuple[int, int, int]] = []  # rows, bytes and lines before a piece
        self.lowest = self.highest = -1
        if options.n_features is None or options.zero_based is None:
            self._survey()

    def _survey(self) -> None:
        """Find the lowest and the highest index of a column, or -1."""
        for _, lines in self._pieces(0):
            indices, _, bad = self._parsed(lines)[0]
            del bad
            if len(indices):
                low, high = int(indices.min()), int(indices.max())
                self.lowest = low if self.lowest < 0 else min(low, self.lowest)
                self.highest = max(high, self.highest)

    def settle(self, base: int, n_features: int, label_kind: str | None) -> None:
        """Take what all parts of the data have in common."""
        self.base, self._stop = base, base + n_features
        self.names = ColumnNumbers(n_features)
        self.types, self.kinds = [self.dtype.name], ["number"]
        self.choice = Choice(range(n_features), None)
        self.label_kind = label_kind

    def first_label_kind(self) -> str:
        """Kind of the first labels."""
        if self._label != "auto":
            return self._label
        for _, lines in self._pieces(0):
            (_, y, _), _ = self._parsed(lines)
            return whole_labels(y)
        return "int"

    @property
    def feature_names(self) -> Sequence[str]:
        """Names of the features, which are all columns."""
        return self.names

    @property
    def target_name(self) -> str:
        """Name of the labels."""
        return "label"

    def chunks(self, skip: int) -> Iterator[Chunk]:
        """Yield parsed lines."""
        mark = max((m for m in self._marks if m[0] <= skip), default=(0, 0, 1))
        row, _, line = mark
        for place, lines in self._pieces(mark[1]):
            self._note((row, place, line))
            (_, labels, bad), X = self._parsed(lines, matrix=True)
            y, wrong = (None, None)
            if self.label_kind not in (None, "none"):
                y, wrong = typed_labels(labels, str(self.label_kind))
            if X.shape[0] and row + X.shape[0] > skip:
                yield Chunk(row, X.shape[0], None, X, y, wrong, bad)
            row += X.shape[0]
            line += lines.count(b"\n")

    def _parsed(self, lines: bytes, *, matrix: bool = False) -> Any:
        """Indices, labels and bad rows, and the rows as a matrix."""
        filled = lines
        bad: Mask | None = None
        try:
            X, y = self._loaded(filled)
            fits = not X.nnz or (int(X.indices.min()) >= self.base and X.shape[1] <= self._stop)
            fits = fits and bool(np.isfinite(X.data).all() and np.isfinite(y).all())
        except (ValueError, OverflowError):
            fits = False
        if not fits:
            good, flags = [], []
            for text in lines.split(b"\n"):
                if _content(text):
                    wrong = _fault(text, self.base, self._stop) is not None
                    flags.append(wrong)
                    good.append(b"0" if wrong else text)
            bad = np.array(flags, dtype=bool)
            X, y = self._loaded(b"\n".join(good))
        if np.abs(y).max(initial=0.0) >= 2.0**53:
            y = _exact(lines, y, bad)
        if not matrix:
            return (X.indices, y, bad), None
        parsed = csr_matrix(
            (X.data, X.indices.astype(np.int64) - self.base, X.indptr),
            shape=(X.shape[0], len(self.names)),
        )
        return (X.indices, y, bad if bad is not None and bad.any() else None), parsed

    def _loaded(self, lines: bytes) -> tuple[Any, npt.NDArray[np.float64]]:
        if not lines.strip():
            return csr_matrix((0, 1)), np.empty(0)
        return load_svmlight_file(io.BytesIO(lines), zero_based=True, dtype=self.dtype)

    def _pieces(self, offset: int) -> Iterator[tuple[int, bytes]]:
        """Whole lines from a byte on, each with its place."""
        with open_bytes(self.path) as file:
            file.seek(offset)
            rest = b""
            while data := file.read(_CHUNK_BYTES):
                rest += data
                cut = rest.rfind(b"\n") + 1
                if cut:
                    yield offset, rest[:cut]
                    offset, rest = offset + cut, rest[cut:]
                elif len(rest) > _MOST_BYTES:
                    raise ValueError(
                        f"{self.path}: expected lines of at most {_MOST_BYTES:,} bytes, got a "
                        f"longer one from byte {offset} on"
                    )
            if rest:
                yield offset, rest

    def _note(self, mark: tuple[int, int, int]) -> None:
        if not self._marks or mark > self._marks[-1]:
            self._marks.append(mark)

    def complaint(
        self, row: int, column: int | None, value: Any, dtype: DType, *, missing: bool
    ) -> BadRowError:
        """Say what is wrong with a line."""
        first, place, number = max((m for m in self._marks if m[0] <= row), default=(0, 0, 1))
        for _, lines in self._pieces(place):
            for text in lines.split(b"\n"):
                if _content(text):
                    if first == row:
                        if what := _fault(text, self.base, self._stop):
                            return BadRowError(self.path, "line", number, None, what)
                        label = float(_content(text).split()[0])
                        what = unfit_label(label, str(self.label_kind))
                        return BadRowError(self.path, "line", number, "label", what)
                    first += 1
                number += 1
            number -= 1
        return BadRowError(self.path, "line", number, None, "expected another row")

    def fraction(self, row: int) -> float | None:
        """Part of the bytes that lie before a row."""
        if self.path.suffix == ".gz":
            return None
        size = max(self.path.stat().st_size, 1)
        later = [m for m in self._marks if m[0] >= row]
        return later[0][1] / size if later else 1.0

    def facts(self) -> dict[str, object]:
        """The index of the first column."""
        return {"zero_based": self.base == 0}


def shared_columns(sources: Sequence[SvmlightSource], options: Options) -> tuple[int, int]:
    """Index of the first column, and number of columns, of all parts."""
    used = [source for source in sources if source.lowest >= 0]
    low = min((source.lowest for source in used), default=1)
    high = max((source.highest for source in used), default=0)
    base = min(low, 1)
    if options.n_features is not None and high >= options.n_features:
        base = 1  # or the last columns were too many
    if options.zero_based is not None:
        base = int(not options.zero_based)
    if options.n_features is None and low < base:
        path = next(source.path for source in used if source.lowest < base)
        raise OptionError("zero_based", f"expected True for {path}, which has a column 0")
    if options.n_features is not None:
        return base, check_whole(options.n_features, "n_features", at_least=1)
    return base, max(high + 1 - base, 1)


def _content(line: bytes) -> bytes:
    return _EXTRA.sub(b"", line).strip()


def _exact(lines: bytes, y: npt.NDArray[np.float64], bad: Mask | None) -> npt.NDArray[Any]:
    """Labels as 64-bit integers where all are whole; as they are otherwise."""
    heads = [_content(line).split()[0] for line in lines.split(b"\n") if _content(line)]
    if bad is not None:
        heads = [b"0" if wrong else head for head, wrong in zip(heads, bad, strict=True)]
    try:
        return np.array([int(head) for head in heads], dtype=np.int64)
    except (ValueError, OverflowError):
        return y


def _fault(line: bytes, first: int, stop: int) -> str | None:
    """What is wrong with a line; None if nothing is."""
    head, *entries = _content(line).split() or [b"0"]
    if not _is_finite(head):
        return missing_value(label=True) if b":" in head else f"expected a label, got {_text(head)}"
    last = -1
    for entry in entries:
        index, _, value = entry.partition(b":")
        if not index.isdigit() or not _is_finite(value):
            return f"expected column:number, got {_text(entry)}"
        if int(index) < first:
            return f"expected columns from {first}, got 0: zero_based=True (--zero-based) reads it"
        if int(index) >= stop:
            return f"expected columns up to {stop - 1}, got {int(index)}: n_features is too small"
        if int(index) <= last:
            return f"expected columns in ascending order, got {int(index)} after {last}"
        last = int(index)
    return None


def _is_finite(text: bytes) -> bool:
    try:
        return math.isfinite(float(text)) and b"_" not in text
    except ValueError:
        return False


def _text(value: bytes) -> str:
    return show(value.decode("utf-8", "replace"))
