"""Whether early decisions are final as often as is promised: every rule at every tau, set by set.

    python bench/early_reliability.py --data DIR [--sets A B] [--rules TEXT] [--output FILE]

DIR holds the archive's sets as ``ucr/<set>.npz``; models are fitted to the official training part
and tried on the official test part (at most ``--rows`` of it, drawn with the seed). A line says how
many of the early labels are those of the complete series, with the standard error of a binomial
share at tau, and after which share of the series they come. It is flagged, and bold in the table of
``--markdown``, where the agreement is below tau by more than two standard errors.
"""

from __future__ import annotations

import argparse
import csv
import time
import warnings
from collections.abc import Callable
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np
from sklearn.discriminant_analysis import LinearDiscriminantAnalysis
from sklearn.naive_bayes import GaussianNB
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from threadpoolctl import threadpool_limits

from eigenfeat import GEMClassifier
from eigenfeat.incomplete import LocalQDA, MixtureCompletion, ReliableClassifier

FIRST = ("ItalyPowerDemand", "MedicalImages", "Symbols", "MoteStrain")
TAUS = (0.5, 0.8, 0.9, 0.95, 0.99, 0.999)


@dataclass
class Line:
    """What a rule does on a set at a tau."""

    set: str
    rule: str
    tau: float
    rows: int
    training_rows: int
    agreement: float
    standard_error: float
    time: float
    accuracy: float
    promised_by_folds: float
    fit_seconds: float
    row_milliseconds: float

    @property
    def short(self) -> bool:
        """Whether the agreement is below tau by more than two standard errors."""
        return self.agreement < self.tau - 2 * self.standard_error


def _lda() -> Any:
    return LinearDiscriminantAnalysis(solver="lsqr", shrinkage="auto")


def _rules(threads: int) -> dict[str, Callable[[float, Any], ReliableClassifier]]:
    def local(kind: str) -> Callable[[float, Any], ReliableClassifier]:
        return lambda tau, correct: ReliableClassifier(
            LocalQDA(n_threads=threads), set=kind, reliability=tau, correct=correct
        )

    return {
        "local QDA, quadratic": local("quadratic"),
        "local QDA, box": local("box"),
        "local QDA, ideal": lambda tau, correct: ReliableClassifier(
            LocalQDA(n_threads=threads),
            set="ideal",
            reliability=tau,
            correct=correct,
            n_samples=512,
        ),
        "naive Bayes, quadratic": lambda tau, correct: ReliableClassifier(
            GaussianNB(), set="quadratic", reliability=tau, correct=correct
        ),
        "GEM, sampled": lambda tau, correct: ReliableClassifier(
            GEMClassifier(n_threads=threads), reliability=tau, correct=correct, n_samples=512
        ),
        "GEM, learned": lambda tau, correct: ReliableClassifier(
            GEMClassifier(n_threads=threads), set="learned", reliability=tau, correct=correct
        ),
        "LDA pipeline, sampled": lambda tau, correct: ReliableClassifier(
            make_pipeline(StandardScaler(), _lda()),
            reliability=tau,
            correct=correct,
            n_samples=512,
        ),
        "LDA, learned, mixture": lambda tau, correct: ReliableClassifier(
            _lda(), MixtureCompletion(), set="learned", reliability=tau, correct=correct
        ),
        "LDA, pairwise": lambda tau, correct: ReliableClassifier(
            _lda(), reliability=tau, correct=correct
        ),
        "LDA, pairwise, mixture": lambda tau, correct: ReliableClassifier(
            _lda(), MixtureCompletion(), reliability=tau, correct=correct
        ),
    }


def main() -> None:
    """Try the rules on the sets, and print or write what comes of it."""
    options = _options()
    rules = {name: make for name, make in _rules(options.threads).items() if options.rules in name}
    lines: list[Line] = []
    with threadpool_limits(options.threads), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for name in options.sets:
            data = np.load(options.data / "ucr" / f"{name}.npz")
            for line in _lines(name, data, rules, options):
                print(_told(line), flush=True)
                lines.append(line)
                _write(lines, options)
    short = sum(line.short for line in lines)
    print(f"{short} of {len(lines)} are below tau by more than two standard errors")


def _lines(name: str, data: Any, rules: dict[str, Any], options: argparse.Namespace) -> Any:
    X, y = np.asarray(data["X_train"], dtype=float), data["y_train"]
    order = np.random.default_rng(options.seed).permutation(len(data["X_test"]))[: options.rows]
    T, truth = np.asarray(data["X_test"], dtype=float)[order], data["y_test"][order]
    steps = np.unique(np.linspace(1, X.shape[1], options.looks).round().astype(int))
    steps = None if len(steps) >= X.shape[1] else steps
    for rule, make in rules.items():
        for correct in options.correct:
            told = {"0": "raw", "1": "corrected"}.get(correct, f"corrected, {correct}")
            value = {"0": False, "1": True, "average": correct}.get(correct, correct)
            value = value if value in (False, True, "average") else float(value)
            for tau in options.tau:
                begun = time.process_time()
                try:
                    model = make(tau, value).fit(X, y)
                except ValueError as error:
                    print(f"{name}, {rule}: {error}", flush=True)
                    break
                fitted = time.process_time()
                early = model.predict_early(T, steps=steps)
                seconds = time.process_time() - fitted
                yield Line(
                    set=name,
                    rule=f"{rule}, {told}",
                    tau=tau,
                    rows=len(T),
                    training_rows=len(X),
                    agreement=float(np.mean(early.label == model.predict(T))),
                    standard_error=float(np.sqrt(tau * (1 - tau) / len(T))),
                    time=float(np.mean(early.time) / X.shape[1]),
                    accuracy=float(np.mean(early.label == truth)),
                    promised_by_folds=getattr(model, "realised_", float("nan")),
                    fit_seconds=fitted - begun,
                    row_milliseconds=1e3 * seconds / len(T),
                )


def _told(line: Line) -> str:
    return (
        f"{line.set}, {line.rule}, tau {line.tau:g}: {line.agreement:.4f} +- "
        f"{line.standard_error:.4f} after {100 * line.time:.0f}%; "
        f"folds {line.promised_by_folds:.3f}; fit {line.fit_seconds:.2f} s, "
        f"{line.row_milliseconds:.2f} ms a row"
        f"{'  SHORT' if line.short else ''}"
    )


def _write(lines: list[Line], options: argparse.Namespace) -> None:
    if options.output:
        with options.output.open("w", newline="") as file:
            writer = csv.DictWriter(file, list(asdict(lines[0])))
            writer.writeheader()
            writer.writerows(asdict(line) for line in lines)
    if options.markdown:
        options.markdown.write_text(_table(lines))


def _table(lines: list[Line]) -> str:
    """Sets and rules down, tau across: agreement and share of the series; bold where short."""
    taus = sorted({line.tau for line in lines})
    cells = {(line.set, line.rule, line.tau): line for line in lines}
    out = ["| set (training rows, test rows) | rule | " + " | ".join(f"{t:g}" for t in taus) + " |"]
    out.append("|---|---|" + "---|" * len(taus))
    for key in dict.fromkeys((line.set, line.rule) for line in lines):
        row = [cells.get((*key, tau)) for tau in taus]
        some = next(line for line in row if line is not None)
        texts = ["-" if line is None else f"{_bold(line)} {100 * line.time:.0f}%" for line in row]
        head = f"{some.set} ({some.training_rows}, {some.rows})"
        out.append(f"| {head} | {some.rule} | " + " | ".join(texts) + " |")
    return "\n".join(out) + "\n"


def _bold(line: Line) -> str:
    text = f"{line.agreement:.3f}"
    return f"**{text}**" if line.short else text


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--data", type=Path, required=True)
    parser.add_argument("--sets", nargs="+", default=FIRST)
    parser.add_argument("--rules", default="", help="part of a rule's name")
    parser.add_argument("--tau", nargs="+", type=float, default=TAUS)
    parser.add_argument(
        "--correct",
        nargs="+",
        default=("0", "1"),
        help="0: raw; 1: as by default; average; or a confidence",
    )
    parser.add_argument("--rows", type=int, default=1000, help="test rows, at most")
    parser.add_argument("--looks", type=int, default=10_000, help="times to look at, at most")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--output", type=Path, help="a CSV file")
    parser.add_argument("--markdown", type=Path, help="a table for docs/benchmarks.md")
    return parser.parse_args()


if __name__ == "__main__":
    main()
