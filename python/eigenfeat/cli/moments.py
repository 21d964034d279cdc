"""``eigenfeat moments``: class moments of files, in one pass that can be resumed."""

from __future__ import annotations

import time
from dataclasses import asdict
from pathlib import Path
from types import SimpleNamespace
from typing import Any

from eigenfeat._base.saved_files import FileFormatError
from eigenfeat._base.validation import counted, differing_name, show, show_items
from eigenfeat.cli.files import check_output, loaded_moments, rows_of
from eigenfeat.cli.output import InterruptedRunError, Output, UsageError, interrupts
from eigenfeat.io.rows import FileRows, Position
from eigenfeat.io.saving import load, save
from eigenfeat.moments.class_moments import ClassMoments
from eigenfeat.samples.targets import task_of

__all__ = ["moments"]

_CHECKPOINT_SECONDS = 60.0  # from one checkpoint to the next


def moments(options: SimpleNamespace, output: Output) -> None:
    """Compute moments of all rows, or merge files of moments, and write them."""
    if options.data[0] == "merge":
        _merge(options, options.data[1:], output)
        return
    rows = rows_of(options)
    default = options.output.with_name(f"{options.output.name}.checkpoint")
    checkpoint = Checkpoint(options.checkpoint or default, rows, options.every)
    for path in (options.output, checkpoint.path):
        check_output(path, rows)
        for part in path.parent.glob(f".{path.name}.*.part"):  # left by runs that were killed
            part.unlink(missing_ok=True)
    if options.output == checkpoint.path:
        raise UsageError(f"--checkpoint: expected another file than the output {options.output}")
    rows.check_features()
    names = None if rows.column_names is None else [*rows.column_names]
    total, position = ClassMoments(dtype=rows.dtype, feature_names=names), None
    exists = checkpoint.path.exists()
    if options.resume and exists:
        total, position = checkpoint.load()
        output.say(f"resuming after {position.rows:,} rows from {checkpoint.path}")
    elif options.resume:
        output.say(f"no checkpoint {checkpoint.path}: starting from the first row")
    elif exists:
        output.say(
            f"starting anew; {checkpoint.path} will be replaced (--resume continues from it)"
        )
    resumed_from = position.rows if position else 0
    with interrupts() as received, output.rows("moments") as advance:
        for block, after in rows.blocks(position):
            if position is None and options.labels == "auto" and block.y is not None:
                task, n_values = task_of(block.y)
                if task == "regression":
                    raise UsageError(
                        f"--target: expected labels of classes, got {n_values:,} distinct numbers "
                        f"in {len(block):,} rows; --labels str makes a class of each number"
                    )
            try:
                total.update(block.X, block.y, n_threads=options.threads)
            except ValueError:
                next(rows.blocks(position))  # raises an error that names the place in the file
                raise
            position = after
            advance(len(block), after.fraction)
            if received:
                checkpoint.save(total, after)
                raise InterruptedRunError(
                    f"after {after.rows:,} rows, saved in {checkpoint.path}; "
                    "the same command with --resume continues",
                    received[0],
                )
            if checkpoint.due(after):
                checkpoint.save(total, after)
    n = position.rows if position else 0
    rows.check_not_empty(n)
    save(total, options.output)
    checkpoint.path.unlink(missing_ok=True)
    classes = total.classes_.tolist()
    result = {"output": str(options.output), "rows": n, "skipped": rows.n_skipped}
    result |= {"features": total.n_features_in_, "classes": classes, "dtype": rows.dtype.name}
    result |= {"resumed_from": resumed_from, "seconds": output.seconds}
    result |= {"rows_per_second": advance.rate}
    skipped = f" ({counted(rows.n_skipped, 'bad row')} left out)" if rows.n_skipped else ""
    output.result(
        result,
        f"{options.output}: {counted(n, 'row')}{skipped}, "
        f"{counted(total.n_features_in_, 'feature')}, "
        f"{len(classes)} classes ({show_items(classes)}); {advance.rate:,.0f} rows/s",
    )


# ---- checkpoints ---------------------------------------------------------------------------------


def checkpoint_of(content: Any, path: Path) -> tuple[ClassMoments, dict[str, Any], Position]:
    """Moments of a loaded checkpoint, the identity of its rows, and the position in them.

    FileFormatError for the content of other files.
    """
    try:
        moments, identity = content["moments"], dict(content["identity"])
        position = Position(**content["position"])
        if isinstance(moments, ClassMoments):
            return moments, identity | {"files": [*identity["files"]]}, position
    except (LookupError, TypeError, ValueError):
        pass
    got = f"a dictionary of {show([*content])}" if isinstance(content, dict) else show(content)
    raise FileFormatError(f"{path}: expected a checkpoint of moments, got {got}")


class Checkpoint:
    """File with the state of a pass over `rows`, written after `every` rows, or each minute."""

    def __init__(self, path: Path, rows: FileRows, every: int | None) -> None:
        self.path, self._every = path, every
        self._identity = rows.identity()
        self._saved_rows, self._saved_at = 0, time.monotonic()

    def load(self) -> tuple[ClassMoments, Position]:
        """State in the file; FileFormatError if its files or options differ."""
        moments, identity, position = checkpoint_of(load(self.path), self.path)
        for name, value in self._identity.items():
            if identity.get(name) != value:
                raise FileFormatError(
                    f"{self.path}: expected a checkpoint of these files and options, got one "
                    f"that differs: {name} was {show(identity.get(name))} and is {show(value)}; "
                    "without --resume the run starts anew"
                )
        self._saved_rows = position.rows
        return moments, position

    def due(self, position: Position) -> bool:
        """Whether it is time for another checkpoint."""
        if self._every is None:
            return time.monotonic() - self._saved_at >= _CHECKPOINT_SECONDS
        return position.rows - self._saved_rows >= self._every

    def save(self, moments: ClassMoments, position: Position) -> None:
        """Write the exact state after all blocks up to a position, atomically."""
        progress = {"identity": self._identity, "position": asdict(position)}
        save({"moments": moments, **progress}, self.path)
        self._saved_rows, self._saved_at = position.rows, time.monotonic()


# ---- merging -------------------------------------------------------------------------------------


def _merge(options: SimpleNamespace, paths: list[str], output: Output) -> None:
    """Merge files of moments in the order given; names of columns must agree."""
    if len(paths) < 2:
        raise UsageError(f"merge: expected two files of moments or more, got {len(paths)}")
    check_output(options.output, *paths)
    total, named = loaded_moments(paths[0]), paths[0]
    for path in paths[1:]:
        part = loaded_moments(path)
        known, names = (getattr(m, "feature_names_in_", None) for m in (total, part))
        if known is not None and names is not None and (other := differing_name(known, names)):
            raise ValueError(
                f"{path}: expected the columns of {named}, whose column {other[0]} is {other[1]}, "
                f"got {other[2]}"
            )
        try:
            total.merge(part, n_threads=options.threads)
        except ValueError as error:
            raise ValueError(f"{path}: {str(error).removeprefix('other: ')}") from None
        named = path if known is None else named
    save(total, options.output)
    classes = total.classes_.tolist()
    weights = {str(label): total.weight(label) for label in classes}
    result = {"output": str(options.output), "merged": paths, "classes": classes}
    output.result(
        {**result, "weights": weights}, f"{options.output}: {len(paths)} files, {total!r}"
    )
