"""svmlight (libsvm) text files, parsed by scikit-learn in pieces of whole lines."""

from __future__ import annotations

import io
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
from scipy.sparse import csr_matrix

from eigenfeat._base.types import DType
from eigenfeat._base.validation import show
from eigenfeat.io.errors import (
    MISSING_LABEL,
    BadRowError,
    OptionError,
    damage_named,
    fraction_of,
    not_finite,
    open_bytes,
)
from eigenfeat.io.source import (
    Chunk,
    ColumnChoice,
    Mask,
    Options,
    Source,
    kind_of_floats,
    labels_of_array,
)

__all__ = ["SvmlightSource", "settle_columns"]

_PIECE_BYTES = 4 << 20  # text that is parsed at a time
_MAX_LINE_BYTES = 64 << 20  # text of the longest line
_MAX_COLUMNS = 2**31  # column numbers are smaller


class SvmlightSource(Source):
    """A file of sparse samples. All files number their columns from 0, or all files from 1."""

    format = "svmlight"
    sparse = True
    named = False
    unit = "line"

    def __init__(self, path: Path, options: Options, keys: Mapping[str, str]) -> None:
        super().__init__(path, options, keys)
        self.dtype = np.dtype(options.dtype or np.float64)
        if options.columns is not None or options.drop:
            option = "drop" if options.columns is None else "columns"
            raise OptionError(option, f"expected none with svmlight files such as {path}")
        if options.target not in (None, "label", "y", "0", 0):
            raise OptionError(
                "target",
                "expected None with svmlight files, whose lines begin with labels, "
                f"got {show(options.target)}",
            )
        self._base, self._stop = 0, _MAX_COLUMNS
        self.lowest = self.highest = -1  # lowest and highest column number; -1 without entries
        if options.n_features is None or options.zero_based is None:
            for lines, _ in self._pieces():
                indices = self._parsed(lines)[0].indices
                if len(indices):
                    low = int(indices.min())
                    self.lowest = low if self.lowest < 0 else min(low, self.lowest)
                    self.highest = max(int(indices.max()), self.highest)

    def settle_columns(self, base: int, n_features: int, label_kind: str) -> None:
        """Set the first column, the number of columns and the kind of labels of all files."""
        self._base, self._stop = base, base + n_features
        self.names, self.types, self.kinds = (), [self.dtype.name], ["number"]
        self.choice = ColumnChoice(range(n_features), None)
        self.label_kind, self.facts = label_kind, {"zero_based": base == 0}

    def first_labels(self) -> npt.NDArray[Any]:
        """Labels of the first lines."""
        return next((self._parsed(lines)[1] for lines, _ in self._pieces()), np.zeros(1))

    @property
    def feature_names(self) -> Sequence[str]:
        """Numbers of the features, which are all columns."""
        return [str(j) for j in self.choice.features]

    @property
    def target_name(self) -> str:
        """Name of the labels."""
        return "label"

    def chunks(self, skip: int) -> Iterator[Chunk]:
        """Yield parsed lines."""
        start = 0
        for lines, fraction in self._pieces():
            X, labels, bad = self._parsed(lines)
            y = wrong = None
            if self.label_kind not in (None, "none"):
                y, wrong = labels_of_array(labels, str(self.label_kind))
            n = X.shape[0]
            indices = X.indices.astype(np.int64) - self._base
            X = csr_matrix((X.data, indices, X.indptr), shape=(n, self.n_features))
            yield Chunk(start, n, X, y, wrong, bad, None, fraction)
            start += n

    def _parsed(self, lines: bytes) -> tuple[Any, npt.NDArray[Any], Mask | None]:
        """Samples with the column numbers of the file, labels, and a mask of bad samples."""
        bad: Mask | None = None
        try:
            X, y = self._loaded(lines)
            fits = not X.nnz or (int(X.indices.min()) >= self._base and X.shape[1] <= self._stop)
            fits = fits and bool(np.isfinite(X.data).all() and np.isfinite(y).all())
        except (ValueError, OverflowError):
            fits = False
        if not fits:
            texts = [text for text in lines.split(b"\n") if _content(text)]
            bad = np.array([self._fault(text) is not None for text in texts], dtype=bool)
            texts = [b"0" if wrong else text for text, wrong in zip(texts, bad, strict=True)]
            lines = b"\n".join(texts)
            X, y = self._loaded(lines)
        if np.abs(y).max(initial=0.0) >= 2.0**53:  # read exactly if all labels are integers
            texts = [_content(line).split()[0] for line in lines.split(b"\n") if _content(line)]
            with suppress(ValueError, OverflowError):
                y = np.array([int(text) for text in texts], dtype=np.int64)
        return X, y, bad if bad is not None and bad.any() else None

    def _loaded(self, lines: bytes) -> tuple[Any, npt.NDArray[np.float64]]:
        if not lines.strip():
            return csr_matrix((0, 1)), np.empty(0)
        from sklearn.datasets import load_svmlight_file

        return load_svmlight_file(io.BytesIO(lines), zero_based=True, dtype=self.dtype)

    def _pieces(self) -> Iterator[tuple[bytes, float]]:
        """Yield whole lines, and the fraction of the file up to their end."""
        with damage_named(self.path), open_bytes(self.path) as file:
            rest = b""
            while data := file.read(_PIECE_BYTES):
                lines, end, rest = (rest + data).rpartition(b"\n")
                if len(rest) > _MAX_LINE_BYTES:
                    raise ValueError(
                        f"{self.path}: expected lines of at most {_MAX_LINE_BYTES:,} bytes, got a "
                        "longer line"
                    )
                if end:
                    yield lines + end, fraction_of(file, self.path)
            if rest:
                yield rest, 1.0

    def complaint(self, row: int, column: int | None, value: Any, dtype: DType) -> BadRowError:
        """Return the error of a bad line."""
        number, text = 0, b""
        with open_bytes(self.path) as file:
            for number, text in enumerate(file, 1):  # noqa: B007
                row -= bool(_content(text))
                if row < 0:
                    break
        if what := self._fault(text):
            return BadRowError(self.path, "line", number, None, what)
        label = float(_content(text).split()[0])
        return BadRowError(self.path, "line", number, "label", self.unfit_label(label))

    def _fault(self, line: bytes) -> str | None:
        """Return the fault of a line; None for a good line."""
        try:
            X, y = self._loaded(line)
        except (ValueError, OverflowError) as error:
            text = show(_content(line)[:80].decode("utf-8", "replace"))
            return f"expected LABEL COLUMN:NUMBER ..., got {text} ({error})"
        if not np.isfinite(y).all():
            return MISSING_LABEL
        if not np.isfinite(X.data).all():
            return not_finite(X.data[~np.isfinite(X.data)][0], self.dtype)
        if X.nnz and X.indices[0] < self._base:
            return "expected columns from 1, got 0; set zero_based=True (--zero-based)"
        if X.nnz and X.indices[-1] >= self._stop:
            last = self._stop - 1
            return f"expected columns up to {last}, got {X.indices[-1]}: n_features is too small"
        return None


def settle_columns(sources: Sequence[SvmlightSource], options: Options) -> None:
    """Set the first column, number of columns and kind of labels that all files share."""
    used = [source for source in sources if source.lowest >= 0]
    low = min((source.lowest for source in used), default=1)
    high = max((source.highest for source in used), default=0)
    base = min(low, 1)
    if options.n_features is not None and high >= options.n_features:
        base = 1  # counted from 0, the last columns would exceed n_features
    if options.zero_based is not None:
        base = int(not options.zero_based)
    if options.n_features is None and low < base:
        path = next(source.path for source in used if source.lowest < base)
        raise OptionError("zero_based", f"expected True for {path}, which has a column 0")
    n_features = options.n_features or max(high + 1 - base, 1)
    kind = options.labels
    if kind == "auto":
        kind = kind_of_floats(sources[0].first_labels(), kind)
    for source in sources:
        source.settle_columns(base, n_features, kind)


def _content(line: bytes) -> bytes:
    return line.partition(b"#")[0].strip()
