"""Parts of an experiment: data with a split, methods, and the figures that the paper prints."""

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
    """A data file is missing or lacks arrays."""


class NothingToRunError(UsageError):
    """No method has the given name."""


# ---- data ----------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Context:
    """Options of a run: `quick` means fewer samples and candidates.

    `directions` is the number of directions of another method. `rows` is the largest number of test
    samples of tasks that take a part of them, None for the task's default. `threads` is the number
    of threads of all computations, None for the machine's default. `splits` is the number of random
    splits, None for the task's default.
    """

    quick: bool = False
    threads: int | None = None
    seed: int = 0
    directions: int | None = None
    rows: int | None = None
    splits: int | None = None


@dataclass(frozen=True, eq=False)
class Rows:
    """Samples `X` (n, d), float32, and their labels `y` (n,)."""

    X: NDArray[np.float32]
    y: NDArray[np.int64]

    def __len__(self):
        return len(self.y)

    def __getitem__(self, kept):
        return Rows(self.X[kept], self.y[kept])


@dataclass(frozen=True, eq=False)
class Data:
    """Training samples, a function for the test samples, and samples to choose hyperparameters on.

    Without `development` samples, a share of the training samples is held out for choices, and the
    chosen model is trained on all training samples. `test` is called once, after all choices. The
    share is drawn at random, class by class. With `by_source`, training samples of a source follow
    each other and test samples are of other sources; the share is then the last samples, because
    samples of known sources favour models that know the sources.
    """

    train: Rows
    test: Callable[[], Rows]
    development: Rows | None = None
    by_source: bool = False


def read_arrays(path, *names):
    """Read arrays of an ``.npz`` file by their names."""
    with np.load(path, allow_pickle=False) as file:
        return [file[name] for name in names]


def read_rows(path, X, y):
    """Read samples by the names of their arrays, columns as float32."""
    columns, labels = read_arrays(path, X, y)
    return Rows(columns.astype(np.float32), labels.astype(np.int64))


def subsample(rows, limit, seed):
    """Return at most `limit` random samples; all samples if `limit` is None."""
    if limit is None or len(rows) <= limit:
        return rows
    return rows[np.random.RandomState(seed).permutation(len(rows))[:limit]]


def some_of_each(y, count, seed, most=1.0):
    """Return indices of `count` random samples per class, at most the share `most` of a class."""
    random = np.random.RandomState(seed)
    members = (random.permutation(np.flatnonzero(y == label)) for label in np.unique(y))
    return np.concatenate([m[: min(count, max(int(most * len(m)), 1))] for m in members])


# ---- methods and problems ------------------------------------------------------------------------


@dataclass(frozen=True)
class Method:
    """A name, a function that builds the estimator, hyperparameters, and the paper's figures.

    `build` is a function of a module, so that other processes find it. Hyperparameters, by their
    names in `set_params`, are `fixed` or chosen on held-out samples from the values of `grid`;
    `quick` replaces values of both in a quick run. `paper` has a line of the paper's table, by
    column. `ensemble` has numbers of members, in full and in quick runs, of an ensemble of the
    chosen estimator; `members` has the name and the paper's figures of a line for its members.
    With `drawn_pairs`, "random" or "stratified", each member draws its pairs. `directions_of` is
    the method that sets the number of directions. A `peer` runs on request only.
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
        """Return the parameters that are not chosen."""
        quick = self.quick if context.quick else {}
        return {**self.fixed, **{name: quick[name] for name in quick if name not in self.grid}}

    def chosen_from(self, context):
        """Return the candidates of each chosen parameter; a quick run has fewer."""
        quick = self.quick if context.quick else {}
        grid = {name: quick.get(name, values) for name, values in self.grid.items()}
        return {n: list(v) if isinstance(v, (list, tuple)) else [v] for n, v in grid.items()}


class Scores(NamedTuple):
    """Share of wrong predictions, and cross-entropy of the labels (None without probabilities)."""

    error: float
    cross_entropy: float | None = None


@dataclass
class Outcome:
    """Results of a method on a problem; `failure` is the reason of missing results.

    Without a study there are `scores`, and scores of an ensemble's `members`. A study fills in
    `splits`, or the attributes of a subclass.
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
    """A data file with its arrays, a split, and the methods to compare.

    Hyperparameters minimise the `objective`, "error" or "cross_entropy". `quoted` are lines of the
    paper's table, by name, that no method here measures. `study` replaces training and testing: it
    takes a job and an `outcome` to fill in. `beside` has further files with their arrays. A quick
    run leaves out problems that are not `in_quick`.
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
    """Problems that run together, and functions that report a run.

    `lines` returns a mapping for each line of the CSV file. `tell` yields text and data frames for
    the terminal, `draw` names of files and figures. With `alone`, each method runs in its own
    process, which measures its memory.
    """

    name: str
    problems: tuple[Problem, ...]
    lines: Callable[[Run], list[dict[str, Any]]]
    tell: Callable[[Run], Any]
    draw: Callable[[Run], Any] = lambda run: ()
    alone: bool = True

    def of(self, context):
        """Return the problems of a run."""
        return [problem for problem in self.problems if problem.in_quick or not context.quick]


class Job(NamedTuple):
    """A method, its problem, the folder of the data, and the options of the run."""

    problem: Problem
    method: Method
    folder: Path
    context: Context

    @property
    def name(self):
        """Names of the problem and of the method."""
        return f"{self.problem.name}: {self.method.name}"

    def load(self):
        """Read the problem's data."""
        return self.problem.load(self.folder / self.problem.file, self.context)


N_SPLITS, QUICK_SPLITS = 10, 2


def seeds(context):
    """Return the seeds of a run's random splits."""
    count = context.splits or (QUICK_SPLITS if context.quick else N_SPLITS)
    return range(context.seed, context.seed + count)


class Run(NamedTuple):
    """The outcomes of a protocol so far, with its options and the folder of the data."""

    protocol: Protocol
    outcomes: Sequence[Any]
    context: Context
    folder: Path

    def done(self, problem):
        """Return the outcomes on a problem by method, in the order of its methods."""
        found = {o.method: o for o in self.outcomes if o.problem == problem.name}
        return {m.name: found[m.name] for m in problem.methods if m.name in found}


def check_files(problems, folder):
    """Raise DataError unless all files of the problems exist and have their arrays."""
    files = {}
    for problem in problems:
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
