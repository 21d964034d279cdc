"""Tables 2 to 4 of the GEM paper, and defaults beside defaults on data that it does not use.

Problems, methods and their hyperparameters are in gem.json, the paper's figures in figures/gem.csv.
This module has the splits, and tables of errors beside the paper's.
"""

from __future__ import annotations

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
from bench.papers.tables import HOW, mean_and_deviation, mean_fields, new_table, picked

MNIST_QUICK_ROWS = 6_000
COVERTYPE_QUICK_ROWS = 12_000
COVERTYPE_TEST_SHARE = 0.1
N_NUMERIC = 10  # columns before the indicators of wilderness and soil
N_REPEATED = 1_720  # first samples of X_random50k, which X_first20k also has
COVERTYPE_PARTS = (("extra", 0), ("random50k", N_REPEATED), ("first20k", 0))
DEVELOPMENT_SPEAKER, TEST_SPEAKER = "theo", "yweweler"  # the last two by name, unseen when chosen
N_STATES = 3
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

    # Digits of a writer follow each other (3.7% have the nearest digit of their class within 100
    # samples, eleven times chance), and the test set is of other writers.
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
    frames = fsdd_frames(_fewer(path) if context.quick else path, N_STATES)

    def spoken(*names):
        chosen = frames.spoken_by(*names)
        return Rows(frames.X[chosen], frames.y[chosen])

    others = [n for n in frames.speaker_names if n not in (DEVELOPMENT_SPEAKER, TEST_SPEAKER)]
    return Data(spoken(*others), lambda: spoken(TEST_SPEAKER), spoken(DEVELOPMENT_SPEAKER))


def _fewer(path):
    """Return the arrays of every sixth recording, end to end."""
    arrays = dict(zip(FSDD_ARRAYS, read_arrays(path, *FSDD_ARRAYS), strict=True))
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
FIELDS = (
    *("problem", "method", "paper_error_percent", "paper_cross_entropy"),
    *("error", "error_deviation", "cross_entropy", "cross_entropy_deviation", "runs"),
    *("n_train", "n_test", "directions", "candidates", *SECONDS, "peak_bytes"),
    *("parameters", "failure", *HOW),
)


def tell(run):
    """Yield the split, sizes, table and chosen hyperparameters of each problem with outcomes."""
    for problem in run.protocol.problems:
        if done := run.done(problem):
            yield ""
            yield problem.title, "bold"
            yield from problem.split.splitlines()
            for train, test in sorted({(o.n_train, o.n_test) for o in done.values() if o.scores}):
                yield f"{train:,} rows for training, {test:,} for testing"
            yield _comparison(problem, done)
            for outcome in (one for one in done.values() if one.n_candidates > 1):
                pairs = ", ".join(f"{name} {value}" for name, value in outcome.parameters.items())
                yield f"{outcome.method}: {pairs}; chosen out of {outcome.n_candidates}", "dim"


def _rows(problem, done):
    """Yield name, paper's figures, outcome and scores of each row; an ensemble's members first."""
    for method in problem.methods:
        outcome = done.get(method.name)
        if outcome is None:
            if method.paper:
                yield method.name, method.paper, None, []
            continue
        if outcome.members:
            name, paper = method.members
            yield f"{name}, mean of {len(outcome.members)}", paper, outcome, outcome.members
        yield method.name, method.paper, outcome, [outcome.scores] if outcome.scores else []
    for name, paper in problem.quoted.items():
        yield name, paper, None, []


def _comparison(problem, done):
    """Return the table of one problem: a row for each method that was run or quoted."""
    rows = list(_rows(problem, done))
    cells = [_cells(*row, entropy=problem.objective == "cross_entropy") for row in rows]
    headings = dict.fromkeys(heading for row in cells for heading in row)
    shown = [heading for heading in headings if any(row.get(heading) for row in cells)]
    table = new_table(shown)
    for (_, _, outcome, _), row in zip(rows, cells, strict=True):
        style = "dim" if outcome is None else "red" if outcome.failure else None
        table.add_row(*(row.get(heading, "") for heading in shown), style=style)
    return table


def _cells(name, paper, outcome, scores, *, entropy):
    """Return a row's text by heading; a heading without any text is not shown."""
    failed = outcome is not None and outcome.failure
    errors = mean_and_deviation([100 * one.error for one in scores], 2)
    cells = {
        "\nmethod": name,
        "paper\n%": paper.get("error", ""),
        "error\n%": "failed" if failed else errors,
        "paper\nCE": paper.get("cross entropy", "") if entropy else "",
        "\nCE": mean_and_deviation(_entropies(scores), 3) if entropy else "",
    }
    if outcome is None or outcome.scores is None or name != outcome.method:
        return cells
    return cells | {
        "\nerrors": "" if entropy else f"{round(scores[0].error * outcome.n_test):,}",
        "direc-\ntions": f"{outcome.directions:,}" if outcome.directions else "",
        "choose\ns": f"{outcome.choose_seconds:.1f}" if outcome.n_candidates > 1 else "",
        "train\ns": f"{outcome.train_seconds:.1f}",
        "test\ns": f"{outcome.test_seconds:.1f}",
        "peak\nMB": f"{outcome.peak_bytes / 2**20:,.0f}",
    }


def _entropies(scores):
    return [one.cross_entropy for one in scores if one.cross_entropy is not None]


def lines(run):
    """Return a line for each measured row of the tables."""
    found = [
        {
            "method": name,
            "paper_error_percent": paper.get("error", ""),
            "paper_cross_entropy": paper.get("cross entropy", ""),
            "runs": len(scores),
            "candidates": outcome.n_candidates,
            "parameters": json.dumps(outcome.parameters, default=str),
            **mean_fields("error", [one.error for one in scores]),
            **mean_fields("cross_entropy", _entropies(scores)),
            **{field: f"{value:.3f}" for field, value in picked(outcome, *SECONDS).items()},
            **picked(outcome, "problem", "n_train", "n_test", "directions", "peak_bytes"),
            "failure": outcome.failure,
            **picked(run.context, *HOW),
        }
        for problem in run.protocol.problems
        for name, paper, outcome, scores in _rows(problem, run.done(problem))
        if outcome is not None
    ]
    return {"": (FIELDS, found)}


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
        yield name, Protocol(name, problems, tell, lines)


PROTOCOLS = dict(_protocols())
