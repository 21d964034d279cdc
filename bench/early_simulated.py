"""Whether a rule's tau holds where the completion's model is exactly right: every case, simulated.

    python bench/early_simulated.py [--rules sampled] [--rows 2000] [--output FILE]

Rows are drawn from a completion that was fitted to labelled rows whose entries share a latent
variable (`--correlation`): one Gaussian, or one for each class. A line says how many of the rows
that are decided at tau get the label of the complete row, for prefixes and for a random mask, with
the standard error of a binomial share at tau. It is flagged where the agreement is below tau by
more than two standard errors; by chance alone about one figure in 44 would be, if the agreement
were tau and not more.
"""

from __future__ import annotations

import argparse
import csv
import warnings
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np
from sklearn.discriminant_analysis import (
    LinearDiscriminantAnalysis,
    QuadraticDiscriminantAnalysis,
)
from sklearn.naive_bayes import GaussianNB
from threadpoolctl import threadpool_limits

from eigenfeat import GEMClassifier
from eigenfeat.early import (
    GaussianCompletion,
    LocalQDA,
    MixtureCompletion,
    ReliableClassifier,
    Sampled,
)

TAUS = (0.5, 0.8, 0.9, 0.95, 0.99, 0.999)
CLASSIFIERS = {
    "linear": LinearDiscriminantAnalysis(),
    "naive Bayes": GaussianNB(),
    "QDA": QuadraticDiscriminantAnalysis(reg_param=0.1),
    "local QDA": LocalQDA(8, n_threads=1),
    "GEM": GEMClassifier(views="gem", n_threads=1),
}
COLUMNS, CLASSES, TRAINING = 8, 3, 1500


@dataclass
class Line:
    """What a rule does in a case at a tau."""

    rule: str
    classifier: str
    completion: str
    correlation: float
    mask: str
    tau: float
    decided: int
    agreement: float

    @property
    def short(self) -> bool:
        """Whether the agreement is below tau by more than two standard errors."""
        error = np.sqrt(self.tau * (1 - self.tau) / max(self.decided, 1))
        return self.decided > 0 and self.agreement < self.tau - 2 * error


def main() -> None:
    """Try all cases, and print or write what comes of them."""
    options = _options()
    lines: list[Line] = []
    with threadpool_limits(1), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for correlation in options.correlation:
            for mixture in (False, True):
                for line in _lines(correlation, mixture, options):
                    lines.append(line)
                    print(_told(line), flush=True)
                if options.output:
                    _write(lines, options.output)
    short = sum(line.short for line in lines)
    print(f"{short} of {len(lines)} are below tau by more than two standard errors")


def _lines(correlation: float, mixture: bool, options: argparse.Namespace) -> Any:
    random = np.random.default_rng([int(1000 * correlation), mixture, options.seed])
    X, y, completion, gaussians = _problem(random, correlation, mixture, options.apart)
    fresh = _drawn(random, gaussians, options.rows)
    masks = {"prefix": np.arange(COLUMNS) < 4, "mask": random.permutation(COLUMNS) < 5}
    for rule in options.rules:
        for name in options.classifiers:
            classifier = CLASSIFIERS[name]
            model = ReliableClassifier(
                classifier,
                completion,
                rule=Sampled(options.samples) if rule == "sampled" else rule,
                correct=False,
                n_threads=1,
            )
            try:
                model.fit(X, y)
            except ValueError as error:
                print(f"{rule}, {name}: {error}", flush=True)
                continue
            final = model.predict(fresh)
            for kind, mask in masks.items():
                rows = np.where(mask, fresh, np.nan)
                for tau, found in _at_all(model, rows, rule):
                    decided = found.reliability >= tau if rule == "sampled" else found.decided
                    right = found.label == final
                    yield _line(rule, name, mixture, correlation, kind, tau, decided, right)


def _at_all(model: ReliableClassifier, rows: Any, rule: str) -> Any:
    """What is decided at each tau; samples tell the largest tau, and are drawn once."""
    if rule == "sampled":
        found = model.decide(rows)
        return [(tau, found) for tau in TAUS]
    return [(tau, model.decide(rows, tau)) for tau in TAUS]


def _line(
    rule: str,
    classifier: str,
    mixture: bool,
    correlation: float,
    mask: str,
    tau: float,
    decided: Any,
    right: Any,
) -> Line:
    count = int(decided.sum())
    agreement = float(right[decided].mean()) if count else 1.0
    completion = "mixture" if mixture else "Gaussian"
    return Line(rule, classifier, completion, correlation, mask, tau, count, agreement)


def _problem(random: Any, correlation: float, mixture: bool, apart: float) -> Any:
    """Labelled rows, a completion for them, and the Gaussians that it has fitted."""
    y = random.integers(0, CLASSES, TRAINING)
    scale = np.linspace(0.6, 1.6, CLASSES)[:, None] if mixture else np.ones((CLASSES, 1))
    means = random.standard_normal((CLASSES, COLUMNS)) * apart
    rows = np.sqrt(correlation) * random.standard_normal((TRAINING, 1))
    rows = rows + np.sqrt(1 - correlation) * random.standard_normal((TRAINING, COLUMNS))
    X = means[y] + scale[y] * rows
    completion = (MixtureCompletion if mixture else GaussianCompletion)(shrinkage=0, n_threads=1)
    fitted = completion.fit(X, y)
    if mixture:
        return X, y, completion, (fitted.class_weights_, fitted.means_, fitted.covariances_)
    return X, y, completion, (np.ones(1), fitted.mean_[None], fitted.covariance_[None])


def _drawn(random: Any, gaussians: Any, n: int) -> Any:
    weights, means, covariances = gaussians
    part = random.choice(len(weights), n, p=weights)
    roots = np.linalg.cholesky(covariances)
    normal = random.standard_normal((n, COLUMNS))
    return means[part] + np.einsum("nij,nj->ni", roots[part], normal)


def _told(line: Line) -> str:
    return (
        f"{line.rule}, {line.classifier}, {line.completion}, correlation {line.correlation:g}, "
        f"{line.mask}, tau {line.tau:g}: {line.agreement:.4f} of {line.decided} decided"
        f"{'  SHORT' if line.short else ''}"
    )


def _write(lines: list[Line], path: Path) -> None:
    with path.open("w", newline="") as file:
        writer = csv.DictWriter(file, list(asdict(lines[0])))
        writer.writeheader()
        writer.writerows(asdict(line) for line in lines)


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rules", nargs="+", default=("sampled",))
    parser.add_argument("--correlation", nargs="+", type=float, default=(0.0, 0.5, 0.8, 0.95))
    parser.add_argument("--classifiers", nargs="+", default=[*CLASSIFIERS], choices=[*CLASSIFIERS])
    parser.add_argument("--rows", type=int, default=2000)
    parser.add_argument("--samples", type=int, default=8192, help="0.999 takes 8,192")
    parser.add_argument(
        "--apart", type=float, default=0.7, help="standard deviation of the classes' means"
    )
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--output", type=Path, help="a CSV file")
    return parser.parse_args()


if __name__ == "__main__":
    main()
