"""Whether early decisions are final as often as is promised: every rule at every tau, set by set.

    python bench/early_reliability.py --data DIR --output FILE [--sets A B] [--rules TEXT]

DIR holds the archive's sets as ``ucr/<set>.npz``; models are fitted to the official training part
and tried on the official test part (at most ``--rows`` of it, drawn with the seed). A line says how
many of the early labels are those of the complete series, with the standard error of a binomial
share at tau, and after which share of the series they come. It is flagged, and bold in the table of
``--markdown``, where the agreement is below tau by more than two standard errors.

Every set and rule is written to FILE when it is ready, and those that are there already are left
out: a run that was broken off goes on where it was. One fit serves every tau, raw and corrected.

``--by-class`` prints instead the agreement of all series and of the class with the smallest one,
for promises about all series together and by class.
"""

from __future__ import annotations

import argparse
import csv
import time
import warnings
from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass, fields
from pathlib import Path
from typing import Any

import numpy as np
from sklearn.discriminant_analysis import LinearDiscriminantAnalysis
from sklearn.naive_bayes import GaussianNB
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from threadpoolctl import threadpool_limits

from eigenfeat import GEMClassifier
from eigenfeat.early import (
    EarlyLabels,
    LocalQDA,
    MixtureCompletion,
    ReliableClassifier,
    Sampled,
)

TAUS = (0.5, 0.8, 0.9, 0.95, 0.99, 0.999)
SMALL = (1e-10, 1e-8, 1e-6, 1e-4, 1e-3, 0.01, 0.1)  # for curves: sets hold more than is asked


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
    accuracy: float = np.nan
    fit_seconds: float = np.nan
    row_milliseconds: float = np.nan

    @property
    def short(self) -> bool:
        """Whether the agreement is below tau by more than two standard errors."""
        return self.agreement < self.tau - 2 * self.standard_error


def _lda() -> Any:
    return LinearDiscriminantAnalysis(solver="lsqr", shrinkage="auto")


def _rules(threads: int) -> dict[str, Callable[[], ReliableClassifier]]:
    """By name, in the order of what they cost."""

    def rule(classifier: Callable[[], Any], kind: str | Sampled, mixture: bool = False) -> Any:
        return lambda: ReliableClassifier(
            classifier(),
            MixtureCompletion(n_threads=threads) if mixture else None,
            kind,
            TAUS[0],
            conditional=None,
            n_threads=threads,
        )

    sampled = Sampled(1024)

    def local() -> LocalQDA:
        return LocalQDA(n_threads=threads)

    def gem() -> GEMClassifier:
        return GEMClassifier(n_threads=threads)

    def scaled() -> Any:
        return make_pipeline(StandardScaler(), _lda())

    return {
        "LDA, pairwise": rule(_lda, "pairwise"),
        "LDA, mahalanobis": rule(_lda, "mahalanobis"),
        "LDA, chebyshev": rule(_lda, "chebyshev"),
        "LDA, quadratic": rule(_lda, "quadratic"),
        "LDA, box": rule(_lda, "box"),
        "LDA, pairwise, mixture": rule(_lda, "pairwise", True),
        "naive Bayes, quadratic": rule(GaussianNB, "quadratic"),
        "naive Bayes, box": rule(GaussianNB, "box"),
        "local QDA, quadratic": rule(local, "quadratic"),
        "local QDA, box": rule(local, "box"),
        "local QDA, sampled": rule(local, sampled),
        "GEM, sampled": rule(gem, sampled),
        "LDA pipeline, sampled": rule(scaled, sampled),
        "LDA, sampled": rule(_lda, sampled),
    }


def main() -> None:
    """Try the rules on the sets, and print or write what comes of it."""
    options = _options()
    if options.by_class:
        _print_by_class(options)
        return
    rules = {n: make for n, make in _rules(options.threads).items() if options.rules in n}
    sets = options.sets or sorted(path.stem for path in (options.data / "ucr").glob("*.npz"))
    lines = read_lines(options.output)
    done = {(line.set, line.rule.rsplit(", ", 1)[0]) for line in lines}
    with threadpool_limits(options.threads), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for rule, make in rules.items():
            for name in sets:
                if (name, rule) in done:
                    continue
                data = np.load(options.data / "ucr" / f"{name}.npz")
                model = make().set_params(correct=options.correct)
                try:
                    found = list(_lines(name, data, rule, model, options))
                except (ValueError, MemoryError) as error:
                    print(f"{name}, {rule}: {error}", flush=True)
                    continue
                for line in found:
                    print(_told(line), flush=True)
                lines += found
                _append(found, options.output)
    if options.markdown:
        options.markdown.write_text(_table(lines))
    asked = [line for line in lines if line.tau in TAUS]
    short = sum(line.short for line in asked)
    print(f"{short} of {len(asked)} are below tau by more than two standard errors")


def _print_by_class(options: argparse.Namespace) -> None:
    """Shrinkage LDA, pairwise, on the sets that are asked for."""
    sets = options.sets or sorted(path.stem for path in (options.data / "ucr").glob("*.npz"))
    for name in sets:
        data = np.load(options.data / "ucr" / f"{name}.npz")
        order = np.random.default_rng(options.seed).permutation(len(data["X_test"]))
        order = order[: options.rows]
        T, truth = data["X_test"][order], data["y_test"][order]
        for tau in options.tau:
            cells = [name, f"{tau:g}"]
            for conditional in (None, "auto"):
                model = ReliableClassifier(_lda(), reliability=tau, conditional=conditional)
                with warnings.catch_warnings(record=True) as caught:
                    warnings.simplefilter("always")
                    model.fit(data["X_train"], data["y_train"])
                early = model.predict_early(T)
                agrees = early.label == model.predict(T)
                least = min(agrees[truth == label].mean() for label in np.unique(truth))
                share = np.mean(early.time) / T.shape[1]
                cells.append(f"{agrees.mean():.3f} {least:.3f} {share:.0%}{' *' * bool(caught)}")
            print("| " + " | ".join(cells) + " |", flush=True)


def _lines(
    name: str, data: Any, rule: str, model: ReliableClassifier, options: argparse.Namespace
) -> Iterator[Line]:
    X, y = np.asarray(data["X_train"], dtype=float), data["y_train"]
    order = np.random.default_rng(options.seed).permutation(len(data["X_test"]))[: options.rows]
    T, truth = np.asarray(data["X_test"], dtype=float)[order], data["y_test"][order]
    steps = np.unique(np.linspace(1, X.shape[1], options.looks).round().astype(int))
    begun = time.process_time()
    model.fit(X, y)
    fit_seconds = time.process_time() - begun
    complete = model.predict(T)
    corrected = "corrected" if options.correct is True else options.correct
    for told, one in (("raw", model.uncorrected()), (corrected, model)):
        # From one look at every time, where there are enough for that; samples stop early at one.
        curve = told == "raw" and model.rule_ != "sampled" and options.tau == TAUS
        taus = (*SMALL, *TAUS) if curve else options.tau
        begun = time.process_time()
        # A correction holds for the times that it was learned at.
        found = list(_runs(one, T, taus, getattr(one, "decision_times_", steps)))
        seconds = (time.process_time() - begun) / len(found)
        for tau, early in zip(taus, found, strict=True):
            yield Line(
                set=name,
                rule=f"{rule}, {told}",
                tau=tau,
                rows=len(T),
                training_rows=len(X),
                agreement=float(np.mean(early.label == complete)),
                standard_error=float(np.sqrt(tau * (1 - tau) / len(T))),
                time=float(np.mean(early.time) / X.shape[1]),
                accuracy=float(np.mean(early.label == truth)),
                fit_seconds=fit_seconds,
                row_milliseconds=1e3 * seconds / len(T),
            )


def _runs(model: ReliableClassifier, T: Any, taus: tuple[float, ...], steps: Any) -> Iterator[Any]:
    """Labels and times at each tau; from one look at every time where there are many."""
    if len(taus) <= len(TAUS):
        for tau in taus:
            early = model.predict_early(T, tau, steps=steps)
            yield EarlyLabels(early.label, early.time)
        return
    traced = model.predict_early(T, taus[-1], steps=steps, trace=True)
    for tau in taus:
        first = (traced.trace_reliability >= tau).argmax(axis=1)
        label = traced.trace_label[np.arange(len(T)), first]
        yield EarlyLabels(label, traced.steps[first])


def read_lines(path: Path) -> list[Line]:
    if not path.exists():
        return []
    kinds = {
        field.name: {"str": str, "int": int, "float": float}[field.type] for field in fields(Line)
    }
    with path.open(newline="") as file:
        return [Line(**{k: kinds[k](v) for k, v in row.items()}) for row in csv.DictReader(file)]


def _append(lines: list[Line], path: Path) -> None:
    fresh = not path.exists()
    with path.open("a", newline="") as file:
        writer = csv.DictWriter(file, list(asdict(lines[0])))
        if fresh:
            writer.writeheader()
        writer.writerows(asdict(line) for line in lines)


def _told(line: Line) -> str:
    return (
        f"{line.set}, {line.rule}, tau {line.tau:g}: {line.agreement:.4f} +- "
        f"{line.standard_error:.4f} after {100 * line.time:.0f}%; "
        f"folds {line.promised_by_folds:.3f}; fit {line.fit_seconds:.2f} s, "
        f"{line.row_milliseconds:.2f} ms a row"
        f"{'  SHORT' if line.short else ''}"
    )


def _table(lines: list[Line]) -> str:
    """Sets and rules down, tau across: agreement and share of the series; bold where short."""
    taus = [tau for tau in TAUS if any(line.tau == tau for line in lines)]
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
    parser.add_argument("--by-class", action="store_true", help="print agreement by class instead")
    parser.add_argument("--output", type=Path, help="a CSV file, which is added to")
    parser.add_argument("--sets", nargs="+", help="all that are there by default")
    parser.add_argument("--rules", default="", help="part of a rule's name")
    parser.add_argument(
        "--average",
        dest="correct",
        action="store_const",
        const="average",
        default=True,
        help="correct for tau on average, not with confidence 0.9; to a file of its own",
    )
    parser.add_argument("--tau", nargs="+", type=float, default=TAUS)
    parser.add_argument("--rows", type=int, default=1000, help="test rows, at most")
    parser.add_argument("--looks", type=int, default=60, help="times to look at, at most")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--markdown", type=Path, help="a table for bench/papers/RESULTS.md")
    options = parser.parse_args()
    if options.output is None and not options.by_class:
        parser.error("--output is required without --by-class")
    return options


if __name__ == "__main__":
    main()
