"""Tables 1, 3 and 4 and Figures 2 and 3 of the paper on max-margin data shifting, measured."""

from __future__ import annotations

import warnings
from dataclasses import dataclass, field
from functools import lru_cache, partial
from itertools import product
from typing import NamedTuple

import numpy as np
from sklearn.decomposition import PCA
from sklearn.exceptions import ConvergenceWarning
from sklearn.model_selection import StratifiedKFold
from sklearn.preprocessing import normalize

from bench.papers import mmds_data, pictures
from bench.papers.figures import figures
from bench.papers.mmds_data import (
    Shifter,
    Split,
    centred,
    chosen_move,
    feature_accuracy,
    few_of_each,
    held_out,
    scores_of,
)
from bench.papers.mmds_supervised import KINDS, WEIGHTS
from bench.papers.protocol import (
    N_SPLITS,
    Method,
    Outcome,
    Problem,
    Protocol,
    Rows,
    read_rows,
    seeds,
)
from bench.papers.tables import HOW, frame_of, mean_fields, picked

FIT_C = (1.0, 0.1)  # candidates for C of the SVM that moves samples; held-out samples choose
CURVE_C = 1.0  # C of the SVM that moves the samples of Figure 3
SCALES = (0.3, 0.6, 1.0, 1.5, 2.0, 3.0)  # candidates for relative moves; held-out samples choose
QUICK_SCALES = (0.6, 1.5)
CURVE_SCALES = (0.0, 0.1, 0.2, 0.3, 0.5, 0.7, 1.0, 1.5, 2.0, 3.0, 5.0, 8.0)  # Figure 3
# gamma of exp(-gamma |x - x'|^2), in multiples of the inverse of the median squared distance.
KERNEL_WIDTHS = (0.25, 0.5, 1.0, 2.0)  # candidates; held-out samples choose for each extractor

EMBEDDED = (1, 3, 5, 8)  # digits of Figure 2
EMBEDDING_SCALES = {"PCA": 0.0, "PCA of moved rows": 1.5}


class Case(NamedTuple):
    """A cell of a table: table, data, extractor, dimensions, and the paper's two accuracies."""

    table: str
    data: str
    extractor: str
    n_components: int
    paper: tuple[float | None, float | None] = (None, None)


@dataclass(frozen=True)
class Experiment(Method):
    """The method of a case: `build` takes a job and an outcome to fill in."""

    case: Case | None = None


@dataclass
class Shifted(Outcome):
    """Results of a case.

    `splits` has the accuracies in percent of features of the original and of the moved samples, and
    the scale of the move; `curve` has scales, accuracies and reconstruction errors.
    """

    case: Case | None = None
    curve: list[tuple[float, float, float]] = field(default_factory=list)


# ---- Tables 3 and 4, Figure 3 --------------------------------------------------------------------


class Features:
    """Samples of a data set, or their kernel features of several widths; experiments share them."""

    def __init__(self, data, kernels, folder, context, seed):
        split = mmds_data.load(data, folder, quick=context.quick, seed=seed)
        self.quick, self.threads = context.quick, context.threads
        self._test = split.test
        self._kernels = [None]
        if kernels:
            self._kernels = [
                mmds_data.kernel(data, split.train.X, width, quick=context.quick)
                for width in KERNEL_WIDTHS
            ]
        self._trains = [_mapped(kernel, split.train) for kernel in self._kernels]
        self._parts = {}

    def parts(self, width, C):
        """Return shifters of parts of the training samples for this C, and the held-out samples."""
        if (width, C) not in self._parts:
            self._parts[width, C] = held_out(self._trains[width], C, self.threads)
        return self._parts[width, C]

    def _choose_extractor(self, case):
        """Return an extractor, the index of its kernel's width, and the test samples.

        The width is the best on held-out samples for the extractor of the original samples.
        """
        make = partial(mmds_data.extractor, *case[2:4], quick=self.quick)
        scores = [
            scores_of(self.parts(width, FIT_C[0]), make, 0.0).mean() if len(self._trains) > 1 else 0
            for width in range(len(self._trains))
        ]
        width = int(np.argmax(scores))
        return make, width, _mapped(self._kernels[width], self._test)

    def measure(self, case):
        """Return accuracies without and with moves, and the scale that held-out samples choose."""
        make, width, test = self._choose_extractor(case)
        scales = QUICK_SCALES if self.quick else SCALES
        C, scale = chosen_move({C: self.parts(width, C) for C in FIT_C}, make, scales)
        shifter = Shifter(self._trains[width], C, self.threads)
        original = shifter.accuracy(make(), 0.0, test)
        return original, shifter.accuracy(make(), scale, test) if scale else original, scale

    def curve(self, outcome):
        """Measure accuracy and reconstruction error of test samples by scale, for Figure 3."""
        make, width, test = self._choose_extractor(outcome.case)
        shifter = Shifter(self._trains[width], CURVE_C, self.threads)
        for scale in CURVE_SCALES:
            learnt = make()
            accuracy = shifter.accuracy(learnt, scale, test)
            rebuilt = learnt.inverse_transform(learnt.transform(test.X))
            error = float(((rebuilt - test.X) ** 2).sum(axis=1).mean())
            outcome.curve.append((scale, accuracy, error))
        scale, best, _ = max(outcome.curve, key=lambda point: point[1])
        outcome.splits = [(outcome.curve[0][1], best, scale)]


def _mapped(kernel, rows):
    """Return a kernel's features of samples, or the samples without a kernel."""
    return rows if kernel is None else Rows(kernel.transform(rows.X).astype(np.float32), rows.y)


shared = lru_cache(maxsize=N_SPLITS)(Features)  # of all splits of a data set


def by_features(job, outcome):
    """Measure a cell of Table 3 or 4, over random splits."""
    _, data, extractor, *_ = outcome.case
    given = data, extractor in BY_KERNELS, job.folder, job.context
    outcome.splits = [shared(*given, seed).measure(outcome.case) for seed in seeds(job.context)]


def by_curve(job, outcome):
    """Measure a panel of Figure 3."""
    _, data, extractor, *_ = outcome.case
    shared(data, extractor in BY_KERNELS, job.folder, job.context, job.context.seed).curve(outcome)


# ---- Table 1: few rows of each of many people ----------------------------------------------------

FACE_COMPONENTS = 10
FACE_C = (10.0, 1000.0)
FACE_SCALES = (0.3, 0.6, 1.0, 2.0, 4.0)
MAX_FOLDS = 5


def pixels(X):
    """Scale samples to a mean squared length of 1."""
    return X / np.sqrt((X.astype(np.float64) ** 2).sum(axis=1).mean()).astype(np.float32)


def by_faces(job, outcome, *, one_split, per_class):
    """Measure ten components of original and of moved samples, over random splits.

    Folds of the training samples choose the preparation of samples and the parameters of
    `one_split`. There are up to five folds, and no more than a class has samples.
    """
    rows = read_rows(job.folder / job.problem.file, "X", "y")
    # Samples of length 1 do not differ by the strength of the light.
    kinds = [Rows(prepared(rows.X), rows.y) for prepared in (pixels, normalize)]
    for seed in seeds(job.context):
        splits = [few_of_each(samples, per_class, seed) for samples in kinds]
        outcome.splits.append(one_split(splits, seed, job.context.threads))


def supervised_split(splits, seed, threads, *, kind):
    """Return the accuracy of a supervised reduction, which moves no samples.

    Folds choose the preparation and the weight of the labels.
    """

    def scores(split):
        for weight in WEIGHTS:
            yield (weight,), _by(kind, weight, split, threads)

    means = _means(splits, seed, scores)
    place, weight = max(means, key=means.get)
    right = _by(kind, weight, splits[place], threads)
    return right, right, 0.0


def _by(kind, weight, split, threads):
    train, test = centred(split)
    codes = np.unique(train.y, return_inverse=True)[1]
    if kind == "LDA" and len(train) == codes.max() + 1:
        return 0.0  # nothing varies within a class
    model = KINDS[kind](FACE_COMPONENTS, weight).fit(train.X, codes)
    return feature_accuracy(model.transform, train, test, threads)


def pca_split(splits, seed, threads):
    """Return accuracies of PCA of original and of moved samples, and the scale of the moves."""

    def scores(split):
        train, held = centred(split)
        for number, C in enumerate(FACE_C):
            shifter = Shifter(train, C, threads)
            still = () if number else (0.0,)  # C has no effect on samples that stay
            for scale in (*still, *FACE_SCALES):
                yield (C, scale), shifter.accuracy(_ten_components(), scale, held)

    means = _means(splits, seed, scores)
    accuracies = []
    for moves in (False, True):
        choices = (choice for choice in means if (choice[2] > 0) == moves)
        # The best mean; of equal means, the smallest move.
        place, C, scale = max(choices, key=lambda choice: (means[choice], -choice[2]))
        train, test = centred(splits[place])
        accuracies.append(Shifter(train, C, threads).accuracy(_ten_components(), scale, test))
    return *accuracies, scale


def _means(splits, seed, scores):
    """Return mean accuracies over folds by the index of the preparation and the parameters."""
    found = {}
    for place, split in enumerate(splits):
        for part in _folds(split.train, seed):
            for choice, score in scores(part):
                found.setdefault((place, *choice), []).append(score)
    return {choice: float(np.mean(values)) for choice, values in found.items()}


def _folds(rows, seed):
    fewest = int(np.unique(rows.y, return_counts=True)[1].min())
    folds = StratifiedKFold(min(max(fewest, 2), MAX_FOLDS), shuffle=True, random_state=seed)
    for fit, held in folds.split(rows.y[:, None], rows.y):
        yield Split(rows[fit], rows[held])


def _ten_components():
    return mmds_data.extractor("PCA", FACE_COMPONENTS, quick=False)


# ---- problems ------------------------------------------------------------------------------------

BY_KERNELS = ("KPCA", "ICA", "SPCA", "KM", "FA", "NMF")  # on random Fourier features of rows
# Data of Table 1: file, and training samples of each class.
FACES = {
    "Yale": ("faces_yale.npz", 3),
    "Yale B": ("faces_yaleb.npz", 5),
    "ORL": ("faces_orl.npz", 2),
}


def _cases(table, file):
    """Yield the cases of a table; a line's name has data, and a dimension unless there are 5."""
    for name, row in figures(file).items():
        data, _, dimension = name.partition(" ")
        for extractor in dict.fromkeys(column.split()[0] for column in row):
            yield Case(table, data, extractor, int(dimension or 5), _paper(row, extractor))


def _paper(row, extractor):
    """Return the printed accuracies of an extractor: of original and of moved samples."""
    cells = (row.get(f"{extractor} {kind}") for kind in ("rows", "moved"))
    return tuple(None if cell is None else float(cell) for cell in cells)


CASES = (*_cases("Table 4", "mmds-4"), *_cases("Table 3", "mmds-3"))
CURVES = {
    data: [Case("Figure 3", data, extractor, 10) for extractor in ("PCA", "AE", "KPCA")]
    for data in mmds_data.FILES
}


def study(job, outcome):
    """Fill in an outcome by its method."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        # scikit-learn warns that labels of many people with two faces each look like a regression.
        warnings.filterwarnings("ignore", "The number of unique classes", UserWarning)
        outcome.case = job.method.case
        job.method.build(job, outcome)


def _problem(table, data, file, methods):
    name = f"{table}, {data}"
    return Problem(
        name, name, "", file, {}, mmds_data.load, tuple(methods), study=study, outcome=Shifted
    )


def _faces():
    """Yield Table 1 for faces; the paper's gene expressions are not available."""
    kinds = {"PCA": pca_split, **{kind: partial(supervised_split, kind=kind) for kind in KINDS}}
    for data, (file, count) in FACES.items():
        printed = figures("mmds-1")[data]
        methods = []
        for kind, split in kinds.items():
            case = Case("Table 1", data, kind, FACE_COMPONENTS, _paper(printed, kind))
            build = partial(by_faces, one_split=split, per_class=count)
            methods.append(Experiment(kind, build, case=case))
        yield _problem("Table 1", data, file, methods)


def _shifts():
    """Yield Tables 4 and 3 and Figure 3; problems that share features follow each other."""
    for (data, file), kernels, table in product(
        mmds_data.FILES.items(), (True, False), ("Table 4", "Table 3")
    ):
        methods = [
            Experiment(f"{c.extractor} {c.n_components}", by_features, case=c)
            for c in CASES
            if c[:2] == (table, data) and (c.extractor in BY_KERNELS) == kernels
        ]
        if methods:
            yield _problem(table, data, file, methods)
    for data, cases in CURVES.items():
        curves = [Experiment(case.extractor, by_curve, case=case) for case in cases]
        yield _problem("Figure 3", data, mmds_data.FILES[data], curves)


# ---- reports -------------------------------------------------------------------------------------

TITLES = {
    "Table 1": "Table 1: PCA of faces, few rows per class",
    "Table 4": "Table 4: three extractors in 5, 10 and 20 dimensions",
    "Table 3": "Table 3: five extractors of kernel features, 5 dimensions",
    "Figure 3": "Figure 3: best of the scales, on the test rows",
}
SHOWN = (
    *("data", "extractor", "n_components", "paper_original", "original", "original_deviation"),
    *("paper_shifted", "shifted", "shifted_deviation", "gain", "gain_error", "scale", "splits"),
)


def tell(run):
    """Yield a table for each table of the paper."""
    found = lines(run)
    for name, title in TITLES.items():
        if done := [line for line in found if line["table"] == name]:
            yield f"\n{title}"
            yield frame_of(done, *SHOWN)


def lines(run):
    """Return a line for each outcome."""
    return [_line(outcome, run.context) for outcome in run.outcomes]


def _line(outcome, context):
    case, n = outcome.case, len(outcome.splits)
    line = {
        **picked(case, "table", "data", "extractor", "n_components"),
        **dict(zip(("paper_original", "paper_shifted"), case.paper, strict=True)),
        **picked(outcome, "curve", "failure"),
        **picked(context, *HOW),
    }
    if not n:
        return line
    original, shifted, scales = np.transpose(outcome.splits)
    gains = mean_fields("gain", shifted - original)
    if n > 1:
        gains["gain_error"] = gains["gain_deviation"] / np.sqrt(n)
    measured = mean_fields("original", original) | mean_fields("shifted", shifted) | gains
    return line | measured | {"scale": np.median(scales), "splits": n}


def draw(run):
    """Draw test digits in two components of original and moved samples, and accuracies by scale."""
    if any("Digits" in outcome.problem for outcome in run.outcomes):
        split = mmds_data.load("Digits", run.folder, quick=run.context.quick)
        train, test = (part[np.isin(part.y, EMBEDDED)] for part in (split.train, split.test))
        shifter = Shifter(train, CURVE_C, run.context.threads)
        panels = {
            name: PCA(2, random_state=0).fit(shifter.moved(scale)).transform(test.X)
            for name, scale in EMBEDDING_SCALES.items()
        }
        yield "mmds_embeddings.png", pictures.draw_points(panels, test.y)
    curves = {f"{o.case.extractor}, {o.case.data}": o.curve for o in run.outcomes if o.curve}
    if curves:
        yield "mmds_scales.png", pictures.draw_scales(curves)


PROTOCOLS = {
    "mmds": Protocol(
        "mmds",
        (*_faces(), *_shifts()),
        lines,
        tell,
        draw,
        alone=False,
    )
}
