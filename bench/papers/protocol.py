"""What an experiment is made of: data with a split, methods, and what the paper says of them."""

from __future__ import annotations

import zipfile
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

Step = Callable[[str], None]  # told what is being done


class DataError(OSError):
    """A data file is missing or does not hold what it should."""


class NothingToRunError(ValueError):
    """No method has such a name."""


# ---- data ----------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Context:
    """How to run: `quick` means fewer rows and candidates; `directions` is another method's count.

    `rows` are as many test rows as are taken at most, where a task takes a part of them, None for
    the task's own number. `threads` are those of everything that a method does, None for the
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


def read_arrays(path: Path, *names: str) -> list[NDArray[Any]]:
    """Return some arrays of an ``.npz`` file; the others are not read."""
    with np.load(path, allow_pickle=False) as file:
        return [file[name] for name in names]


def read_rows(path: Path, X: str, y: str) -> Rows:
    """Return rows by the names of their arrays, columns as float32."""
    columns, labels = read_arrays(path, X, y)
    return Rows(columns.astype(np.float32), labels.astype(np.int64))


def subsample(rows: Rows, limit: int | None, seed: int) -> Rows:
    """Return at most `limit` random rows; all of them, as they are, if None."""
    if limit is None or len(rows) <= limit:
        return rows
    return rows[np.random.RandomState(seed).permutation(len(rows))[:limit]]


# ---- methods and problems ------------------------------------------------------------------------


@dataclass(frozen=True)
class Hyperparameters:
    """`fixed` ones, and a `grid` of values to choose from; `quick` replaces what it names in both.

    Names are those of the estimator's `set_params`, such as "ridge" or "rbfsampler__gamma". A tuple
    in the grid is chosen from on held-out rows; a grid of single values costs no choosing.
    """

    fixed: Mapping[str, Any] = field(default_factory=dict)
    grid: Mapping[str, Sequence[Any]] = field(default_factory=dict)
    quick: Mapping[str, Any] = field(default_factory=dict)

    def set_for(self, context: Context) -> dict[str, Any]:
        """Parameters that are not chosen."""
        quick = self.quick if context.quick else {}
        return {**self.fixed, **{name: quick[name] for name in quick if name not in self.grid}}

    def chosen_from(self, context: Context) -> dict[str, list[Any]]:
        """Values of each parameter that is chosen; in a quick run some have only one."""
        quick = self.quick if context.quick else {}
        grid = {name: quick.get(name, values) for name, values in self.grid.items()}
        return {n: list(v) if isinstance(v, (list, tuple)) else [v] for n, v in grid.items()}


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
    build: Callable[..., Any]
    hyperparameters: Hyperparameters = field(default_factory=Hyperparameters)
    paper: Paper = field(default_factory=Paper)
    ensemble: Callable[[Any, Context], Any] | None = None
    members: Paper | None = None
    directions_of: str = ""
    peer: bool = False


@dataclass(frozen=True)
class Scores:
    """Share of wrong predictions, and mean negative log probability of the labels (None: no)."""

    error: float
    cross_entropy: float | None = None


@dataclass
class Outcome:
    """What a method did on a problem; `failure` says why there is nothing, or not all.

    Without a study there are `scores`, and an ensemble's `members`; a study leaves `splits`, or has
    a subclass of its own.
    """

    problem: str
    method: str
    failure: str = ""
    scores: Scores | None = None
    members: list[Scores] = field(default_factory=list)
    splits: list[Any] = field(default_factory=list)
    n_train: int = 0
    n_test: int = 0
    directions: int | None = None
    parameters: dict[str, Any] = field(default_factory=dict)
    n_candidates: int = 0
    choose_seconds: float = 0.0
    train_seconds: float = 0.0
    test_seconds: float = 0.0
    peak_bytes: int = 0
    warnings: list[str] = field(default_factory=list)


@dataclass(frozen=True)
class Problem:
    """A data file and what it holds, how to split it, and the methods to compare on it.

    `objective` is what hyperparameters are chosen by: "error" or "cross_entropy". `quoted` are rows
    of the paper's table that nothing here runs. `study` replaces training and testing once: called
    with a job, an outcome of the kind `outcome` and a step, it fills in the outcome. `beside` the
    file are further ones with their arrays. A quick run
    leaves out what is not `in_quick`.
    """

    name: str
    title: str
    split: str
    file: str
    arrays: Mapping[str, str]
    load: Callable[..., Any]
    methods: tuple[Method, ...]
    quoted: tuple[Paper, ...] = ()
    objective: str = "error"
    study: Callable[[Job, Any, Step], None] | None = None
    outcome: type[Outcome] = Outcome
    beside: Mapping[str, Mapping[str, str]] = field(default_factory=dict)
    in_quick: bool = True


@dataclass(frozen=True)
class Protocol:
    """Problems that are run by one name, and how their outcomes are told.

    Methods of one that is `alone` run in a process each, which measures their memory. A job's name
    is that of its problem, `joined` with its method's; `parts` says of what `only` takes a part.
    """

    name: str
    problems: tuple[Problem, ...]
    report: Report
    alone: bool = True
    joined: str = ": "
    parts: str = ""

    def of(self, context: Context) -> list[Problem]:
        """Return the problems of a run."""
        return [problem for problem in self.problems if problem.in_quick or not context.quick]


@dataclass(frozen=True)
class Job:
    """A method, its problem, the folder of the data, and how to run."""

    problem: Problem
    method: Method
    folder: Path
    context: Context


@dataclass(frozen=True)
class Run:
    """What a protocol has done so far, and on which data."""

    protocol: Protocol
    outcomes: Sequence[Any]
    context: Context
    folder: Path

    def done(self, problem: Problem) -> dict[str, Any]:
        """Return the outcomes on a problem by method, in the order of its methods."""
        found = {o.method: o for o in self.outcomes if o.problem == problem.name}
        return {m.name: found[m.name] for m in problem.methods if m.name in found}


Files = Mapping[str, tuple[Sequence[str], Iterable[Mapping[str, object]]]]


@dataclass(frozen=True)
class Report:
    """How a run is told: what is printed, what is written to CSV files, what is drawn.

    `tell` yields tables and lines of text; `lines` what stands in each file, by the end of its
    name: its fields, and a mapping for each line; `draw` yields names of files and figures.
    """

    tell: Callable[[Run], Iterable[Any]]
    lines: Callable[[Run], Files]
    draw: Callable[[Run], Iterable[tuple[str, Any]]] = lambda run: ()


def check_files(protocol: Protocol, folder: Path, context: Context = Context()) -> None:
    """Raise DataError unless the files are there and hold the arrays that they should."""
    files = {}
    for problem in protocol.of(context):
        files |= {problem.file: problem.arrays, **problem.beside}
    for name, arrays in files.items():
        path = folder / name
        described = "; ".join(f"{array}: {what}" for array, what in arrays.items())
        expected = f"{path} with arrays {described};" if described else f"{path},"
        try:
            with np.load(path, allow_pickle=False) as file:
                missing = [array for array in arrays if array not in file.files]
        except FileNotFoundError:
            raise DataError(f"data: expected {expected} got no such file") from None
        except (ValueError, EOFError, AttributeError, zipfile.BadZipFile):
            raise DataError(f"data: expected {expected} got a file of another kind") from None
        if missing:
            raise DataError(f"data: expected {expected} got no {', '.join(missing)}")
