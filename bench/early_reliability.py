"""Whether early decisions are final as often as promised: every rule and tau, set by set.

    python bench/early_reliability.py --data DIR --output FILE [--sets A B] [--rules TEXT]

DIR holds the archive's sets as ``ucr/<set>.npz``. Models are fitted to the official training part
and evaluated on the official test part (at most ``--rows`` series, drawn with the seed). The
CSV file FILE gets a line for each set, rule and tau, with and without correction: the share of
early labels that equal the labels of complete series, the standard error of a binomial share at
tau, and the mean time as a share of the series. Rules and sets that FILE has already are skipped.

``--by-class`` prints instead the agreement of all series and of the class with the smallest
agreement, for promises about all series together and by class.
"""

import argparse
import time
import warnings
from pathlib import Path

import numpy as np
import pandas as pd
from sklearn.discriminant_analysis import LinearDiscriminantAnalysis
from sklearn.naive_bayes import GaussianNB
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from threadpoolctl import threadpool_limits

from eigenfeat import GEMClassifier
from eigenfeat.early import (
    GaussianCompletion,
    LocalQDA,
    MixtureCompletion,
    ReliableClassifier,
    Sampled,
)
from results import add_lines, finished, read_set, set_names

TAUS = (0.5, 0.8, 0.9, 0.95, 0.99, 0.999)
LDA = LinearDiscriminantAnalysis(solver="lsqr", shrinkage="auto")
SAMPLED = Sampled(1024)
ONE = GaussianCompletion()
RULES = {  # classifier, rule, and completion; by ascending cost
    "LDA, pairwise": (LDA, "pairwise", ONE),
    "LDA, mahalanobis": (LDA, "mahalanobis", ONE),
    "LDA, chebyshev": (LDA, "chebyshev", ONE),
    "LDA, quadratic": (LDA, "quadratic", ONE),
    "LDA, box": (LDA, "box", ONE),
    "LDA, pairwise, mixture": (LDA, "pairwise", MixtureCompletion()),
    "LDA, default": (LDA, "auto", None),
    "LDA, prefixes": (LDA, "prefixes", ONE),
    "naive Bayes, quadratic": (GaussianNB(), "quadratic", ONE),
    "naive Bayes, box": (GaussianNB(), "box", ONE),
    "local QDA, quadratic": (LocalQDA(), "quadratic", ONE),
    "local QDA, box": (LocalQDA(), "box", ONE),
    "local QDA, sampled": (LocalQDA(), SAMPLED, ONE),
    "GEM, sampled": (GEMClassifier(), SAMPLED, ONE),
    "LDA pipeline, sampled": (make_pipeline(StandardScaler(), LDA), SAMPLED, ONE),
    "LDA, sampled": (LDA, SAMPLED, ONE),
}


def evaluated(rule, data, options):
    """Yield a line of FILE for each tau, without and with correction."""
    classifier, kind, completion = RULES[rule]
    model = ReliableClassifier(
        classifier, completion, kind, TAUS[0], correct=options.correct, conditional=None
    )
    X, y, T, truth = data.values()
    begun = time.process_time()
    model.fit(X, y)
    fit_seconds = time.process_time() - begun
    complete = model.predict(T)
    steps = np.unique(np.linspace(1, X.shape[1], options.looks).round().astype(int))
    corrected = "corrected" if options.correct is True else options.correct
    for name, one in (("raw", model.uncorrected()), (corrected, model)):
        for tau in options.tau:
            begun = time.process_time()
            # A correction holds for the times that it was learned at.
            early = one.predict_early(T, tau, steps=getattr(one, "decision_times_", steps))
            yield {
                "rule": f"{rule}, {name}",
                "tau": tau,
                "rows": len(T),
                "training_rows": len(X),
                "agreement": np.mean(early.label == complete),
                "standard_error": np.sqrt(tau * (1 - tau) / len(T)),
                "time": np.mean(early.time) / X.shape[1],
                "accuracy": np.mean(early.label == truth),
                "fit_seconds": fit_seconds,
                "row_milliseconds": 1e3 * (time.process_time() - begun) / len(T),
            }


def print_by_class(name, data, options):
    """Print agreements of shrinkage LDA by default; * marks a warning of the fit."""
    X, y, T, truth = data.values()
    for tau in options.tau:
        cells = [name, f"{tau:g}"]
        for conditional in (None, "auto"):
            model = ReliableClassifier(LDA, reliability=tau, conditional=conditional)
            with warnings.catch_warnings(record=True) as caught:
                warnings.simplefilter("always")
                model.fit(X, y)
            early = model.predict_early(T)
            agrees = early.label == model.predict(T)
            least = min(agrees[truth == label].mean() for label in np.unique(truth))
            share = np.mean(early.time) / T.shape[1]
            cells.append(f"{agrees.mean():.3f} {least:.3f} {share:.0%}{' *' * bool(caught)}")
        print("| " + " | ".join(cells) + " |", flush=True)


def main():
    """Evaluate the rules on the sets."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--data", type=Path, required=True)
    parser.add_argument("--by-class", action="store_true", help="print agreement by class instead")
    parser.add_argument("--output", type=Path, default=Path("early_reliability.csv"))
    parser.add_argument("--sets", nargs="+", help="default: all")
    parser.add_argument("--rules", default="", help="part of a rule's name")
    average = {"dest": "correct", "action": "store_const", "const": "average", "default": True}
    parser.add_argument("--average", help="correct on average, not with confidence 0.9", **average)
    parser.add_argument("--tau", nargs="+", type=float, default=TAUS)
    parser.add_argument("--rows", type=int, default=1000, help="most test series")
    parser.add_argument("--looks", type=int, default=60, help="most times of decision")
    parser.add_argument("--seed", type=int, default=0)
    options = parser.parse_args()
    done = {
        (name, rule.rpartition(", ")[0]) for name, rule in finished(options.output, "set", "rule")
    }
    for name in set_names(options.data, options.sets):
        data = read_set(options.data, name, options.rows, options.seed)
        if options.by_class:
            print_by_class(name, data, options)
            continue
        for rule in RULES:
            if options.rules not in rule or (name, rule) in done:
                continue
            with threadpool_limits(1), warnings.catch_warnings():
                warnings.simplefilter("ignore")
                lines = pd.DataFrame(evaluated(rule, data, options))
            lines.insert(0, "set", name)
            add_lines(options.output, lines)


if __name__ == "__main__":
    main()
