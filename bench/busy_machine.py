"""How much slower fits become beside processes that keep cores busy, ours and our peers'.

    python bench/busy_machine.py --data DIR --busy 0 1 2
    python bench/busy_machine.py --data DIR --one-core

Every task runs alone first, then beside one endless loop in a process of its own, then beside two.
In each state implementations take turns, and the median counts. `slower` is the time beside those
loops over the time alone; `ratio` is our `slower` over that of the peer, which does the same kind
of work with BLAS's threads or with scikit-learn's.

With `--one-core` the tasks run in processes with all cores, with one thread on all cores, and with
one core alone by affinity (Linux). What is lost to threads that have no core is the third time over
the second: the same work, with the same one core doing it. The third over the first says only how
much the other cores had helped, which is most for the program that uses them best.
"""

from __future__ import annotations

import argparse
import csv
import os
import statistics
import subprocess
import sys
import tempfile
import time
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from sklearn.exceptions import ConvergenceWarning
from sklearn.linear_model import LogisticRegression

import eigenfeat as ef
from peers import scipy_pencils
from problems import N_CLASSES, Rows, class_second_moments, dense_classification, digits

ALL_PAIRS = [(i, j) for i in range(N_CLASSES) for j in range(N_CLASSES) if i != j]


@dataclass
class Task:
    """The same work twice: ours and a peer's."""

    name: str
    ours: Callable[[], object]
    peer: Callable[[], object]
    peer_name: str
    rounds: int


@contextmanager
def busy(count: int) -> Iterator[None]:
    """So many processes that never rest."""
    loops = [subprocess.Popen([sys.executable, "-c", "while True: pass"]) for _ in range(count)]
    try:
        if loops:
            time.sleep(0.5)
        yield
    finally:
        for loop in loops:
            loop.kill()
            loop.wait()


def tasks(rows: Rows) -> dict[str, Callable[[], Task]]:
    """Tasks by name, made when they are needed."""

    def moments() -> Task:
        X = rows.X.astype(np.float64)
        return Task(
            "ClassMoments.update, 60,000 x 784, float64",
            lambda: ef.ClassMoments().update(X, rows.y),
            lambda: X.T @ X,
            "numpy X.T @ X (one syrk)",
            7,
        )

    def pencils() -> Task:
        accumulated = ef.ClassMoments().update(rows.X, rows.y)
        C = class_second_moments(rows)
        return Task(
            "pair_directions, 90 pencils of 784",
            lambda: ef.pencils.pair_directions(
                accumulated, "all", ridge=0.5, n_directions=20, threshold=None
            ),
            lambda: scipy_pencils.gvd(C, ALL_PAIRS[::18], 0.5, 20),
            "scipy.linalg.eigh, 5 of them",
            5,
        )

    def logit() -> Task:
        dense = dense_classification("float64")
        return Task(
            "MultinomialLogit, 6,000 x 1,000",
            lambda: ef.MultinomialLogit(penalty=0, l2=1).fit(dense.X, dense.y),
            lambda: LogisticRegression(max_iter=30).fit(dense.X, dense.y),
            "LogisticRegression, 30 iterations",
            5,
        )

    def classifier() -> Task:
        few = rows.first(600)
        features = ef.GEM(n_directions=10).fit_transform(few.X, few.y)
        return Task(
            "GEMClassifier, 600 x 784",
            lambda: ef.GEMClassifier().fit(few.X, few.y),
            lambda: LogisticRegression(max_iter=30).fit(features, few.y),
            f"LogisticRegression, 600 x {features.shape[1]:,}",
            7,
        )

    return {"moments": moments, "pencils": pencils, "logit": logit, "classifier": classifier}


def medians(task: Task) -> tuple[float, float]:
    """Seconds of both, in turn, after a call each that does not count."""
    seconds: dict[str, list[float]] = {"ours": [], "peer": []}
    for turn in range(task.rounds + 1):
        for who, call in (("ours", task.ours), ("peer", task.peer)):
            start = time.perf_counter()
            call()
            if turn > 0:
                seconds[who].append(time.perf_counter() - start)
    return statistics.median(seconds["ours"]), statistics.median(seconds["peer"])


def table(task: Task, counts: list[int]) -> list[dict[str, object]]:
    """One row for each number of busy processes; prints it, too."""
    print(f"\n{task.name}; peer: {task.peer_name}")
    print(
        f"{'busy':>5} {'ours':>9} {'peer':>9} {'ours slower':>12} {'peer slower':>12} {'ratio':>6}"
    )
    rows: list[dict[str, object]] = []
    alone = (np.nan, np.nan)
    for count in counts:
        with busy(count):
            ours, peer = medians(task)
        if count == 0:
            alone = ours, peer
        slower, theirs = ours / alone[0], peer / alone[1]
        print(
            f"{count:>5} {ours:>8.3f}s {peer:>8.3f}s {slower:>12.2f} {theirs:>12.2f} "
            f"{slower / theirs:>6.2f}",
            flush=True,
        )
        rows.append(
            {
                "task": task.name,
                "peer": task.peer_name,
                "busy": count,
                "seconds": ours,
                "peer_seconds": peer,
                "slower": slower,
                "peer_slower": theirs,
                "ratio": slower / theirs,
            }
        )
    return rows


def one_core(names: list[str], data: Path | None) -> None:
    """Seconds with all cores, with one thread, and with one core, each in a process of its own."""
    single = dict.fromkeys(("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS"), "1")
    core = min(os.sched_getaffinity(0))
    states: dict[str, tuple[dict[str, str], set[int]]] = {
        "all cores": ({}, os.sched_getaffinity(0)),
        "one thread": (single, os.sched_getaffinity(0)),
        "one core": ({}, {core}),
    }
    found: dict[str, list[dict[str, str]]] = {}
    for state, (environment, allowed) in states.items():
        with tempfile.TemporaryDirectory() as folder:
            csv_file = Path(folder) / "rows.csv"
            command = [sys.executable, __file__, *names, "--busy", "0", "--csv", str(csv_file)]
            if data is not None:
                command += ["--data", str(data)]
            subprocess.run(
                command,
                env={**os.environ, **environment},
                preexec_fn=lambda cores=allowed: os.sched_setaffinity(0, cores),  # type: ignore[misc]
                stdout=subprocess.DEVNULL,
                check=True,
            )
            with csv_file.open(newline="") as file:
                found[state] = list(csv.DictReader(file))
    for rows in zip(*found.values(), strict=True):
        print(f"\n{rows[0]['task']}; peer: {rows[0]['peer']}")
        for who in ("seconds", "peer_seconds"):
            many, thread, core_alone = (float(row[who]) for row in rows)
            print(
                f"  {'peer' if 'peer' in who else 'ours'}: all cores {many:.3f} s, "
                f"one thread {thread:.3f} s, one core {core_alone:.3f} s; "
                f"one core / one thread {core_alone / thread:.2f}, / all {core_alone / many:.2f}",
                flush=True,
            )


def main() -> None:
    """Measure the tasks that were named."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("tasks", nargs="*", metavar="TASK", help="all by default")
    parser.add_argument("--data", type=Path, help="folder with mnist.npz")
    parser.add_argument("--busy", type=int, nargs="+", default=[0, 1, 2])
    parser.add_argument("--csv", type=Path)
    parser.add_argument("--one-core", action="store_true")
    given = parser.parse_args()
    if given.one_core:
        one_core(given.tasks, given.data)
        return
    known = tasks(digits(given.data))
    unknown = set(given.tasks) - set(known)
    if unknown:
        parser.error(f"TASK: expected some of {', '.join(known)}, got {', '.join(unknown)}")
    warnings.simplefilter("ignore", ConvergenceWarning)
    counts = sorted({0, *given.busy})
    print(f"{ef._core.default_threads()} threads by default")
    found = [row for name in given.tasks or known for row in table(known[name](), counts)]
    if given.csv is not None:
        with given.csv.open("w", newline="") as file:
            writer = csv.DictWriter(file, list(found[0]))
            writer.writeheader()
            writer.writerows(found)


if __name__ == "__main__":
    main()
