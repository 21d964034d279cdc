"""Tables 2 to 4 of the GEM paper, and defaults beside defaults on data that it does not use.

Problems, methods and their hyperparameters are in gem.json, the paper's figures in figures/gem.csv.
This module has the splits, and tables of errors beside the paper's.
"""

import json
from functools import partial
from pathlib import Path

import numpy as np
from sklearn.model_selection import StratifiedShuffleSplit

from bench.papers import choosing
from bench.papers.figures import figures
from bench.papers.protocol import (
    Data,
    Method,
    Problem,
    Protocol,
    Rows,
    read_arrays,
    read_rows,
    subsample,
)
from bench.papers.recordings import FSDD_ARRAYS, fsdd_frames
from bench.papers.tables import HOW, frame_of, mean_fields, picked

MNIST_QUICK_ROWS = 6_000
COVERTYPE_QUICK_ROWS = 12_000
COVERTYPE_TEST_SHARE = 0.1
N_NUMERIC = 10  # columns before the indicators of wilderness and soil
N_REPEATED = 1_720  # first samples of X_random50k, which X_first20k also has
COVERTYPE_PARTS = (("extra", 0), ("random50k", N_REPEATED), ("first20k", 0))
# The last two speakers in alphabetical order, chosen before their recordings were looked at.
DEVELOPMENT_SPEAKER, TEST_SPEAKER = "theo", "yweweler"
SPEECH_QUICK_EVERY = 6  # a quick run takes every sixth recording
DEFAULTS_QUICK_ROWS = 1_500
TEST_SHARE = 0.5
OCR_TRAINING_FOLDS = (0,)  # the other folds are for testing

# ---- data ----------------------------------------------------------------------------------------


def load_mnist(path, context):
    """Return the official split, pixels in 0..1; a quick run has fewer training samples."""

    def part(name, limit=None):
        rows = subsample(read_rows(path, f"X_{name}", f"y_{name}"), limit, context.seed)
        rows.X[...] /= 255
        return rows

    # Digits of one writer follow each other in the file (for 3.7% of them, the nearest digit of
    # their class is among the 100 samples beside them: eleven times as often as by chance). The
    # test set is of other writers, so folds are consecutive, too.
    train = part("train", MNIST_QUICK_ROWS if context.quick else None)
    return Data(train, lambda: part("test"), by_source=not context.quick)


def load_covertype(path, context):
    """Return distinct samples in random order, the last tenth for testing.

    The file has 102,821 distinct samples. The first 15,120 of X_first20k are the balanced sample of
    the data's original study, 2,160 of each class. Rare classes are therefore more frequent than in
    the paper's random split of all samples, and the paper's figures are of a different problem.
    Numeric columns are standardised by the training samples' means and deviations.
    """
    X, y = (
        np.concatenate([read_arrays(path, f"{a}_{p}")[0][skip:] for p, skip in COVERTYPE_PARTS])
        for a in "Xy"
    )
    order = np.random.RandomState(context.seed).permutation(len(y))
    order = order[:COVERTYPE_QUICK_ROWS] if context.quick else order
    n_train = len(order) - round(COVERTYPE_TEST_SHARE * len(order))
    numeric = X[order[:n_train], :N_NUMERIC].astype(np.float64)
    mean, deviation = numeric.mean(axis=0), numeric.std(axis=0)

    def part(chosen):
        rows = X[chosen].astype(np.float32)
        rows[:, :N_NUMERIC] = (rows[:, :N_NUMERIC] - mean) / deviation
        return Rows(rows, y[chosen].astype(np.int64))

    return Data(part(order[:n_train]), lambda: part(order[n_train:]))


def load_speech(path, context):
    """Return frames of four speakers for training, one for choices and one for testing."""
    arrays = dict(zip(FSDD_ARRAYS, read_arrays(path, *FSDD_ARRAYS), strict=True))
    X, y, speaker = fsdd_frames(_fewer(arrays) if context.quick else arrays)
    development, test = speaker == DEVELOPMENT_SPEAKER, speaker == TEST_SPEAKER
    training = ~(development | test)
    rows = Rows(X, y)
    return Data(rows[training], lambda: rows[test], rows[development])


def _fewer(arrays):
    """Return the arrays of every sixth recording, end to end."""
    kept = np.split(arrays["audio"], arrays["offsets"])[1:-1:SPEECH_QUICK_EVERY]
    arrays |= {name: arrays[name][::SPEECH_QUICK_EVERY] for name in ("digit", "speaker")}
    return arrays | {"audio": np.concatenate(kept), "offsets": np.cumsum([0, *map(len, kept)])}


def load_official(path, context):
    """Return an official split: X and y for training, X_test and y_test for testing."""
    return _data(read_rows(path, "X", "y"), read_rows(path, "X_test", "y_test"), context)


def load_half(path, context, *, end="", skip=0, unit=1):
    """Return a stratified random half for training, of the arrays X and y with this ending."""
    rows = read_rows(path, f"X{end}", f"y{end}")
    rows = Rows(rows.X / np.float32(unit), rows.y)[np.arange(skip, len(rows.y))]
    splitter = StratifiedShuffleSplit(1, test_size=TEST_SHARE, random_state=context.seed)
    train, test = next(splitter.split(rows.y[:, None], rows.y))
    return _data(rows[train], rows[test], context)


def load_ocr(path, context):
    """Return the official folds: the first for training, all others for testing."""
    rows = read_rows(path, "X", "y")
    training = np.isin(read_arrays(path, "fold")[0], OCR_TRAINING_FOLDS)
    return _data(rows[training], rows[~training], context)


load_opencv = partial(load_half, unit=255)
load_cover = partial(load_half, end="_random50k", skip=N_REPEATED)


def _data(train, test, context):
    """Return both parts; a quick run limits their samples."""
    limit = DEFAULTS_QUICK_ROWS if context.quick else None
    kept = subsample(test, limit, context.seed)
    return Data(subsample(train, limit, context.seed), lambda: kept)


# ---- reports -------------------------------------------------------------------------------------

SECONDS = ("choose_seconds", "train_seconds", "test_seconds")
SHOWN = (
    *("method", "paper_error_percent", "error", "error_deviation"),
    *("paper_cross_entropy", "cross_entropy", "cross_entropy_deviation"),
    *("n_train", "n_test", "directions", *SECONDS, "peak_bytes"),
)


def tell(run):
    """Yield the split, a table and the chosen hyperparameters of each problem with outcomes."""
    for problem in run.protocol.problems:
        if done := run.done(problem):
            yield f"\n{problem.title}: {problem.split}"
            yield frame_of(_lines(problem, run), *SHOWN)
            for outcome in (one for one in done.values() if one.n_candidates > 1):
                pairs = ", ".join(f"{name} {value}" for name, value in outcome.parameters.items())
                yield f"{outcome.method}: {pairs}; chosen out of {outcome.n_candidates}"


def lines(run):
    """Return a line for each method that was run, and for the members of an ensemble."""
    found = (line for problem in run.protocol.problems for line in _lines(problem, run))
    return [line for line in found if "problem" in line]


def _lines(problem, run):
    """Yield a line for each method that was run or is in the paper; an ensemble's members first."""
    done = run.done(problem)
    for method in problem.methods:
        outcome = done.get(method.name)
        if outcome is None:
            if method.paper:
                yield _quoted(method.name, method.paper)
            continue
        if outcome.members:
            yield _line(*method.members, outcome, outcome.members, run.context)
        scores = [outcome.scores] if outcome.scores else []
        yield _line(method.name, method.paper, outcome, scores, run.context)
    yield from (_quoted(*row) for row in problem.quoted.items())


def _quoted(name, paper):
    return {
        "method": name,
        "paper_error_percent": paper.get("error", ""),
        "paper_cross_entropy": paper.get("cross entropy", ""),
    }


def _line(name, paper, outcome, scores, context):
    entropies = [one.cross_entropy for one in scores if one.cross_entropy is not None]
    return {
        **picked(outcome, "problem"),
        **_quoted(name, paper),
        **mean_fields("error", [one.error for one in scores]),
        **mean_fields("cross_entropy", entropies),
        "runs": len(scores),
        **picked(outcome, "n_train", "n_test"),
        "directions": outcome.directions or "",
        "candidates": outcome.n_candidates,
        **{field: round(value, 3) for field, value in picked(outcome, *SECONDS).items()},
        **picked(outcome, "peak_bytes", "failure"),
        "parameters": json.dumps(outcome.parameters, default=str),
        **picked(context, *HOW),
    }


# ---- protocols -----------------------------------------------------------------------------------


def _printed(name):
    """Return the method's name and printed figures from the name 'table, method'."""
    return name.partition(", ")[2], figures("gem").get(name, {})


def _method(entry):
    """Return a method from its description in the file."""
    given = {name: value for name, value in entry.items() if name != "why"}
    given["build"] = getattr(choosing, entry["build"])
    given["paper"] = _printed(entry.get("paper", ""))[1]
    if "members" in entry:
        given["members"] = _printed(entry["members"])
    fixed = entry.get("fixed", {}).items()
    given["fixed"] = {name: tuple(v) if isinstance(v, list) else v for name, v in fixed}
    return Method(**given)


def _problem(entry, methods):
    given = {name: value for name, value in entry.items() if name != "why"}
    given["load"] = globals()[entry["load"]]
    given["methods"] = tuple(map(_method, entry.get("methods", methods)))
    given["quoted"] = dict(map(_printed, entry.get("quoted", ())))
    return Problem(**given)


def _protocols():
    described = json.loads(Path(__file__).with_suffix(".json").read_text(encoding="utf-8"))
    methods = described.pop("methods of defaults")
    for name, entries in described.items():
        problems = tuple(_problem(entry, methods) for entry in entries)
        yield name, Protocol(name, problems, lines, tell)


PROTOCOLS = dict(_protocols())
