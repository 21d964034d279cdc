"""Early classifiers side by side: harmonic means of accuracy and 1 - earliness, and seconds.

    python bench/early.py --data DIR --aeon PYTHON

DIR holds the archive's sets as ``ucr/<set>.npz``. PYTHON is an interpreter that has aeon, whose
classifiers run in processes of their own; without it they are left out, and why is said. All see
the same rows, and run on one thread; seconds are of CPU time.

Every line is written when it is ready, and those that are there already are left out: a run that
was broken off goes on where it was.

`ReliableClassifierCV` chooses as TEASER chooses its parameters: by the harmonic mean on training
rows, out of folds. "tau 0.95" is what one has without choosing.
"""

from __future__ import annotations

import argparse
import csv
import json
import os
import subprocess
import sys
import tempfile
import time
import warnings
from collections.abc import Callable
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np
from scipy.stats import rankdata
from sklearn.discriminant_analysis import LinearDiscriminantAnalysis
from sklearn.ensemble import ExtraTreesClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import FunctionTransformer
from threadpoolctl import threadpool_limits

from bench.papers.baselines.early import ECTS, FixedTime
from eigenfeat.early import (
    LocalQDA,
    MinimumCostClassifier,
    ReliableClassifier,
    ReliableClassifierCV,
    early_scores,
    interval_summaries,
)
from peers.aeon_early import PEERS


@dataclass
class Line:
    """One classifier on one set; `note` says what was chosen, or why there are no figures."""

    problem: str
    classifier: str
    harmonic_mean: float = np.nan
    accuracy: float = np.nan
    earliness: float = np.nan
    fit_seconds: float = np.nan
    row_seconds: float = np.nan
    note: str = ""


def main() -> None:
    """Run every classifier on every set, print a table and write a CSV file."""
    options = _options()
    names = options.sets or sorted(path.stem for path in (options.data / "ucr").glob("*.npz"))
    lines = read_lines(options.output)
    done = {(line.problem, line.classifier) for line in lines}
    for peer in options.classifiers:
        for name in names:
            if (name, peer) in done:
                continue
            data = _read(options.data / "ucr" / f"{name}.npz", options.rows, options.seed)
            if peer in OURS:
                line = _measured(name, peer, data, OURS[peer]())
            else:
                line = _peer(name, peer.removeprefix("aeon "), data, options)
            print(_told(line), flush=True)
            lines.append(line)
            _append(line, options.output)
    _print_table(lines)
    _print_ranks(lines)


def read_lines(path: Path) -> list[Line]:
    if not path.exists():
        return []
    with path.open(newline="") as file:
        return [
            Line(**{k: v if k in TEXTS else float(v) for k, v in row.items()})
            for row in csv.DictReader(file)
        ]


def _append(line: Line, path: Path) -> None:
    fresh = not path.exists()
    with path.open("a", newline="") as file:
        writer = csv.DictWriter(file, list(asdict(line)))
        if fresh:
            writer.writeheader()
        writer.writerow(asdict(line))


def _print_ranks(lines: list[Line]) -> None:
    """Mean ranks over the sets on which every classifier has a figure."""
    names = list(dict.fromkeys(line.classifier for line in lines))
    means = {(line.problem, line.classifier): line.harmonic_mean for line in lines}
    sets = dict.fromkeys(line.problem for line in lines)
    whole = [s for s in sets if all(np.isfinite(means.get((s, n), np.nan)) for n in names)]
    if len(names) > 1 and whole:
        ranks = np.array([rankdata([-means[s, n] for n in names]) for s in whole])
        print(f"mean ranks on {len(whole)} sets:")
        for name, rank in sorted(zip(names, ranks.mean(axis=0), strict=True), key=lambda x: x[1]):
            print(f"  {rank:.2f} {name}")


def _lda() -> LinearDiscriminantAnalysis:
    return LinearDiscriminantAnalysis(solver="lsqr", shrinkage="auto")


def _local() -> ReliableClassifier:
    return ReliableClassifier(LocalQDA(n_threads=1), rule="quadratic", correct=False, n_threads=1)


def _trees() -> ExtraTreesClassifier:
    return ExtraTreesClassifier(50, random_state=0)


def _candidates() -> dict[str, Any]:
    intervals = FunctionTransformer(interval_summaries)
    return {"LDA": _lda(), "trees": _trees(), "intervals": make_pipeline(intervals, _trees())}


OURS: dict[str, Callable[[], Any]] = {
    "LDA, pairwise, tau 0.95": lambda: ReliableClassifier(_lda(), correct=False, n_threads=1),
    "ReliableClassifierCV": lambda: ReliableClassifierCV(n_threads=1),
    "minimum cost, LDA": lambda: MinimumCostClassifier(_lda(), "harmonic"),
    "minimum cost, convolutions": lambda: MinimumCostClassifier(None, "harmonic"),
    "minimum cost, trees": lambda: MinimumCostClassifier(_trees(), "harmonic"),
    "minimum cost, chosen": lambda: MinimumCostClassifier(_candidates(), "harmonic"),
    "ECTS": ECTS,
    "fixed time, 1-NN": FixedTime,
    "local QDA, quadratic, chosen tau": lambda: ReliableClassifierCV({"local QDA": _local()}),
}
TEXTS = ("problem", "classifier", "note")


def _measured(name: str, told: str, data: dict[str, Any], model: Any) -> Line:
    with threadpool_limits(1), warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of folds without some class
        started = time.process_time()
        model.fit(data["X_train"], data["y_train"])
        done = time.process_time()
        early = model.predict_early(data["X_test"])
        row_seconds = (time.process_time() - done) / len(early.time)
    found = early_scores(early, data["X_test"].shape[1], y=data["y_test"])
    return Line(
        name,
        told,
        found.harmonic_mean,
        found.accuracy,
        found.earliness,
        done - started,
        row_seconds,
        _note(model),
    )


def _note(model: Any) -> str:
    if isinstance(model, FixedTime):
        return f"after {model.time_} samples"
    if isinstance(model, ReliableClassifierCV):
        means = [np.nanmax(v) for v in model.harmonic_means_.values() if np.isfinite(v).any()]
        return f"{model.best_candidate_}, tau {model.reliability_:g}, folds {max(means):.3f}"
    if isinstance(model, MinimumCostClassifier):
        chosen = getattr(model, "best_candidate_", "")
        return f"{chosen} price {model.delay_cost_:g}, folds {model.harmonic_mean_:.3f}".strip()
    return ""


def _peer(name: str, peer: str, data: dict[str, Any], options: argparse.Namespace) -> Line:
    script = Path(__file__).parent / "peers" / "aeon_early.py"
    alone = dict.fromkeys(("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "NUMBA_NUM_THREADS"), "1")
    hidden = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}
    line = Line(name, f"aeon {peer}")
    with tempfile.TemporaryDirectory() as folder:
        task = Path(folder) / "task.npz"
        np.savez(task, **data)
        command = [options.aeon, str(script), str(task), peer, str(options.seed)]
        try:
            done = subprocess.run(
                command,
                capture_output=True,
                text=True,
                timeout=options.seconds,
                env=hidden | alone,
                check=False,
            )
        except subprocess.TimeoutExpired:
            line.note = f"skipped: more than {options.seconds:.0f} s"
            return line
    if done.returncode:
        line.note = f"skipped: {done.stderr.strip().splitlines()[-1]}"
        return line
    return Line(name, line.classifier, **json.loads(done.stdout.splitlines()[-1]))


def _read(path: Path, rows: int, seed: int) -> dict[str, Any]:
    with np.load(path, allow_pickle=False) as file:
        data = {name: file[name] for name in ("X_train", "y_train", "X_test", "y_test")}
    kept = np.random.default_rng(seed).permutation(len(data["y_test"]))[:rows]
    data["X_test"], data["y_test"] = data["X_test"][kept].astype(float), data["y_test"][kept]
    data["X_train"] = data["X_train"].astype(float)
    return data


def _told(line: Line) -> str:
    return (
        f"{line.problem} {line.classifier}: {line.harmonic_mean:.3f} "
        f"fit {line.fit_seconds:.2f} s, {1e3 * line.row_seconds:.3g} ms a row {line.note}"
    )


def _print_table(lines: list[Line]) -> None:
    from rich.console import Console
    from rich.table import Table

    table = Table(title="early classification, one thread")
    for column in ("set", "classifier", "harmonic mean", "accuracy", "earliness", "fit", "a row"):
        table.add_column(column, justify="left" if column in ("set", "classifier") else "right")
    table.add_column("note")
    for line in lines:
        figures = [line.harmonic_mean, line.accuracy, line.earliness]
        table.add_row(
            line.problem,
            line.classifier,
            *(f"{x:.3f}" if np.isfinite(x) else "" for x in figures),
            f"{line.fit_seconds:.2f} s" if np.isfinite(line.fit_seconds) else "",
            f"{1e3 * line.row_seconds:.3g} ms" if np.isfinite(line.row_seconds) else "",
            line.note,
        )
    Console(width=150).print(table)


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--data", type=Path, required=True)
    parser.add_argument("--sets", nargs="+", help="all that are there by default")
    parser.add_argument("--aeon", default=sys.executable, help="an interpreter that has aeon")
    known = [*OURS, *(f"aeon {peer}" for peer in PEERS)]
    parser.add_argument("--classifiers", nargs="+", default=known, choices=known)
    parser.add_argument("--rows", type=int, default=300, help="test rows of each set, at most")
    parser.add_argument("--seconds", type=float, default=3600.0, help="time for one peer")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--output", type=Path, default=Path("early.csv"))
    return parser.parse_args()


if __name__ == "__main__":
    main()
