"""Rows of one file or many as `RowBlocks`, in blocks that depend on files and options alone."""

from __future__ import annotations

import glob
import os
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from eigenfeat._validation import check_dtype, check_whole, show
from eigenfeat.blocks import Block, RowBlocks, joined

from .flow import Buffers, read_ahead
from .formats import FORMATS, format_of, open_source
from .source import LABEL_KINDS, Chunk, DenseChunk, Options, Source, SparseChunk, typed_labels

__all__ = ["FileRows", "Position", "open_rows"]

_BLOCK_BYTES = 32e6


@dataclass(frozen=True)
class Position:
    """The place in the files between two blocks, from which reading goes on.

    Attributes
    ----------
    file : int
        Number of the file.
    offset : int
        Its restart point: a byte of text files, a row group or record batch, or 0.
    skip : int
        Rows from there on that have been read.
    rows, skipped : int
        Rows handed out, and bad rows left out, before this place in all files.
    """

    file: int = 0
    offset: int = 0
    skip: int = 0
    rows: int = 0
    skipped: int = 0


class FileRows(RowBlocks):
    """Rows of files in blocks of a fixed number of rows; made by `open_rows`.

    A thread reads the next block while one is in use; no more than about four blocks, and what the
    format needs to decode one, are in memory. Iterating starts anew every time.

    Attributes
    ----------
    sources : list of Source
        One for each file.
    dtype : numpy.dtype
        Type of the features.
    block_rows : int
        Rows of every block but the last.
    """

    def __init__(
        self, sources: list[Source], options: Options, dtype: np.dtype[Any], block_rows: int
    ) -> None:
        self.sources, self.options, self.dtype = sources, options, dtype
        self.block_rows = block_rows
        self._n_rows: int | None = None

    @property
    def feature_names(self) -> list[str]:
        """Names of the feature columns; numbers, as strings, where the files have no names."""
        return self.sources[0].feature_names

    @property
    def n_features(self) -> int:
        """Number of feature columns."""
        return self.sources[0].n_features

    @property
    def n_rows(self) -> int:
        """Number of good rows; by a pass where the files do not say it."""
        if self._n_rows is None:
            known = [source.n_rows for source in self.sources]
            if None in known or self.options.skip_bad:
                self._n_rows = self.reduce(len, lambda a, b: a + b)
            else:
                self._n_rows = sum(n for n in known if n is not None)
        return self._n_rows

    def __iter__(self) -> Iterator[Block]:
        return (block for block, _ in self.blocks())

    def blocks(self, after: Position | None = None) -> Iterator[tuple[Block, Position]]:
        """Go through the blocks, each with the position after it.

        Parameters
        ----------
        after : Position, optional
            A position that came with a block of the same files and options: goes on with the next
            one. From the start by default.

        Raises
        ------
        BadRowError
            At a row with a missing value, NaN, infinity, text in place of a number or too few or
            many fields, unless `skip_bad`.
        OSError
            If a file cannot be read.
        """
        start = Position() if after is None else after
        fill = self._sparse_blocks if self.sources[0].sparse else self._dense_blocks
        return read_ahead(fill(start))

    def fraction(self, position: Position) -> float | None:
        """How much of all bytes lies before a position, from 0 to 1, if that is known."""
        sizes = [source.path.stat().st_size for source in self.sources]
        part = self.sources[position.file].fraction(position.offset, position.skip)
        if part is None:
            return None
        return (sum(sizes[: position.file]) + part * sizes[position.file]) / max(sum(sizes), 1)

    def identity(self) -> dict[str, Any]:
        """What decides about the blocks: paths, sizes and times of the files, and the options."""
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
                left = max(skip - chunk.first, 0) if left is None else left
                done = min(left, len(chunk))
                place = Position(number, chunk.offset, chunk.first)
                yield source, chunk, replace(place, skipped=0 if left else chunk.dropped), done
                left -= done

    def _dense_blocks(self, start: Position) -> Iterator[tuple[Block, Position]]:
        size, pool = self.block_rows, Buffers(self.block_rows, self.n_features, self.dtype)
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
                good, y = self._checked(source, chunk, part, target)
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
        if filled:
            yield _block(out[:filled], labels, rows), last

    def _checked(
        self, source: Source, chunk: Chunk, part: slice, X: npt.NDArray[Any]
    ) -> tuple[npt.NDArray[np.intp] | None, Any]:
        """Numbers of the rows that are good (None: all), and their labels."""
        good = _finite_rows(X)
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
        if kind is None:
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
        if filled:
            yield joined(parts), last


def _block(X: npt.NDArray[Any], labels: list[Any], start: int) -> Block:
    return Block(X, None if labels[0] is None else np.concatenate(labels), None, start)


def _finite_rows(X: npt.NDArray[Any]) -> npt.NDArray[np.bool_] | None:
    """Which rows are finite; None if all are."""
    # A sum that is finite has no other terms, and takes no array of flags.
    with np.errstate(over="ignore", invalid="ignore"):
        total = X.sum()
    if np.isfinite(total):
        return None
    good: npt.NDArray[np.bool_] = np.isfinite(X).all(axis=1)
    return None if good.all() else good


# ---- opening -------------------------------------------------------------------------------------


def open_rows(
    path: str | os.PathLike[str] | Sequence[str | os.PathLike[str]],
    target: str | int | None = None,
    *,
    columns: Sequence[str | int] | None = None,
    drop: Sequence[str | int] = (),
    dtype: npt.DTypeLike | None = None,
    block_rows: int | None = None,
    skip_bad: bool = False,
    labels: str = "auto",
    format: str | None = None,
    delimiter: str | None = None,
    header: bool | None = None,
    x_name: str = "X",
    y_name: str = "y",
    n_features: int | None = None,
    zero_based: bool | None = None,
) -> FileRows:
    r"""Open a file of rows, or several with the same columns, as blocks of rows.

    Parameters
    ----------
    path : path, or list of paths
        Files, folders (all files in them of a kind that is known, by name) or patterns such as
        ``"part-*.csv"``. CSV (.csv, .tsv, also .gz), Parquet (.parquet, .pq), Arrow IPC and
        Feather (.arrow, .feather, .ipc), NumPy (.npy, .npz), svmlight (.svm, .svmlight, .libsvm,
        also .gz; sparse rows).
    target : str or int, optional
        The column of labels by name or number, or, of NumPy files, another file of labels (.npy).
        svmlight files have labels, as have .npz files with an array `y_name`: no need to say so.
        Without a target blocks have no labels.
    columns, drop : sequences of str or int
        The feature columns, in this order; or those to leave out. By default all but the target.
    dtype : {None, float32, float64}
        Type of the features; by default float32 if all are float32 in the files, else float64.
    block_rows : int, optional
        Rows of a block; by default so many that it has some 32 MB.
    skip_bad : bool, default=False
        Whether rows with missing values, NaN, infinity, text in place of numbers or a wrong number
        of fields are left out; they are an error otherwise.
    labels : {"auto", "int", "float", "bool", "str"}
        Kind of the labels. "auto" goes by the first ones, and takes whole numbers in a column of a
        float matrix for integers.
    format : {"csv", "parquet", "arrow", "npy", "npz", "svmlight"}, optional
        By default what the file's name says.
    delimiter, header
        Of CSV files: by default "," (tab in .tsv), and a header if the first line has no numbers.
        Fields may be quoted, but hold no line breaks.
    x_name, y_name : str
        Names of the arrays in .npz files.
    n_features, zero_based
        Of svmlight files: columns, and whether they are counted from 0. By default found by a
        first pass over the files.

    Returns
    -------
    FileRows

    Raises
    ------
    OSError
        If a file cannot be read.
    ValueError
        If a column is not there, features are not numbers, or the files' columns differ.
    ImportError
        If pyarrow is needed, and missing.

    Examples
    --------
    >>> import pathlib, tempfile
    >>> from eigenfeat import ClassMoments, open_rows
    >>> file = pathlib.Path(tempfile.mkdtemp()) / "rows.csv"
    >>> _ = file.write_text("a,b,kind\n1,2,x\n3,4,x\n5,6,y\n")
    >>> moments = ClassMoments()
    >>> for block in open_rows(file, target="kind"):
    ...     moments.update(block.X, block.y)
    ClassMoments(2 classes, 2 features, weight 3)
    """
    if labels not in LABEL_KINDS:
        raise ValueError(f"labels: expected one of {', '.join(LABEL_KINDS)}, got {show(labels)}")
    if delimiter is not None and len(delimiter) != 1:
        raise ValueError(f"delimiter: expected one character, got {show(delimiter)}")
    wanted = check_dtype(dtype)
    options = Options(
        os.fspath(target) if isinstance(target, os.PathLike) else target,
        None if columns is None else tuple(columns),
        tuple(drop),
        *(skip_bad, labels, delimiter, header, x_name, y_name, n_features, zero_based),
        None if wanted is None else wanted.name,
    )
    sources = _sources(_paths(path, format), format, options)
    found = wanted or np.result_type(*(source.dtype for source in sources))
    if block_rows is None:
        block_rows = _default_rows(sources[0], found)
    else:
        block_rows = check_whole(block_rows, "block_rows", at_least=1)
    return FileRows(sources, options, found, block_rows)


def _sources(paths: list[Path], format: str | None, options: Options) -> list[Source]:
    first = open_source(paths[0], format, options, len(paths), None)
    sources = [first]
    sources += [open_source(path, format, options, len(paths), first) for path in paths[1:]]
    for source in sources[1:]:
        if source.sparse and first.sparse:
            first.widen(source.n_features)
    for source in sources[1:]:
        if source.sparse and first.sparse:
            source.widen(first.n_features)
        if source.feature_names != first.feature_names or source.sparse != first.sparse:
            raise ValueError(
                f"{source.path}: expected the feature columns of {first.path} "
                f"({show(first.feature_names)}), got {show(source.feature_names)}"
            )
    return sources


def _default_rows(source: Source, dtype: np.dtype[Any]) -> int:
    if source.sparse:
        return 16384
    rows = _BLOCK_BYTES / (source.n_features * dtype.itemsize)
    return int(np.clip(rows // 512 * 512, 16, 1 << 20))


def _paths(path: Any, format: str | None) -> list[Path]:
    given = [path] if isinstance(path, (str, os.PathLike)) else list(path)
    found = [file for name in given for file in _files(Path(name), format)]
    if not found:
        raise ValueError("path: expected at least one file, got none")
    return found


def _files(path: Path, format: str | None) -> list[Path]:
    if path.is_dir():
        inside = sorted(p for p in path.iterdir() if p.is_file() and p.name[0] not in "._")
        found = inside if format else [p for p in inside if format_of(p) is not None]
        if not found:
            raise ValueError(f"{path}: expected a folder with files of {', '.join(FORMATS)}")
        return found
    if not path.exists() and glob.has_magic(str(path)):
        found = sorted(Path(name) for name in glob.glob(str(path)))
        if not found:
            raise FileNotFoundError(2, "No file matches", str(path))
        return found
    return [path]
