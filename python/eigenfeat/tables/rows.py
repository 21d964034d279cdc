"""Rows of one file or many as `RowBlocks`, in blocks that depend on files and options alone."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import asdict, dataclass, replace
from typing import Any

import numpy as np
import numpy.typing as npt

from eigenfeat._base.types import DType, Floats
from eigenfeat.rows.blocks import Block, RowBlocks, joined
from eigenfeat.tables.flow import Buffers, read_ahead
from eigenfeat.tables.source import Chunk, DenseChunk, Options, Source, SparseChunk, typed_labels

__all__ = ["FileRows", "Position", "finite_rows"]


@dataclass(frozen=True)
class Position:
    """Position in the files between two blocks, from which reading can continue.

    Attributes
    ----------
    file : int
        Index of the file.
    offset : int
        Restart point in the file: a byte of text files, a row group or record batch, or 0.
    skip : int
        Number of rows read since the restart point.
    rows, skipped : int
        Numbers of rows returned and of bad rows skipped before this position, in all files.
    """

    file: int = 0
    offset: int = 0
    skip: int = 0
    rows: int = 0
    skipped: int = 0


class FileRows(RowBlocks):
    """Rows of files in blocks of a fixed number of rows; created by `open_rows`.

    A thread reads the next block while one is in use. Memory is that of at most about four blocks,
    plus that for decoding one. Every iteration starts from the beginning.

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
    """

    n_skipped: int | None = None

    def __init__(
        self, sources: list[Source], options: Options, dtype: DType, block_rows: int
    ) -> None:
        self.sources, self.options, self.dtype = sources, options, dtype
        self.block_rows = block_rows
        self._n_rows: int | None = None
        self._ends: npt.NDArray[np.int64] | None = None  # of the files, in bytes from the first on

    @property
    def feature_names(self) -> list[str]:
        """Names of the feature columns; numbers, as strings, if the files have no names."""
        return list(self.sources[0].feature_names)

    @property
    def n_features(self) -> int:
        """Number of feature columns."""
        return self.sources[0].n_features

    @property
    def n_rows(self) -> int:
        """Number of good rows; needs a pass if the files do not store it."""
        if self._n_rows is None:
            known = [source.n_rows for source in self.sources]
            if None in known or self.options.skip_bad:
                self._n_rows = self.reduce(len, lambda a, b: a + b)
            else:
                self._n_rows = sum(n for n in known if n is not None)
        return self._n_rows

    def __iter__(self) -> Iterator[Block]:
        return (block for block, _ in self.blocks())

    def blocks(
        self, after: Position | None = None, *, raw: bool = False
    ) -> Iterator[tuple[Block, Position]]:
        """Iterate over the blocks, each with the position after it.

        Parameters
        ----------
        after : Position, optional
            Position returned with a block of the same files and options; iteration continues with
            the next block. By default, it starts from the beginning.
        raw : bool, default=False
            Whether dense rows may be returned as read: in Fortran order if files store columns, and
            with NaN or infinity. `ClassMoments` accepts such rows: it checks them and converts
            columns to rows with all threads.

        Raises
        ------
        BadRowError
            At a row with a missing value, NaN, infinity, text instead of a number, or too few or
            too many fields, unless `skip_bad` or `mark_bad` is set.
        OSError
            If a file cannot be read.
        """
        start = Position() if after is None else after
        if self.sources[0].sparse:
            return read_ahead(self._sparse_blocks(start))
        return read_ahead(self._dense_blocks(start, raw))

    def fraction(self, position: Position) -> float | None:
        """Fraction of all bytes before a position, from 0 to 1, if known."""
        if self._ends is None:
            self._ends = np.cumsum([source.path.stat().st_size for source in self.sources])
        part = self.sources[position.file].fraction(position.offset, position.skip)
        if part is None:
            return None
        start, end = (
            self._ends[position.file - 1] if position.file else 0,
            self._ends[position.file],
        )
        return float(start + part * (end - start)) / max(int(self._ends[-1]), 1)

    def identity(self) -> dict[str, object]:
        """Everything the blocks depend on: paths, sizes and times of the files, and the options."""
        files = []
        for path in (path for source in self.sources for path in source.files()):
            status = path.stat()
            files.append(
                {"path": str(path.resolve()), "bytes": status.st_size, "time": status.st_mtime_ns}
            )
        options = {
            name: list(value) if isinstance(value, tuple) else value
            for name, value in asdict(self.options).items()
        }
        options |= {"dtype": self.dtype.name, "block_rows": self.block_rows}
        return {"files": files, "options": options}

    # ---- filling blocks ----------------------------------------------------------------------

    def _chunks(self, start: Position) -> Iterator[tuple[Source, Chunk, Position, int]]:
        """All chunks from a position on: source, chunk, position before it, rows to leave out."""
        for number in range(start.file, len(self.sources)):
            source = self.sources[number]
            offset, skip = (start.offset, start.skip) if number == start.file else (0, 0)
            left: int | None = None  # rows that were read before, the next chunk's among them
            for chunk in source.chunks(offset, skip):
                if left is None:  # a source may begin after what was read whole
                    left = max(skip - chunk.first, 0) if chunk.offset == offset else 0
                done = min(left, len(chunk))
                place = Position(number, chunk.offset, chunk.first)
                yield source, chunk, replace(place, skipped=0 if left else chunk.dropped), done
                left -= done

    def _dense_blocks(self, start: Position, raw: bool) -> Iterator[tuple[Block, Position]]:
        size = self.block_rows
        by_columns = raw and self.sources[0].columnar
        pool = Buffers(size, self.n_features, self.dtype, by_columns)
        checked = self.options.skip_bad or not (raw or self.options.mark_bad)
        out, filled, labels = pool.take(), 0, []
        rows, skipped = start.rows, start.skipped
        last = start
        for source, chunk, place, done in self._chunks(start):
            assert isinstance(chunk, DenseChunk)
            skipped += place.skipped
            while done < len(chunk):
                part = slice(done, min(len(chunk), done + size - filled))
                target = out[filled : filled + part.stop - part.start]
                chunk.write(part, target)
                finite = finite_rows(target) if checked else None
                good, y = self._checked(source, chunk, part, target, finite)
                if good is not None:
                    skipped += len(target) - len(good)
                    target[: len(good)] = target[good]
                filled += len(target) if good is None else len(good)
                labels.append(y)
                done = part.stop
                last = Position(place.file, place.offset, place.skip + done, rows + filled, skipped)
                if filled == size:
                    yield _block(out, labels, rows), last
                    del target
                    out, rows, filled, labels = pool.take(), rows + filled, 0, []
        self._n_rows, self.n_skipped = rows + filled, skipped
        if filled:
            yield _block(out[:filled], labels, rows), last

    def _checked(
        self,
        source: Source,
        chunk: Chunk,
        part: slice,
        X: npt.NDArray[Any],
        good: npt.NDArray[np.bool_] | None,
    ) -> tuple[npt.NDArray[np.intp] | None, Any]:
        """Numbers of the rows that are good (None: all), and their labels.

        `good` tells which are finite, None: all.
        """
        if self.options.mark_bad:
            return None, None
        y, fit = self._labels(source, chunk, part)
        if good is None and fit is None:
            return None, y
        if not self.options.skip_bad:
            self._complain(source, chunk, part.start, good, fit, X)
        both = np.ones(len(X), dtype=bool)
        for flags in (good, fit):
            if flags is not None:
                both &= flags
        kept = np.flatnonzero(both)
        return kept, None if y is None else y[kept]

    def _labels(self, source: Source, chunk: Chunk, part: slice) -> tuple[Any, Any]:
        kind = self.sources[0].label_kind
        if kind in (None, "none") or self.options.mark_bad:
            return None, None
        values, fit = chunk.labels(part)
        values, typed = typed_labels(values, kind)
        if fit is None or typed is None:
            return values, typed if fit is None else fit
        return values, fit & typed

    def _complain(
        self, source: Source, chunk: Chunk, start: int, good: Any, fit: Any, X: Any
    ) -> None:
        bad_row = len(X) if good is None else int(np.argmin(good))
        bad_label = len(X) if fit is None else int(np.argmin(fit))
        if bad_row <= bad_label:
            column = int(np.argmin(np.isfinite(X[bad_row])))
            raise source.complaint(chunk, start + bad_row, column, self.dtype)
        raise source.complaint(chunk, start + bad_label, None, self.dtype)

    def _sparse_blocks(self, start: Position) -> Iterator[tuple[Block, Position]]:
        size, parts, filled = self.block_rows, [], 0
        rows, skipped = start.rows, start.skipped
        last = start
        for source, chunk, place, done in self._chunks(start):
            assert isinstance(chunk, SparseChunk)
            skipped += place.skipped
            while done < len(chunk):
                part = slice(done, min(len(chunk), done + size - filled))
                X = chunk.matrix(part).astype(self.dtype, copy=False)
                y, fit = self._labels(source, chunk, part)
                if fit is not None:
                    if not self.options.skip_bad:
                        row = part.start + int(np.argmin(fit))
                        raise source.complaint(chunk, row, None, self.dtype)
                    kept = np.flatnonzero(fit)
                    skipped += X.shape[0] - len(kept)
                    X, y = X[kept], y[kept]
                parts.append(Block(X, y, None, rows))
                filled += X.shape[0]
                done = part.stop
                last = Position(place.file, place.offset, place.skip + done, rows + filled, skipped)
                if filled == size:
                    yield joined(parts), last
                    parts, rows, filled = [], rows + filled, 0
        self._n_rows, self.n_skipped = rows + filled, skipped
        if filled:
            yield joined(parts), last


def _block(X: npt.NDArray[Any], labels: list[Any], start: int) -> Block:
    return Block(X, None if labels[0] is None else np.concatenate(labels), None, start)


def finite_rows(X: Floats) -> npt.NDArray[np.bool_] | None:
    """Mask of the finite rows; None if all are."""
    # A sum that is finite has no other terms, and takes no array of flags.
    with np.errstate(over="ignore", invalid="ignore"):
        total = X.sum()
    if np.isfinite(total):
        return None
    good: npt.NDArray[np.bool_] = np.asarray(np.isfinite(X).all(axis=1))
    return None if good.all() else good
