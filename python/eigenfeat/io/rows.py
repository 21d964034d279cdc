"""Samples of files as `RowBlocks`; the blocks depend only on the files and the options."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from dataclasses import asdict, dataclass, field, replace
from typing import Any, TypeVar

import numpy as np
import numpy.typing as npt
from sklearn.utils import get_tags

from eigenfeat._base.types import DType, Floats
from eigenfeat._base.validation import counted, warn_caller
from eigenfeat.expansion.features import take_rows
from eigenfeat.io.errors import COMPLETE_FIT, MISSING_ENTRY, MISSING_NUMBER, BadRowError
from eigenfeat.io.fitted_columns import (
    column_options,
    encoder_options,
    fitted_options,
    wrong_width,
)
from eigenfeat.io.source import Chunk, Mask, Options, Source
from eigenfeat.samples.blocks import RowBlocks, joined
from eigenfeat.samples.columns import TableColumns, column_counts, days_of, merge_counts
from eigenfeat.samples.labelled import Block
from eigenfeat.samples.out_of_core import completes

__all__ = ["CSV_DEFAULTS", "FileRows", "Position"]

_BLOCK_BYTES = 32e6  # default size of a block
_MAX_MEMORY_BYTES = 64e6  # default of `FileRows.memory`
# Options that describe the text of CSV files, and their defaults.
CSV_DEFAULTS: dict[str, Any] = {"decimal": "."} | dict.fromkeys(
    ("delimiter", "header", "encoding", "comment")
)
_SPARSE_ROWS = 16384  # rows in a block of sparse samples
_Open = Callable[[Options], Sequence[Source]]
_Item = TypeVar("_Item")
_END = object()


@dataclass(frozen=True)
class Position:
    """Position in the files between two blocks, from which reading can continue."""

    file: int = 0  # index of the file
    row: int = 0  # rows of the file before this position, including bad rows
    rows: int = 0  # rows returned before this position, in all files
    skipped: int = 0  # bad rows skipped before this position, in all files
    # Fraction of all bytes before this position, if known.
    fraction: float | None = field(default=None, compare=False)


class FileRows(RowBlocks):
    """Rows of files in blocks of a fixed number of rows; created by `open_rows`.

    A thread reads the next block while the current block is in use. About four blocks are in memory
    at a time. Every iteration starts from the beginning.

    Attributes
    ----------
    sources : list of Source
        One source for each file.
    dtype : numpy.dtype
        Type of the features.
    block_rows : int
        Number of rows in every block except the last.
    n_skipped : int or None
        Number of bad rows skipped in the latest complete pass.
    encoder : TableColumns or None
        Encoder of the columns, if some of them are text.
    memory : float
        Number of bytes up to which all rows are read into memory.
    advance : callable or None
        Called with the number of rows of each block that is read into memory, and with the fraction
        of the files read so far, or None.
    """

    n_skipped: int | None = None
    encoder: TableColumns | None = None
    memory: float = _MAX_MEMORY_BYTES
    advance: Callable[[int, float | None], object] | None = None

    def __init__(
        self,
        options: Options,
        open_sources: _Open,
        *,
        encoder: TableColumns | None = None,
        plain: FileRows | None = None,
        frame: _Frame | None = None,
        complete_fit: bool = False,
    ) -> None:
        self._open_sources, self.sources = open_sources, [*open_sources(options)]
        self.options, self.encoder, self._plain, self._frame = options, encoder, plain, frame
        # Whether the model accepts missing values, but was fitted without missing values.
        self._complete_fit = complete_fit
        dtype = np.result_type(*(source.dtype for source in self.sources))
        if encoder is not None or (frame is not None and not frame.numeric):
            dtype = np.dtype(np.float64)
        self.dtype: DType = np.dtype(options.dtype) if options.dtype else dtype
        rows = _BLOCK_BYTES / (self.n_features * self.dtype.itemsize) // 512 * 512
        rows = _SPARSE_ROWS if self.sources[0].sparse else int(np.clip(rows, 16, 1 << 20))
        self.block_rows = options.block_rows or rows
        self._n_rows: int | None = None

    # ---- columns -----------------------------------------------------------------------------

    @property
    def feature_names(self) -> list[str]:
        """Names of the features; numbers, as strings, if the files have no names."""
        if self.encoder is not None:
            return [str(name) for name in self.encoder.feature_names_]
        return list(self.sources[0].feature_names)

    @property
    def column_names(self) -> tuple[str, ...] | None:
        """Names of the columns, including columns that a fit leaves out; None without names."""
        if not self.sources[0].named:
            return None
        return tuple(self.feature_names if self.encoder is None else self.encoder.names_)

    @property
    def layout(self) -> dict[str, Any] | None:
        """Properties of the files that a model keeps, to read other files in the same way.

        These are the target, by name or place, the places of columns without names, and the options
        that describe CSV files.
        """
        source = self.sources[0] if self._plain is None else self._plain.sources[0]
        if source.sparse:
            return {"zero_based": bool(source.facts["zero_based"])}
        layout: dict[str, Any] = {}
        if not source.named:
            layout = {"columns": [*source.choice.features], "n_columns": len(source.names)}
        if source.choice.target is not None:
            layout["target"] = source.target_name if source.named else source.choice.target
        if self.options.na_values or not self.options.keep_default_na:
            layout["na_values"] = [*self.options.na_values]
            layout["keep_default_na"] = self.options.keep_default_na
        if source.format == "csv":
            values = {name: getattr(self.options, name) for name in CSV_DEFAULTS}
            layout |= {name: v for name, v in values.items() if v != CSV_DEFAULTS[name]}
        return layout or None

    @property
    def n_features(self) -> int:
        """Number of features."""
        if self.encoder is not None:
            return len(self.encoder.feature_names_)
        return self.sources[0].n_features

    @property
    def n_rows(self) -> int:
        """Number of good rows; needs a pass if the files do not store this number."""
        if self._n_rows is None:
            known = [source.n_rows for source in self.sources]
            if None in known or self.options.skip_bad:
                self._n_rows = super().n_rows
            else:
                self._n_rows = sum(n for n in known if n is not None)
        return self._n_rows

    def prepared_for(self, estimator: Any, *, fitted: bool) -> FileRows:
        """Return these files with the options that an estimator needs.

        Empty cells are missing values if the estimator accepts missing values. A fitted estimator
        gets the columns of its fit, by their names or, in files without names, by their places. If
        the estimator accepts categories, its encoder converts columns of text to numbers; before a
        fit, a first pass counts the categories for a new encoder.

        Parameters
        ----------
        estimator : estimator
            Estimator that reads the rows.
        fitted : bool
            Whether the rows are for a fitted estimator; otherwise, for its fit.

        Returns
        -------
        FileRows

        Raises
        ------
        ValueError
            If columns of the fitted estimator are not in the files.
        """
        encodes = not fitted and getattr(estimator, "categorical_features", None) == "from_dtype"
        if self._plain is not None:
            return self if encodes else self._plain.prepared_for(estimator, fitted=fitted)
        allowed = _accepts_missing(estimator)
        missing = allowed and (not fitted or completes(estimator))
        changed: dict[str, Any] = {"missing": self.options.missing or missing}
        encoder = getattr(estimator, "columns_", None) if fitted else None
        if fitted:
            changed |= fitted_options(self.sources[0], self.options, estimator)
        rows = self._changed(changed, encoder, complete_fit=allowed and not missing)
        if fitted and encoder is None and rows.n_features != estimator.n_features_in_:
            names = getattr(estimator, "feature_names_in_", ())
            raise ValueError(wrong_width(rows.sources[0], estimator.n_features_in_, names))
        return rows._encoded_rows() if encodes else rows

    def _changed(
        self,
        changed: dict[str, Any],
        encoder: TableColumns | None = None,
        frame: Any = None,
        complete_fit: bool = False,
    ) -> FileRows:
        """These files with changed options, encoded or as data frames."""
        options, plain = replace(self.options, **changed), None if encoder is None else self
        unchanged = options == self.options and complete_fit == self._complete_fit
        if unchanged and encoder is None and frame is None:
            return self
        rows = FileRows(
            options,
            self._open_sources,
            encoder=encoder,
            plain=plain,
            frame=frame,
            complete_fit=complete_fit,
        )
        rows.memory, rows.advance = self.memory, self.advance
        return rows

    def _encoded_rows(self) -> FileRows:
        """Return these files with text encoded as categories, after a pass that counts them."""
        frames = self.frames()
        if frames is None or frames._frame is None or frames._frame.numeric:
            return self
        counts = frames.reduce(_column_counts, merge_counts)
        encoder = TableColumns().fit_counts(frames.feature_names, counts)
        columns = self.sources[0].identified(frames.sources[0].choice.features)
        return self._changed(encoder_options(columns, encoder), encoder)

    def _kinds_of_features(self) -> tuple[list[int], list[str]]:
        """Places and kinds of the features; warns of columns that mix numbers and text."""
        source = self.sources[0]
        source.check_features({*source.choice.features})
        places = [] if source.sparse else [*source.choice.features]
        declared = {*source.choice.categorical}
        mixed = [j for j in places if j in source.mixed and j not in declared]
        texts = {j for j in places if source.kinds[j] in ("text", "date")} | {*source.thousands}
        kind_of = {j: "category" if j in texts else "number" for j in places}
        kind_of |= dict.fromkeys(mixed, "category") | dict.fromkeys(declared, "declared")
        kinds = [kind_of[j] for j in places]
        if mixed:
            examples = ", ".join(f"{source.names[j]!r} ({source.mixed[j]!r})" for j in mixed[:4])
            warn_caller(
                f"{source.path}: columns that mix numbers and text are read as text: {examples}"
                f"{', ...' if len(mixed) > 4 else ''}; categorical (--categorical) confirms this, "
                "na_values (--na-values) declares cells missing",
                UserWarning,
            )
        return places, kinds

    def table(self) -> Block | None:
        """Return all rows, with missing values, as one block whose `X` is a pandas data frame.

        Columns that a fitted encoder leaves out are empty.

        Returns
        -------
        Block or None
            None if the rows take more than `memory` bytes, or are numbers without names of columns.
        """
        frames = self.frames()
        if frames is None:
            return None
        block = frames.gathered()
        self.n_skipped, self._n_rows = frames.n_skipped, frames._n_rows
        return block

    def frames(self, *, missing: bool = True) -> FileRows | None:
        """Return these files with blocks whose `X` are data frames; bad rows are not marked.

        Parameters
        ----------
        missing : bool, default=True
            Whether missing values are allowed.

        Returns
        -------
        FileRows or None
            None for sparse rows, and for numbers without names of columns.
        """
        source, encoder = self.sources[0], self.encoder
        if source.sparse:
            return None
        if encoder is None:
            places, kinds = self._kinds_of_features()
            names = all_names = list(source.feature_names)
        else:
            places, all_names = list(source.choice.features), list(encoder.names_)
            names = [all_names[j] for j in encoder.used]
            kinds = [encoder.kinds_[j] for j in encoder.used]
        frame = _Frame(names, kinds, all_names)
        if not source.named and frame.numeric:
            return None
        changed = column_options(source.identified(places), kinds)
        changed |= {"missing": missing, "mark_bad": False}
        return self._changed(changed, frame=frame, complete_fit=self._complete_fit)

    def check_features(self) -> None:
        """ValueError for a feature column without a unique name, or of text or dates."""
        plain = self.encoder is None and self._frame is None
        self.sources[0].check_features(() if plain else self.sources[0].choice.categorical)

    # ---- blocks ------------------------------------------------------------------------------

    def __iter__(self) -> Iterator[Block]:
        return (block for block, _ in self.blocks())

    def blocks(self, after: Position | None = None) -> Iterator[tuple[Block, Position]]:
        """Iterate over the blocks, each with the position after it.

        Parameters
        ----------
        after : Position, optional
            Position returned with a block of the same files and options; iteration continues with
            the next block. By default, it starts from the beginning.

        Yields
        ------
        block : Block
            Rows of the block.
        position : Position
            Position after the block.

        Raises
        ------
        BadRowError
            At a row with infinity, text instead of a number, too few or too many fields, no label,
            or a missing value without `missing`; not with `skip_bad` or `mark_bad`.
        ValueError
            If a feature column is text.
        OSError
            If a file cannot be read.
        """
        self.check_features()
        return _read_ahead(self._blocks(Position() if after is None else after))

    def _blocks(self, start: Position) -> Iterator[tuple[Block, Position]]:
        file, done, rows, skipped = start.file, start.row, start.rows, start.skipped
        parts: list[Block] = []
        filled = 0
        sizes = [source.path.stat().st_size for source in self.sources]
        fraction: float | None = None
        for file in range(start.file, len(self.sources)):
            source = self.sources[file]
            done = start.row if file == start.file else 0
            for chunk in source.chunks(done):
                if chunk.start + chunk.n <= done:
                    continue
                X, y, places, error = self._readable(source, chunk, done)
                if chunk.fraction is not None:
                    before = sum(sizes[:file]) + chunk.fraction * sizes[file]
                    fraction = before / max(sum(sizes), 1)
                first = 0
                while first < len(places):
                    last = min(first + self.block_rows - filled, len(places))
                    labels = None if y is None else y[first:last]
                    parts.append(Block(take_rows(X, slice(first, last)), labels, None, rows))
                    rows, filled = rows + last - first, filled + last - first
                    first = last
                    if filled == self.block_rows:
                        end = int(places[last - 1]) + 1
                        bad = end - max(done, chunk.start) - last
                        yield joined(parts), Position(file, end, rows, skipped + bad, fraction)
                        parts, filled = [], 0
                if error is not None:
                    raise error
                skipped += chunk.start + chunk.n - max(done, chunk.start) - len(places)
                done = chunk.start + chunk.n
        self._n_rows, self.n_skipped = rows, skipped
        if filled:
            yield joined(parts), Position(file, done, rows, skipped, fraction)

    def _readable(
        self, source: Source, chunk: Chunk, first: int
    ) -> tuple[Any, Any, npt.NDArray[np.intp], BadRowError | None]:
        """Features, labels and row numbers of the good samples from row `first` on, and an error.

        The samples end before the first bad sample, whose error is returned. If bad samples are
        skipped or marked, there is no error; if they are marked, all samples are returned, with the
        mask of bad samples as labels.
        """
        X, numbers = self._features(chunk)
        y, missing, wrong = chunk.y, self.options.missing, np.zeros(chunk.n, dtype=bool)
        if chunk.bad is not None:
            wrong |= chunk.bad
        places = np.arange(max(first - chunk.start, 0), chunk.n)
        if chunk.unlabelled is not None and not self.options.mark_bad:
            wrong |= chunk.unlabelled
        if not source.sparse and (finite := _finite_rows(numbers, missing=missing)) is not None:
            wrong |= ~finite
        if self.options.mark_bad:
            if wrong.any() and not source.sparse:  # bad sparse samples are empty
                X = np.where(wrong[:, None], X.dtype.type(0), X)
            return X[places], wrong[places], places + chunk.start, None
        error, good = None, places[~wrong[places]]
        if len(good) < len(places) and not self.options.skip_bad:
            row = int(places[np.argmax(wrong[places])])
            error, good = self._complaint(source, chunk, row, numbers[row]), places[places < row]
        if len(good) < chunk.n:
            X, y = take_rows(X, good), None if y is None else y[good]
        if self._frame is not None and self._frame.all_names != self._frame.names:
            X = X.reindex(columns=self._frame.all_names)
        return X, y, good + chunk.start, error

    def _features(self, chunk: Chunk) -> tuple[Any, Any]:
        """Features of a chunk, and numbers (n, d) to check for infinity and NaN; 0 for text."""
        if self.encoder is not None:
            X = self.encoder.encoded(chunk.X)
            return X, X
        if self._frame is not None and not self._frame.numeric:
            return self._frame.build(chunk.X), self._frame.numbers(chunk.X)
        X = self._matrix(chunk)
        return X if self._frame is None else self._frame.build(X), X

    def _matrix(self, chunk: Chunk) -> Any:
        with np.errstate(over="ignore", invalid="ignore"):  # for casts of signalling NaN
            X = np.column_stack(chunk.X) if isinstance(chunk.X, list) else chunk.X
            return X.astype(self.dtype, copy=False)

    def _complaint(self, source: Source, chunk: Chunk, row: int, x: Any) -> BadRowError:
        """Return the error of a bad sample."""
        column, value = None, None
        if not source.sparse:
            flags = np.isinf(x) if self.options.missing else ~np.isfinite(x)
            if flags.any() or (chunk.bad is not None and chunk.bad[row]):
                column = int(np.argmax(flags))
                value = x[column]
        if column is not None and self.encoder is not None:
            column = self.encoder.used.index(int(self.encoder.groups_[column]))
        if column is not None and value == np.inf and isinstance(chunk.X, list):
            cell = chunk.X[column][row]
            value = cell if isinstance(cell, str) else value  # text in a column of dates
        if column is None and chunk.y is not None:
            value = chunk.y[row] if chunk.given is None else chunk.given[row]
            value = value.as_py() if hasattr(value, "as_py") else value
        fault = source.complaint(chunk.start + row, column, value, self.dtype)
        path, unit, row, name, what = fault.args
        if self._complete_fit and what in (MISSING_NUMBER, MISSING_ENTRY):
            return BadRowError(path, unit, row, name, what + COMPLETE_FIT)
        return fault

    def in_memory(self, *, sparse: bool = False) -> Block | None:
        """Return all rows as one block, if they take at most `memory` bytes.

        Parameters
        ----------
        sparse : bool, default=False
            Whether to return sparse rows, too.

        Returns
        -------
        Block or None
        """
        return None if self.sources[0].sparse and not sparse else self.gathered()

    def gathered(self) -> Block | None:
        """Return all rows as one block, if they take at most `memory` bytes.

        Returns
        -------
        Block or None
        """
        known = [source.n_rows for source in self.sources if source.n_rows is not None]
        row_bytes, sparse = self.n_features * self.dtype.itemsize, self.sources[0].sparse
        if sum(known) * row_bytes > self.memory and not self.options.skip_bad and not sparse:
            return None
        parts, size = [], 0
        for block, position in self.blocks():
            size += block.X.data.nbytes if sparse else len(block) * row_bytes
            if size > self.memory:
                return None
            parts.append(block)
            if self.advance is not None:
                self.advance(len(block), position.fraction)
        self.check_not_empty(len(parts))
        return joined(parts)

    def check_not_empty(self, n: int) -> None:
        """Raise an error if there are no good rows.

        Parameters
        ----------
        n : int
            Number of good rows.

        Raises
        ------
        ValueError
            If `n` is 0; the message has the number of bad rows and the first of them.
        """
        if n:
            return
        path = self.sources[0].path
        if not self.n_skipped:
            raise ValueError(f"{path}: expected at least one row, got none")
        were = "was" if self.n_skipped == 1 else "were"
        what, reason = f"{counted(self.n_skipped, 'bad row')} {were} left out", ""
        try:
            list(self._changed({"skip_bad": False}, self.encoder, self._frame, self._complete_fit))
        except BadRowError as first:
            reason = f", the first: {str(first).removeprefix(f'{path}: ')}"
        raise ValueError(f"{path}: expected at least one row, got none; {what}{reason}")

    def identity(self) -> dict[str, Any]:
        """Return the properties that determine the blocks.

        Returns
        -------
        dict of str to object
            Paths, sizes and times of the files, and options.
        """
        paths = [path.resolve() for source in self.sources for path in source.files()]
        identity: dict[str, Any] = {"files": [*map(str, paths)]}
        for path in paths:
            status = path.stat()
            identity |= {f"bytes of {path}": status.st_size, f"time of {path}": status.st_mtime_ns}
        for name, value in asdict(self.options).items():
            identity[name] = list(value) if isinstance(value, tuple) else value
        return identity | {"dtype": self.dtype.name, "block_rows": self.block_rows}


@dataclass(frozen=True)
class _Frame:
    """Layout of data frames of samples: names and kinds of their columns."""

    names: list[str]
    kinds: list[str]  # see `TableColumns.kinds_`, or "declared" for the option `categorical`
    all_names: list[str]  # all columns of a frame, which are empty unless they are in `names`

    @property
    def numeric(self) -> bool:
        """Whether all columns are numbers."""
        return {*self.kinds} <= {"number"}

    def numbers(self, columns: Any) -> npt.NDArray[np.float64]:
        """Numbers and days of dates as a matrix, infinite for wrong dates, 0 for text."""
        numbers = []
        for column, kind in zip(columns, self.kinds, strict=True):
            dates = days_of(column) if kind == "date" else np.zeros(len(column))
            numbers.append(column if kind == "number" else dates)
        return np.column_stack(numbers)

    def build(self, columns: Any) -> Any:
        """Make a data frame of a matrix, or of columns."""
        import pandas

        if not self.numeric:
            columns = dict(zip(self.names, columns, strict=True))
        frame = pandas.DataFrame(columns, columns=self.names, copy=False)
        for name, kind in zip(self.names, self.kinds, strict=True):
            if kind == "declared":
                frame[name] = frame[name].astype("category")
        return frame


def _column_counts(block: Block) -> list[tuple[str, Counter[str | None]]]:
    return column_counts(block.X)


def _read_ahead(items: Iterator[_Item]) -> Iterator[_Item]:
    """Yield the items; a thread makes the next item while the current item is in use.

    Closing the iterator waits for the thread, and closes `items`.
    """
    with closing(items), ThreadPoolExecutor(1, "eigenfeat-read-ahead") as pool:  # type: ignore[type-var]
        ahead = pool.submit(next, items, _END)
        while (item := ahead.result()) is not _END:
            ahead = pool.submit(next, items, _END)
            yield item  # type: ignore[misc]
            del item  # free it before another block is read


def _accepts_missing(estimator: Any) -> bool:
    """Whether an estimator accepts samples with NaN in its fit."""
    try:
        return bool(get_tags(estimator).input_tags.allow_nan)
    except (AttributeError, TypeError, ValueError):
        return False


def _finite_rows(X: Floats, *, missing: bool) -> Mask | None:
    """Mask of the rows whose entries are finite or, with `missing`, NaN; None if all are."""
    # Entries with a finite sum are finite; the sum takes no further memory.
    with np.errstate(over="ignore", invalid="ignore"):
        total = X.sum()
    if np.isfinite(total):
        return None
    good: Mask = np.all(~np.isinf(X) if missing else np.isfinite(X), axis=1)
    return None if good.all() else good
