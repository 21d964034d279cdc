"""Rows of one file or many as `RowBlocks`, in blocks that depend on files and options alone."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict, dataclass, replace
from typing import Any

import numpy as np
import numpy.typing as npt

from eigenfeat._base.types import DType, Floats
from eigenfeat._base.validation import show
from eigenfeat.rows.blocks import Block, RowBlocks, joined
from eigenfeat.rows.columns import TableColumns, count_categories
from eigenfeat.tables.columns import Chunk, Mask, Options, Source
from eigenfeat.tables.flow import Buffers, read_ahead

__all__ = ["FileRows", "GatheredRows", "Position", "finite_rows"]

_BLOCK_BYTES = 32e6
_MEMORY_BYTES = 64e6  # of rows that estimators of blocks read into memory at once
_SPARSE_ROWS = 16384
_Open = Callable[[Options], Sequence[Source]]


@dataclass(frozen=True)
class Position:
    """Position in the files between two blocks, from which reading can continue.

    Attributes
    ----------
    file : int
        Index of the file.
    row : int
        Number of rows of the file, bad ones included, before this position.
    rows, skipped : int
        Numbers of rows returned and of bad rows skipped before this position, in all files.
    """

    file: int = 0
    row: int = 0
    rows: int = 0
    skipped: int = 0


@dataclass(frozen=True, eq=False)
class _Encoded:
    """How the columns of a table become numbers, and the rows before."""

    encoder: TableColumns
    plain: FileRows


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
    memory : float
        Bytes of all rows up to which a classifier reads them into memory, as it would an array.
    """

    n_skipped: int | None = None
    memory: float = _MEMORY_BYTES

    def __init__(
        self, options: Options, open_sources: _Open, encoded: _Encoded | None = None
    ) -> None:
        self._open_sources, self._encoded = open_sources, encoded
        self.options, self.sources = options, [*open_sources(options)]
        dtype = np.result_type(*(source.dtype for source in self.sources))
        if encoded is not None:
            dtype = np.dtype(np.float64)
        self.dtype: DType = np.dtype(options.dtype) if options.dtype else dtype
        self.block_rows = options.block_rows or self._default_rows()
        self._n_rows: int | None = None
        self._ends: npt.NDArray[np.int64] | None = None  # of the files, in bytes from the first on

    def _default_rows(self) -> int:
        if self.sources[0].sparse:
            return _SPARSE_ROWS
        rows = _BLOCK_BYTES / (self.n_features * self.dtype.itemsize)
        return int(np.clip(rows // 512 * 512, 16, 1 << 20))

    # ---- columns -----------------------------------------------------------------------------

    @property
    def feature_names(self) -> list[str]:
        """Names of the features; numbers, as strings, if the files have no names."""
        if self._encoded is not None:
            return [str(name) for name in self._encoded.encoder.feature_names_]
        return list(self.sources[0].feature_names)

    @property
    def encoder(self) -> TableColumns | None:
        """What makes features of the columns, if some of these are text."""
        return None if self._encoded is None else self._encoded.encoder

    @property
    def column_names(self) -> tuple[str, ...] | None:
        """Names of the columns in the files that are read, or left out by a fit; None without."""
        if not self.sources[0].named:
            return None
        return tuple(self.feature_names if self.encoder is None else self.encoder.names_)

    @property
    def layout(self) -> dict[str, Any] | None:
        """What a model has to remember of files without names, to find its columns in others."""
        if self._encoded is not None:
            return self._encoded.plain.layout
        source = self.sources[0]
        if source.named:
            return None
        if source.sparse:
            return {"zero_based": bool(source.facts()["zero_based"])}
        return {"columns": list(source.choice.features), "n_columns": len(source.names)}

    @property
    def n_features(self) -> int:
        """Number of features."""
        if self._encoded is not None:
            return len(self._encoded.encoder.feature_names_)
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

    def prepared_for(self, estimator: Any, *, fitted: bool) -> FileRows:
        """The same rows as an estimator reads them.

        Empty cells are missing values if it takes these. The columns are those that it was fitted
        to, found by their names or, in files without names, by their places. Columns of text become
        numbers if it takes them: as in its fit, or after a first pass, which counts categories.

        Raises
        ------
        ValueError
            If columns of the fitted estimator are not in the files.
        """
        encodes = not fitted and getattr(estimator, "categorical_features", None) == "from_dtype"
        if self._encoded is not None:
            if encodes:
                return self
            return self._encoded.plain.prepared_for(estimator, fitted=fitted)
        changed: dict[str, Any] = {
            "missing": self.options.missing or takes_missing(estimator, fitted)
        }
        encoder = getattr(estimator, "columns_", None) if fitted else None
        if fitted:
            changed |= self._columns_of(estimator, encoder)
        if encoder is not None:
            rows = FileRows(
                replace(self.options, **changed), self._open_sources, _Encoded(encoder, self)
            )
        elif all(getattr(self.options, name) == value for name, value in changed.items()):
            rows = self
        else:
            rows = FileRows(replace(self.options, **changed), self._open_sources)
        rows.memory = self.memory
        return rows._encoded_rows() if encodes else rows

    def _encoded_rows(self) -> FileRows:
        """The same rows with categories in place of text, if there is any; needs a pass."""
        source = self.sources[0]
        if source.sparse:
            return self
        places = [*source.choice.features]
        word = {"text": "category", "date": "date"}
        kinds = [word.get(source.kinds[j], "number") for j in places]
        if {*kinds} == {"number"}:
            return self
        asked = [source.names[j] if source.named else j for j in places]
        coded = [one for one, kind in zip(asked, kinds, strict=True) if kind == "category"]
        counts: dict[Any, Counter[str | None]] = {}
        if coded:
            counted = self._category_counts(coded)
            names = [
                source.names[j] for j, kind in zip(places, kinds, strict=True) if kind == "category"
            ]
            counts = dict(zip(names, counted, strict=True))
        encoder = TableColumns().fit_counts([*source.feature_names], kinds, counts)
        changed: dict[str, Any] = {"columns": tuple(asked[at] for at in encoder.used), "drop": ()}
        left = {encoder.names_[at] for at, kind in enumerate(encoder.kinds_) if kind == "left out"}
        changed["categories"] = tuple(
            one for one, name in zip(coded, counts, strict=True) if name not in left
        )
        rows = FileRows(
            replace(self.options, **changed), self._open_sources, _Encoded(encoder, self)
        )
        rows.memory = self.memory
        return rows

    def _category_counts(self, columns: list[str | int]) -> list[Counter[str | None]]:
        """Number of rows of each category of some columns, which alone are read."""
        changed: dict[str, Any] = {"columns": tuple(columns), "drop": (), "target": None}
        if self.sources[0].format == "csv":
            changed["header"] = self.sources[0].named
        counts: list[Counter[str | None]] = [Counter() for _ in columns]
        for source in self._open_sources(replace(self.options, **changed)):
            for chunk in source.chunks(0):
                for count, values in zip(counts, chunk.columns or (), strict=True):
                    count_categories(count, values if chunk.bad is None else values[~chunk.bad])
        return counts

    def _columns_of(self, estimator: Any, encoder: TableColumns | None) -> dict[str, Any]:
        """Options that choose the columns that an estimator was fitted to."""
        source, options = self.sources[0], self.options
        classes = getattr(estimator, "classes_", None)
        changed: dict[str, Any] = {}
        if options.labels == "auto" and getattr(classes, "dtype", np.dtype(float)).kind in "OU":
            changed["labels"] = "str"  # "1" is not 1 to a model that knows "1" and "a"
        layout = getattr(estimator, "file_layout_", None) or {}
        if encoder is not None and (source.sparse or source.format == "npy"):
            raise ValueError(
                f"{source.path}: expected a table with the columns of the fit, some of which are "
                f"categories, got {'sparse samples' if source.sparse else 'an array'}"
            )
        if source.sparse:
            if "zero_based" in layout and options.zero_based is None:
                changed["zero_based"] = layout["zero_based"]
            if options.n_features is None:
                changed["n_features"] = int(estimator.n_features_in_)
            return changed
        known = getattr(estimator, "feature_names_in_", None)
        names = None if known is None else [str(name) for name in known]
        places = layout.get("columns")
        same = layout.get("n_columns") == len(source.names)
        chosen: dict[str, Any] = {}
        if options.columns is not None and (names is None or {*self.feature_names} != {*names}):
            chosen = {"columns": options.columns} if encoder is not None else {}
        elif names is not None:
            used = names if encoder is None else [names[at] for at in encoder.used]
            chosen = self._named(used)
        elif (
            places is not None and same and not options.drop and source.choice.target not in places
        ):
            chosen = {"columns": tuple(places)}
        elif source.n_features != estimator.n_features_in_:
            raise ValueError(_other_width(source, estimator.n_features_in_))
        if encoder is None:
            return changed | chosen
        return changed | self._of_encoder(encoder, chosen)

    def _of_encoder(self, encoder: TableColumns, chosen: dict[str, Any]) -> dict[str, Any]:
        """Likewise, of the columns that the estimator uses, and which of these are categories."""
        source = self.sources[0]
        columns = chosen.get("columns", tuple(source.choice.features))
        if len(columns) == len(encoder.names_):  # the columns left out are among them
            columns = tuple(columns[at] for at in encoder.used)
        if len(columns) != len(encoder.used):
            raise ValueError(_other_width(source, len(encoder.names_)))
        kinds = [encoder.kinds_[at] for at in encoder.used]
        coded = [one for one, kind in zip(columns, kinds, strict=True) if kind == "category"]
        return chosen | {"columns": columns, "drop": (), "categories": tuple(coded)}

    def _named(self, known: list[str]) -> dict[str, Any]:
        """Options that choose columns by their names."""
        source = self.sources[0]
        if {*known} <= {*getattr(source, "first_fields", ())} and self.options.header is None:
            return {"columns": tuple(known), "header": True}
        missing = [name for name in known if name not in {*source.names}]
        if not missing:
            return {"columns": tuple(known)}
        if not source.named:
            if source.n_features == len(known):
                return {}
            raise ValueError(_other_width(source, len(known)))
        others = [name for name in source.feature_names if name not in {*known}]
        more = f"; it has {show(others, 100)[1:-1]}" if others else ""
        raise ValueError(
            f"{source.path}: expected the columns that the model was fitted to, of which "
            f"{len(missing)} are not there: {show(missing, 200)[1:-1]}{more}; columns (--columns) "
            "names others in their place"
        )

    def check_numbers(self) -> None:
        """ValueError that names a feature column of text or dates."""
        for source in self.sources[:1]:
            coded = {*self.options.categories} if self.encoder is not None else set()
            for j in source.choice.features if not source.sparse else ():
                if source.names[j] in coded or j in coded:
                    continue
                if source.kinds[j] in ("text", "date"):
                    name, what = source.names[j], {"text": "text", "date": "dates"}[source.kinds[j]]
                    raise ValueError(
                        f"{source.path}: column {name!r}: expected numbers, got {what}; leave it "
                        f"out with drop (--drop {name}) or name the columns of numbers in "
                        "columns (--columns)"
                    )

    # ---- blocks ------------------------------------------------------------------------------

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
            At a row with infinity, text instead of a number, too few or too many fields, or no
            label, unless `skip_bad` or `mark_bad` is set; and at one with a missing value, unless
            `missing` is.
        ValueError
            If a feature column is text.
        OSError
            If a file cannot be read.
        """
        self.check_numbers()
        start = Position() if after is None else after
        if self.sources[0].sparse:
            return read_ahead(self._sparse_blocks(start))
        return read_ahead(self._dense_blocks(start, raw))

    def in_memory(self) -> Block | None:
        """All rows as one block, if they take at most `memory` bytes and are not sparse."""
        return None if self.sources[0].sparse else self.gathered(self.memory)

    def gathered(
        self, limit: float, advance: Callable[[int, float | None], object] | None = None
    ) -> Block | None:
        """All rows as one block, be it of none; None if they take more than `limit` bytes."""
        known = [source.n_rows for source in self.sources if source.n_rows is not None]
        least = sum(known) * self.n_features * self.dtype.itemsize
        if least > limit and not self.options.skip_bad and not self.sources[0].sparse:
            return None
        parts, size = [], 0
        for block, position in self.blocks():
            size += block.X.data.nbytes
            if size > limit:
                return None
            parts.append(Block(block.X.copy(), block.y, None, block.start))
            if advance is not None:
                advance(len(block), self.fraction(position))
        return joined(parts) if parts else Block(np.empty((0, self.n_features)), np.empty(0))

    def fraction(self, position: Position) -> float | None:
        """Fraction of all bytes before a position, from 0 to 1, if known."""
        if self._ends is None:
            self._ends = np.cumsum([source.path.stat().st_size for source in self.sources])
        part = self.sources[position.file].fraction(position.row)
        if part is None:
            return None
        start = self._ends[position.file - 1] if position.file else 0
        end = self._ends[position.file]
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

    def _pieces(self, start: Position) -> Iterator[tuple[int, Source, Chunk, slice]]:
        """All rows from a position on: number of the file, the file, a chunk and its rows."""
        for number in range(start.file, len(self.sources)):
            done = start.row if number == start.file else 0
            for chunk in self.sources[number].chunks(done):
                first = max(done - chunk.start, 0)
                while first < chunk.n:
                    rows = slice(first, min(first + self._left, chunk.n))
                    yield number, self.sources[number], chunk, rows
                    first = rows.stop
                done = max(done, chunk.start + chunk.n)

    def _dense_blocks(self, start: Position, raw: bool) -> Iterator[tuple[Block, Position]]:
        size = self.block_rows
        raw = raw and self.encoder is None
        pool = Buffers(size, self.n_features, self.dtype, raw and self.sources[0].columnar)
        out, filled, labels = pool.take(), 0, []
        rows, skipped = start.rows, start.skipped
        last, self._left = start, size
        for number, source, chunk, part in self._pieces(start):
            target = out[filled : filled + part.stop - part.start]
            if self.encoder is None:
                chunk.write(part, target)
            else:
                target[:] = self.encoder.encoded([values[part] for values in chunk.columns or ()])
            y = None if chunk.y is None or self.options.mark_bad else chunk.y[part]
            bad = None if chunk.bad is None else chunk.bad[part]
            if self.options.mark_bad:
                if bad is not None:
                    target[bad] = np.inf
            elif (valid := self._good(source, chunk, part, target, bad, raw)) is not None:
                skipped += len(target) - len(valid)
                target[: len(valid)] = target[valid]
                target = target[: len(valid)]
                y = None if y is None else y[valid]
            filled += len(target)
            labels.append(y)
            del target
            last = Position(number, chunk.start + part.stop, rows + filled, skipped)
            if filled == size:
                yield _block(out, labels, rows), last
                out, rows, filled, labels = pool.take(), rows + filled, 0, []
            self._left = size - filled
        self._n_rows, self.n_skipped = rows + filled, skipped
        if filled:
            yield _block(out[:filled], labels, rows), last

    def _good(
        self, source: Source, chunk: Chunk, part: slice, X: Any, bad: Mask | None, raw: bool
    ) -> npt.NDArray[np.intp] | None:
        """Numbers of the rows that are good (None: all); BadRowError unless others are skipped."""
        unlabelled = None if chunk.unlabelled is None else chunk.unlabelled[part]
        finite = None
        if self.options.skip_bad or not raw:
            finite = finite_rows(X, missing=self.options.missing)
        wrong = np.zeros(len(X), dtype=bool)
        for flags in (bad, unlabelled, None if finite is None else ~finite):
            if flags is not None:
                wrong |= flags
        if not wrong.any():
            return None
        if not self.options.skip_bad:
            row = int(np.argmax(wrong))
            self._complain(source, chunk, part.start + row, X[row], bad is not None and bad[row])
        return np.flatnonzero(~wrong)

    def _complain(self, source: Source, chunk: Chunk, row: int, x: Any, bad: bool) -> None:
        """Raise the BadRowError of a row."""
        flags = np.isinf(x) if self.options.missing else ~np.isfinite(x)
        column = int(np.argmax(flags)) if flags.any() or bad else None
        value = None if column is None else x[column]
        if column is not None and self.encoder is not None:
            column = self.encoder.used.index(int(self.encoder.groups_[column]))
        if column is None and chunk.y is not None:
            value = chunk.y[row] if chunk.label_of is None else chunk.label_of(row)
        raise source.complaint(
            chunk.start + row, column, value, self.dtype, missing=self.options.missing
        )

    def _sparse_blocks(self, start: Position) -> Iterator[tuple[Block, Position]]:
        size, parts, filled = self.block_rows, [], 0
        rows, skipped = start.rows, start.skipped
        last, self._left = start, size
        for number, source, chunk, part in self._pieces(start):
            X, y = chunk.matrix[part].astype(self.dtype, copy=False), chunk.y
            y = None if y is None or self.options.mark_bad else y[part]
            wrong = np.zeros(X.shape[0], dtype=bool)
            for flags in (chunk.bad, None if y is None else chunk.unlabelled):
                if flags is not None:
                    wrong |= flags[part]
            if wrong.any() and self.options.mark_bad:
                X = _marked(X, wrong)
            elif wrong.any():
                if not self.options.skip_bad:
                    row = chunk.start + part.start + int(np.argmax(wrong))
                    raise source.complaint(row, None, None, self.dtype, missing=False)
                valid = np.flatnonzero(~wrong)
                skipped += X.shape[0] - len(valid)
                X, y = X[valid], None if y is None else y[valid]
            parts.append(Block(X, y, None, rows))
            filled += X.shape[0]
            last = Position(number, chunk.start + part.stop, rows + filled, skipped)
            if filled == size:
                yield joined(parts), last
                parts, rows, filled = [], rows + filled, 0
            self._left = size - filled
        self._n_rows, self.n_skipped = rows + filled, skipped
        if filled:
            yield joined(parts), last


class GatheredRows(RowBlocks):
    """Rows of files that have been read into memory."""

    def __init__(self, rows: FileRows, block: Block) -> None:
        self._rows, self._block = rows, block

    def __iter__(self) -> Iterator[Block]:
        yield self._block

    @property
    def column_names(self) -> tuple[str, ...] | None:
        """Names of the columns in the files."""
        return self._rows.column_names

    @property
    def layout(self) -> dict[str, Any] | None:
        """What a model remembers of files without names."""
        return self._rows.layout

    @property
    def encoder(self) -> TableColumns | None:
        """What has made features of the columns, if some of these are text."""
        return self._rows.encoder

    def in_memory(self) -> Block:
        """All rows."""
        return self._block


def _other_width(source: Source, width: int) -> str:
    return (
        f"{source.path}: expected the {width} columns that the model was fitted to, got "
        f"{source.n_features}; columns (--columns) or drop (--drop) chooses them"
    )


def takes_missing(estimator: Any, fitted: bool) -> bool:
    """Whether an estimator takes NaN for missing values, if fitted after a fit to some."""
    from sklearn.utils import get_tags

    from eigenfeat.rows.out_of_core import completes

    try:
        allowed = bool(get_tags(estimator).input_tags.allow_nan)
    except (AttributeError, TypeError, ValueError):
        return False
    return allowed and (not fitted or completes(estimator))


def _marked(X: Any, wrong: Mask) -> Any:
    """Sparse rows with an infinite entry in each row that is wrong, which has no others."""
    from scipy.sparse import csr_matrix

    counts = np.where(wrong, 1, 0)
    mark = csr_matrix(
        (
            np.full(counts.sum(), np.inf, X.dtype),
            np.zeros(counts.sum(), int),
            np.concatenate([[0], np.cumsum(counts)]),
        ),
        shape=X.shape,
    )
    return (X + mark).tocsr()


def _block(X: npt.NDArray[Any], labels: list[Any], start: int) -> Block:
    return Block(X, None if labels[0] is None else np.concatenate(labels), None, start)


def finite_rows(X: Floats, *, missing: bool = False) -> Mask | None:
    """Mask of the rows that are finite, or NaN where `missing` allows it; None if all are."""
    # A sum that is finite has no other terms, and takes no array of flags.
    with np.errstate(over="ignore", invalid="ignore"):
        total = X.sum()
    if np.isfinite(total):
        return None
    good: Mask = np.all(~np.isinf(X) if missing else np.isfinite(X), axis=1)
    return None if good.all() else good
