"""What an experiment is made of: data with a split, methods, and what the paper says of them."""

from __future__ import annotations

import zipfile
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from eigenfeat.cli.output import UsageError


class DataError(OSError):
    """A data file is missing or does not hold what it should."""


class NothingToRunError(UsageError):
    """No method has such a name."""


# ---- data ----------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Context:
    """How to run: `quick` means fewer rows and candidates; `directions` is another method's count.

    `rows` are as many test rows as are taken at most, where a task takes a part of them, None for
    the task's own number. `threads` are those of everything that a method does, None for the
    machine's default; `splits` is the number of random splits, None for the task's.
    """

    quick: bool = False
    threads: int | None = None
    seed: int = 0
    directions: int | None = None
    rows: int | None = None
    splits: int | None = None


@dataclass(frozen=True, eq=False)
class Rows:
    """Rows `X` (n, d), float32, and their labels `y` (n,)."""

    X: NDArray[np.float32]
    y: NDArray[np.int64]

    def __len__(self):
        return len(self.y)

    def __getitem__(self, kept):
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


def read_arrays(path, *names):
    """Return some arrays of an ``.npz`` file; the others are not read."""
    with np.load(path, allow_pickle=False) as file:
        return [file[name] for name in names]


def read_rows(path, X, y):
    """Return rows by the names of their arrays, columns as float32."""
    columns, labels = read_arrays(path, X, y)
    return Rows(columns.astype(np.float32), labels.astype(np.int64))


def subsample(rows, limit, seed):
    """Return at most `limit` random rows; all of them, as they are, if None."""
    if limit is None or len(rows) <= limit:
        return rows
    return rows[np.random.RandomState(seed).permutation(len(rows))[:limit]]


def some_of_each(y, count, seed, most=1.0):
    """Return so many random rows of each class, at most this share of them, but one of any."""
    random = np.random.RandomState(seed)
    members = (random.permutation(np.flatnonzero(y == label)) for label in np.unique(y))
    return np.concatenate([m[: min(count, max(int(most * len(m)), 1))] for m in members])


# ---- methods and problems ------------------------------------------------------------------------


@dataclass(frozen=True)
class Method:
    """A name, how to build the estimator, its hyperparameters, and the paper's figures.

    `build` is a function of a module, so that another process finds it. Hyperparameters, by their
    names in `set_params`, are `fixed`, or chosen on held-out rows from the values that `grid` has;
    `quick` replaces what it names in both. `paper` has a line of the paper's table, by column.
    With an `ensemble`, as many members, and as many in a quick run, the chosen estimator becomes
    one, whose members get a row of their own, `members`: its name and the paper's figures.
    With `drawn_pairs`, "random" or "stratified", each member has pairs of its own.
    `directions_of` is the method whose number of directions this one is to have. A `peer` runs on
    request only.
    """

    name: str
    build: Callable[..., Any]
    fixed: Mapping[str, Any] = field(default_factory=dict)
    grid: Mapping[str, Sequence[Any]] = field(default_factory=dict)
    quick: Mapping[str, Any] = field(default_factory=dict)
    paper: Mapping[str, str] = field(default_factory=dict)
    ensemble: tuple[int, int] | None = None
    drawn_pairs: str = ""
    members: tuple[str, Mapping[str, str]] = ("", {})
    directions_of: str = ""
    peer: bool = False

    def set_for(self, context):
        """Parameters that are not chosen."""
        quick = self.quick if context.quick else {}
        return {**self.fixed, **{name: quick[name] for name in quick if name not in self.grid}}

    def chosen_from(self, context):
        """Values of each parameter that is chosen; in a quick run some have only one."""
        quick = self.quick if context.quick else {}
        grid = {name: quick.get(name, values) for name, values in self.grid.items()}
        return {n: list(v) if isinstance(v, (list, tuple)) else [v] for n, v in grid.items()}


class Scores(NamedTuple):
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
    of the paper's table that nothing here runs, by name. `study` replaces training and testing
    once: called with a job, an outcome of the kind `outcome` and what is told each step, it fills
    in the outcome. `beside` the file are further ones with their arrays. A quick run leaves out
    what is not `in_quick`.
    """

    name: str
    title: str
    split: str
    file: str
    arrays: Mapping[str, str]
    load: Callable[..., Any]
    methods: tuple[Method, ...]
    quoted: Mapping[str, Mapping[str, str]] = field(default_factory=dict)
    objective: str = "error"
    study: Callable[..., None] | None = None
    outcome: type[Outcome] = Outcome
    beside: Mapping[str, Mapping[str, str]] = field(default_factory=dict)
    in_quick: bool = True


@dataclass(frozen=True)
class Protocol:
    """Problems that are run by one name, and how a run of them is told.

    `tell` yields tables and lines of text; `lines` returns what stands in each file, by the end of
    its name: its fields, and a mapping for each line; `draw` yields names of files and figures.
    Methods of one that is `alone` run in a process each, which measures their memory. A job's name
    is that of its problem, `joined` with its method's; `parts` says of what `only` takes a part.
    """

    name: str
    problems: tuple[Problem, ...]
    tell: Callable[[Run], Any]
    lines: Callable[[Run], Any]
    draw: Callable[[Run], Any] = lambda run: ()
    alone: bool = True
    joined: str = ": "
    parts: str = ""

    def of(self, context):
        """Return the problems of a run."""
        return [problem for problem in self.problems if problem.in_quick or not context.quick]


class Job(NamedTuple):
    """A method, its problem, the folder of the data, and how to run."""

    problem: Problem
    method: Method
    folder: Path
    context: Context

    def load(self):
        """Read the problem's data."""
        return self.problem.load(self.folder / self.problem.file, self.context)


N_SPLITS, QUICK_SPLITS = 10, 2


def seeds(context, step=lambda text: None):
    """Yield the seeds of a run's random splits, and tell of each."""
    total = context.splits or (QUICK_SPLITS if context.quick else N_SPLITS)
    for number in range(total):
        step(f"split {number + 1} of {total}")
        yield context.seed + number


class Run(NamedTuple):
    """What a protocol has done so far, and on which data."""

    protocol: Protocol
    outcomes: Sequence[Any]
    context: Context
    folder: Path

    def done(self, problem):
        """Return the outcomes on a problem by method, in the order of its methods."""
        found = {o.method: o for o in self.outcomes if o.problem == problem.name}
        return {m.name: found[m.name] for m in problem.methods if m.name in found}


def check_files(protocol, folder, context=Context()):
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
