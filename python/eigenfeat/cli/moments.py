"""``eigenfeat moments``: class moments of files, in one pass that can be taken up again."""

from __future__ import annotations

import time
from dataclasses import asdict
from pathlib import Path
from types import SimpleNamespace
from typing import Any

from eigenfeat._base.saved_files import FileFormatError
from eigenfeat._base.validation import differing_name, show
from eigenfeat.cli.options import check_output, check_some, files_of, open_labelled
from eigenfeat.cli.output import (
    Advance,
    InterruptedRunError,
    Interrupts,
    Output,
    UsageError,
    remove_leftovers,
)
from eigenfeat.moments.class_moments import ClassMoments
from eigenfeat.rows.blocks import Block
from eigenfeat.tables import FileRows, Position

__all__ = ["merge_files", "moments_of_files"]

_SECONDS = 60.0
KIND = "moments checkpoint"


def write_checkpoint(path: Path, moments: ClassMoments, progress: dict[str, Any]) -> None:
    """Write the exact state of `moments`, and anything that JSON can hold, atomically."""
    moments._save_with(path, KIND, {"progress": progress})


def read_checkpoint(path: str | Path) -> tuple[ClassMoments, dict[str, Any]]:
    """Read what `write_checkpoint` wrote; FileFormatError for anything else."""
    moments, about = ClassMoments._load_with(path, KIND)
    progress = about.get("progress")
    if not isinstance(progress, dict):
        raise FileFormatError(f"{path}: cannot be loaded: it does not say how far it has come")
    return moments, progress


class Checkpoint:
    """A file with the state of a run.

    Parameters
    ----------
    path : Path
        The file.
    rows : FileRows
        What the run goes through.
    every : int or None
        Rows between two checkpoints; None: a minute.
    """

    def __init__(self, path: Path, rows: FileRows, every: int | None) -> None:
        self.path, self._every = path, every
        self._identity = rows.identity()
        self._saved_rows, self._saved_at = 0, time.monotonic()

    def load(self) -> tuple[ClassMoments, Position]:
        """The state that is in the file; FileFormatError if it is of other files or options."""
        moments, progress = read_checkpoint(self.path)
        try:
            identity, position = progress["identity"], Position(**progress["position"])
        except (KeyError, TypeError):
            raise FileFormatError(f"{self.path}: cannot be loaded: it has no position") from None
        if difference := _difference(identity, self._identity):
            raise FileFormatError(
                f"{self.path}: expected a checkpoint of these files and options, got one of "
                f"others: {difference}; without --resume the run starts anew"
            )
        self._saved_rows = position.rows
        return moments, position

    def due(self, position: Position) -> bool:
        """Whether it is time for another checkpoint."""
        if self._every is None:
            return time.monotonic() - self._saved_at >= _SECONDS
        return position.rows - self._saved_rows >= self._every

    def save(self, moments: ClassMoments, position: Position) -> None:
        """Write the state after all blocks up to a position."""
        progress = {"identity": self._identity, "position": asdict(position)}
        write_checkpoint(self.path, moments, progress)
        self._saved_rows, self._saved_at = position.rows, time.monotonic()

    def remove(self) -> None:
        """Remove the file: the run has ended."""
        self.path.unlink(missing_ok=True)


def _difference(identity: Any, wanted: dict[str, Any]) -> str | None:
    """What the identity of a checkpoint and that of a run differ in, for people."""
    if identity == wanted:
        return None
    try:
        before, now = ([file["path"] for file in part["files"]] for part in (identity, wanted))
        if before != now:
            return f"it is of {show(before)}, not of {show(now)}"
        for old, new in zip(identity["files"], wanted["files"], strict=True):
            if old["bytes"] != new["bytes"]:
                return f"{new['path']} had {old['bytes']} bytes and has {new['bytes']}"
            if old["time"] != new["time"]:
                return f"{new['path']} was written to since"
        for name, value in wanted["options"].items():
            if identity["options"][name] != value:
                return f"{name} was {show(identity['options'][name])} and is {show(value)}"
    except (KeyError, TypeError):
        pass
    return "it was written by another version"


def moments_of_files(options: SimpleNamespace) -> int:
    """Add up the moments of all rows, write them, and say so."""
    output = Output("moments", options.json, options.progress)
    if options.data[0] == "merge":  # after an option
        return _merged(options, options.data[1:], output)
    return _moments_of(options, open_labelled(options), output)


def merge_files(options: SimpleNamespace) -> int:
    """Merge files of moments in the order given."""
    return _merged(options, options.data, Output("moments", options.json, None))


def _moments_of(options: SimpleNamespace, rows: FileRows, output: Output) -> int:
    for path in (options.output, _checkpoint_path(options)):
        check_output(path, files_of(rows))
    if options.output == _checkpoint_path(options):
        raise UsageError(f"--checkpoint: expected another file than the output {options.output}")
    checkpoint = Checkpoint(_checkpoint_path(options), rows, options.every)
    moments, position = _start(options, rows, checkpoint, output)
    resumed_from = position.rows if position else 0
    for path in (checkpoint.path, options.output):
        remove_leftovers(path)
    with Interrupts() as interrupts, output.rows("moments") as advance:
        for block, after in rows.blocks(position):
            _add(block, moments, options.threads, rows, position)
            position = after
            advance(len(block), after.fraction)
            if interrupts.received is not None:
                _stop(checkpoint, moments, after, interrupts.received)
            if checkpoint.due(after):
                checkpoint.save(moments, after)
    check_some(position.rows if position else 0, rows)
    assert position is not None
    moments.save(options.output)
    checkpoint.remove()
    _report(options, rows, output, moments, position, advance, resumed_from)
    return 0


def _add(
    block: Block,
    moments: ClassMoments,
    n_threads: int | None,
    rows: FileRows,
    position: Position | None,
) -> None:
    """Add a block of raw rows; an error names the place in the file, as checked rows' does."""
    try:
        moments.update(block.X, block.y, n_threads=n_threads)
    except ValueError:
        next(rows.blocks(position))
        raise


def _checkpoint_path(options: SimpleNamespace) -> Path:
    if options.checkpoint is not None:
        return Path(options.checkpoint)
    return options.output.with_name(f"{options.output.name}.checkpoint")


def _start(
    options: SimpleNamespace, rows: FileRows, checkpoint: Checkpoint, output: Output
) -> tuple[ClassMoments, Position | None]:
    if options.resume and checkpoint.path.exists():
        moments, position = checkpoint.load()
        output.say(f"resuming after {position.rows:,} rows from {checkpoint.path}")
        return moments, position
    if options.resume:
        output.say(f"no checkpoint {checkpoint.path}: starting from the first row")
    elif checkpoint.path.exists():
        output.say(f"starting anew; {checkpoint.path} will be replaced (--resume goes on from it)")
    names = None if rows.column_names is None else [*rows.column_names]
    return ClassMoments(dtype=rows.dtype, feature_names=names), None


def _stop(
    checkpoint: Checkpoint, moments: ClassMoments, position: Position, signal_number: int
) -> None:
    checkpoint.save(moments, position)
    raise InterruptedRunError(
        f"after {position.rows:,} rows, which {checkpoint.path} holds; "
        "the same command with --resume goes on",
        signal_number,
    )


def _report(
    options: SimpleNamespace,
    rows: FileRows,
    output: Output,
    moments: ClassMoments,
    position: Position,
    advance: Advance,
    resumed_from: int,
) -> None:
    classes = moments.classes_.tolist()
    result = {
        "output": str(options.output),
        "rows": position.rows,
        "skipped": rows.n_skipped,
        "features": moments.n_features_in_,
        "classes": classes,
        "dtype": rows.dtype.name,
        "resumed_from": resumed_from,
        "seconds": advance.seconds,
        "rows_per_second": advance.rate,
    }
    skipped = f" ({rows.n_skipped:,} bad rows left out)" if rows.n_skipped else ""
    text = (
        f"{options.output}: {position.rows:,} rows{skipped}, {moments.n_features_in_} features, "
        f"{len(classes)} classes ({show(classes, 200)[1:-1]}); {advance.rate:,.0f} rows/s"
    )
    output.result(result, text)


def _merged(options: SimpleNamespace, paths: list[str], output: Output) -> int:
    if len(paths) < 2:
        raise UsageError(f"merge: expected two files of moments or more, got {len(paths)}")
    check_output(options.output, paths)
    total, named = ClassMoments.load(paths[0]), paths[0]
    for path in paths[1:]:
        part, nameless = ClassMoments.load(path), not hasattr(total, "feature_names_in_")
        _check_columns(total, named, part, path)
        try:
            total.merge(part, n_threads=options.threads)
        except ValueError as error:
            raise ValueError(f"{path}: {error}") from None
        named = path if nameless else named
    total.save(options.output)
    weights = {str(c): total.weight(c) for c in total.classes_}
    result = {
        "output": str(options.output),
        "merged": paths,
        "classes": total.classes_.tolist(),
        "weights": weights,
    }
    output.result(result, f"{options.output}: {len(paths)} files, {total!r}")
    return 0


def _check_columns(total: ClassMoments, named: str, part: ClassMoments, path: str) -> None:
    """ValueError, naming both files, if columns differ; `total` has those of the file `named`."""
    known, names = (getattr(m, "feature_names_in_", None) for m in (total, part))
    if known is not None and names is not None and (other := differing_name(known, names)):
        raise ValueError(
            f"{path}: expected the columns of {named}, whose column {other[0]} is {other[1]}, "
            f"got {other[2]}"
        )
    d, e = (getattr(m, "n_features_in_", None) for m in (total, part))
    if None not in (d, e) and d != e:
        raise ValueError(f"{path}: expected the {d} columns of {named}, got {e}")
