"""What an experiment is made of: data with a split, methods, and what the paper says of them."""

from __future__ import annotations

import zipfile
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

__all__ = [
    "Context",
    "Data",
    "DataError",
    "Hyperparameters",
    "Method",
    "NothingToRunError",
    "Paper",
    "Problem",
    "Protocol",
    "Report",
    "Rows",
    "check_files",
    "read_arrays",
    "subsample",
]


class DataError(OSError):
    """A data file is missing or does not hold what it should."""


class NothingToRunError(ValueError):
    """No method has such a name."""


@dataclass(frozen=True)
class Context:
    """How to run: `quick` means fewer rows and candidates; `directions` is another method's count.

    `rows` are as many test rows as are taken at most, where a task takes a part of them, None for
    the task's own number. `threads` are those of everything in a method's process, None for the
    machine's default.
    """

    quick: bool = False
    threads: int | None = None
    seed: int = 0
    directions: int | None = None
    rows: int | None = None


@dataclass(frozen=True, eq=False)
class Rows:
    """Rows `X` (n, d), float32, and their labels `y` (n,)."""

    X: NDArray[np.float32]
    y: NDArray[np.int64]

    def __len__(self) -> int:
        return len(self.y)

    def __getitem__(self, kept: Any) -> Rows:
        return Rows(self.X[kept], self.y[kept])


@dataclass(frozen=True, eq=False)
class Data:
    """Training rows, how to get the test rows, and the rows to choose hyperparameters on.

    Without `development` rows a share of the training rows is held out to choose on, and the
    chosen model is trained on all of them; with them the training rows stay as they are. `test` is
    called once, when nothing is left to choose. The share is drawn at random, class by class; or,
    where training rows of one source stand together and test rows are of others (`by_source`),
    it is the last ones: rows of sources that are trained on would speak for what knows them.
    """

    train: Rows
    test: Callable[[], Rows]
    development: Rows | None = None
    by_source: bool = False


@dataclass(frozen=True)
class Hyperparameters:
    """`fixed` ones, and a `grid` of values to choose from; `quick` replaces what it names in both.

    Names are those of the estimator's `set_params`, such as "ridge" or "rbfsampler__gamma".
    """

    fixed: Mapping[str, Any] = field(default_factory=dict)
    grid: Mapping[str, Sequence[Any]] = field(default_factory=dict)
    quick: Mapping[str, Any] = field(default_factory=dict)

    def set_for(self, context: Context) -> dict[str, Any]:
        """Parameters that are not chosen."""
        quick = self.quick if context.quick else {}
        return {
            **self.fixed,
            **{name: value for name, value in quick.items() if name not in self.grid},
        }

    def chosen_from(self, context: Context) -> dict[str, list[Any]]:
        """Values of each parameter that is chosen; in a quick run some have only one."""
        quick = self.quick if context.quick else {}
        grid = {name: quick.get(name, values) for name, values in self.grid.items()}
        return {name: _as_list(values) for name, values in grid.items()}


@dataclass(frozen=True)
class Paper:
    """What the paper prints of a method: its error in percent, and its cross-entropy."""

    name: str = ""
    error: str = ""
    cross_entropy: str = ""


@dataclass(frozen=True)
class Method:
    """A name, the paper's figures, how to build the estimator, and its hyperparameters.

    `build` is a function of a module, so that another process finds it. `ensemble` turns the chosen
    estimator into an ensemble, whose members get a row of their own: `members`. `directions_of` is
    the method whose number of directions this one is to have. A `peer` runs on request only.
    """

    name: str
    build: Callable[[Context], Any]
    hyperparameters: Hyperparameters = field(default_factory=Hyperparameters)
    paper: Paper = field(default_factory=Paper)
    ensemble: Callable[[Any, Context], Any] | None = None
    members: Paper | None = None
    directions_of: str = ""
    peer: bool = False


@dataclass(frozen=True)
class Problem:
    """A data file and what it holds, how to split it, and the methods to compare on it.

    `objective` is what hyperparameters are chosen by: "error" or "cross_entropy". `quoted` are rows
    of the paper's table that nothing here runs. `study` replaces training and testing once, for
    data that is split more than once: it fills in an outcome from what `load` returns.
    """

    name: str
    title: str
    split: str
    file: str
    arrays: Mapping[str, str]
    load: Callable[[Path, Context], Any]
    methods: tuple[Method, ...]
    quoted: tuple[Paper, ...] = ()
    objective: str = "error"
    study: Callable[..., None] | None = None


@dataclass(frozen=True)
class Protocol:
    """Problems that are run by one name; `report` tells of outcomes otherwise than usual."""

    name: str
    summary: str
    problems: tuple[Problem, ...]
    report: Report | None = None


@dataclass(frozen=True)
class Report:
    """How outcomes are told: what is printed, what is written to a CSV file, what is drawn.

    `tell` yields tables and lines of text from a protocol and its outcomes, `write` takes a path
    beside them, and `draw` a folder and the folder of the data; it returns the files that it has
    written.
    """

    tell: Callable[[Protocol, Sequence[Any]], Iterable[Any]]
    write: Callable[[Protocol, Sequence[Any], Context, Path], None]
    draw: Callable[[Protocol, Sequence[Any], Context, Path, Path], list[Path]]


def check_files(protocol: Protocol, folder: Path) -> None:
    """Raise DataError unless the files are there and hold the arrays that they should."""
    for problem in protocol.problems:
        path = folder / problem.file
        described = "; ".join(f"{name}: {what}" for name, what in problem.arrays.items())
        try:
            with np.load(path, allow_pickle=False) as file:
                missing = [name for name in problem.arrays if name not in file.files]
        except FileNotFoundError:
            raise _unlike(path, described, "no such file") from None
        except (ValueError, EOFError, AttributeError, zipfile.BadZipFile):
            raise _unlike(path, described, "a file of another kind") from None
        if missing:
            raise _unlike(path, described, f"no {', '.join(missing)}")


def read_arrays(path: Path, *names: str) -> list[NDArray[Any]]:
    """Return some arrays of an ``.npz`` file; the others are not read."""
    with np.load(path, allow_pickle=False) as file:
        return [file[name] for name in names]


def subsample(rows: Rows, limit: int | None, seed: int) -> Rows:
    """Return at most `limit` random rows; all of them, as they are, if None."""
    if limit is None or len(rows) <= limit:
        return rows
    return rows[np.random.RandomState(seed).permutation(len(rows))[:limit]]


def _unlike(path: Path, described: str, got: str) -> DataError:
    return DataError(f"data: expected {path} with arrays {described}; got {got}")


def _as_list(values: Any) -> list[Any]:
    return list(values) if isinstance(values, (list, tuple)) else [values]
