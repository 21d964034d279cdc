"""Tables 1, 3 and 4 and Figures 2 and 3 of the paper on max-margin data shifting, measured."""

from __future__ import annotations

import warnings
from dataclasses import dataclass, field
from functools import lru_cache, partial
from itertools import product
from typing import NamedTuple

import numpy as np
from sklearn.decomposition import PCA
from sklearn.discriminant_analysis import LinearDiscriminantAnalysis
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
    few_of_each,
    held_out,
    read_accuracy,
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
from bench.papers.tables import new_table, picked

FIT_C = (1.0, 0.1)  # candidates for C of the SVM that moves samples; held-out samples choose
CURVE_C = 1.0  # of Figure 3's moves
SCALES = (0.3, 0.6, 1.0, 1.5, 2.0, 3.0)  # candidates for relative moves; held-out samples choose
QUICK_SCALES = (0.6, 1.5)
CURVE_SCALES = (0.0, 0.1, 0.2, 0.3, 0.5, 0.7, 1.0, 1.5, 2.0, 3.0, 5.0, 8.0)  # Figure 3
# Of exp(-gamma |x - x'|^2), over the inverse of the median squared distance.
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
    """The method of a case: `build` takes a job, an outcome to fill in, and a progress function."""

    case: Case | None = None


@dataclass
class Shifted(Outcome):
    """Accuracies in percent of features of the original and of the moved samples."""

    case: Case | None = None
    original: float = np.nan
    shifted: float = np.nan
    scale: float = np.nan
    deviation: float | None = None
    original_deviation: float | None = None
    gain_error: float | None = None
    n_splits: int = 1
    curve: list[tuple[float, float, float]] = field(default_factory=list)

    def over(self, found):
        """Set means and deviations of the splits' accuracies without and with moves, and scales."""
        found = np.array(found)
        self.n_splits = len(found)
        self.original, self.shifted = np.mean(found[:, :2], axis=0).tolist()
        self.scale = float(np.median(found[:, 2]))
        if len(found) > 1:
            spread = np.std(found[:, :2], axis=0, ddof=1)
            self.original_deviation, self.deviation = spread.tolist()
            gains = found[:, 1] - found[:, 0]
            self.gain_error = float(np.std(gains, ddof=1) / np.sqrt(len(gains)))


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
        outcome.original = outcome.curve[0][1]
        outcome.scale, outcome.shifted, _ = max(outcome.curve, key=lambda point: point[1])


def _mapped(kernel, rows):
    """Return a kernel's features of samples, or the samples without a kernel."""
    return rows if kernel is None else Rows(kernel.transform(rows.X).astype(np.float32), rows.y)


shared = lru_cache(maxsize=N_SPLITS)(Features)  # of all splits of a data set


def by_features(job, outcome, step):
    """Measure a cell of Table 3 or 4, over random splits."""
    _, data, extractor, *_ = outcome.case
    given = data, extractor in BY_KERNELS, job.folder, job.context
    found = [shared(*given, seed).measure(outcome.case) for seed in seeds(job.context, step)]
    outcome.over(found)


def by_curve(job, outcome, step):
    """Measure a panel of Figure 3."""
    _, data, extractor, *_ = outcome.case
    shared(data, extractor in BY_KERNELS, job.folder, job.context, job.context.seed).curve(outcome)


# ---- Table 1: few rows of each of many people ----------------------------------------------------

FACE_COMPONENTS = 10
FACE_C = (10.0, 1000.0)
FACE_SCALES = (0.3, 0.6, 1.0, 2.0, 4.0)
MAX_FOLDS = 5


class Choice(NamedTuple):
    """Index of the preparation of samples, the SVM's C, and the scale of the moves."""

    kind: int
    C: float
    scale: float


def columns(X):
    """Standardise columns, and scale samples to a mean length of 1."""
    deviation = X.std(axis=0)
    scaled = (X - X.mean(axis=0)) / np.where(deviation > 0, deviation, 1)
    return scaled / np.sqrt(np.float32(X.shape[1]))


def pixels(X):
    """Scale samples to a mean squared length of 1."""
    return X / np.sqrt((X.astype(np.float64) ** 2).sum(axis=1).mean()).astype(np.float32)


def by_faces(job, outcome, step, *, one_split, arrays, per_class, ways):
    """Measure ten components of original and of moved samples, over random splits.

    Folds of the training samples choose the preparation of samples and the parameters of
    `one_split`. There are up to five folds, and no more than a class has samples.
    """
    rows = read_rows(job.folder / job.problem.file, *arrays)
    kinds = [Rows(way(rows.X), rows.y) for way in ways]
    found = []
    for seed in seeds(job.context, step):
        splits = [few_of_each(samples, per_class, seed) for samples in kinds]
        found.append(one_split(splits, seed, job.context.threads))
    outcome.over(found)


def lda_split(splits, seed, threads):
    """Return the accuracy of linear discriminant analysis, which moves no samples.

    The first preparation is used if a fold has a single sample of each class.
    """
    means = [np.mean([_by_lda(p, threads) for p in _folds(s.train, seed)]) for s in splits]
    right = _by_lda(splits[int(np.argmax(np.nan_to_num(means)))], threads)
    return right, right, 0.0


def _by_lda(split, threads):
    train, test = centred(split)
    if len(train) == len(np.unique(train.y)):
        return np.nan  # nothing varies within a class
    count = min(FACE_COMPONENTS, len(np.unique(train.y)) - 1)
    lda = LinearDiscriminantAnalysis(n_components=count).fit(train.X, train.y)
    return read_accuracy(lda.transform, train, test, threads)


def supervised_split(splits, seed, threads, *, kind):
    """Return the accuracy of a supervised reduction; folds choose preparation and weight."""
    means = {}
    for place, split in enumerate(splits):
        for part in _folds(split.train, seed):
            for weight in WEIGHTS:
                means.setdefault((place, weight), []).append(_by(kind, weight, part, threads))
    place, weight = max(means, key=lambda choice: np.mean(means[choice]))
    right = _by(kind, weight, splits[place], threads)
    return right, right, 0.0


def _by(kind, weight, split, threads):
    train, test = centred(split)
    codes = np.unique(train.y, return_inverse=True)[1]
    model = KINDS[kind](FACE_COMPONENTS, weight).fit(train.X, codes)
    return read_accuracy(model.transform, train, test, threads)


def pca_split(splits, seed, threads):
    """Return accuracies of PCA of original and of moved samples, and the scale of the moves."""
    scores = {}
    for kind, split in enumerate(splits):
        for part in _folds(split.train, seed):
            for choice, score in _scores(kind, part, threads):
                scores.setdefault(choice, []).append(score)
    # The best mean; of equal means, the smallest move.
    means = {choice: (float(np.mean(s)), -choice.scale) for choice, s in scores.items()}
    still = max((choice for choice in means if choice.scale == 0), key=means.__getitem__)
    moved = max((choice for choice in means if choice.scale > 0), key=means.__getitem__)
    accuracies = []
    for choice in (still, moved):
        train, test = centred(splits[choice.kind])
        shifter = Shifter(train, choice.C, threads)
        accuracies.append(shifter.accuracy(_ten(), choice.scale, test))
    return *accuracies, moved.scale


def _scores(kind, part, threads):
    train, held = centred(part)
    for number, C in enumerate(FACE_C):
        shifter = Shifter(train, C, threads)
        still = () if number else (0.0,)  # C has no effect on samples that stay
        for scale in (*still, *FACE_SCALES):
            yield Choice(kind, C, scale), shifter.accuracy(_ten(), scale, held)


def _folds(rows, seed):
    fewest = int(np.unique(rows.y, return_counts=True)[1].min())
    folds = StratifiedKFold(min(max(fewest, 2), MAX_FOLDS), shuffle=True, random_state=seed)
    for fit, held in folds.split(rows.y[:, None], rows.y):
        yield Split(rows[fit], rows[held])


def _ten():
    return mmds_data.extractor("PCA", FACE_COMPONENTS, quick=False)


# ---- problems ------------------------------------------------------------------------------------

BY_KERNELS = ("KPCA", "ICA", "SPCA", "KM", "FA", "NMF")  # on random Fourier features of rows
# Data of Table 1: file, arrays, training samples of each class, and preparations of samples. Faces
# are normalised to length 1, because lights differ. Stand-ins replace the paper's gene expressions,
# such as 11 Tumors, which are not at hand.
FACES = {
    "Yale": ("faces_yale.npz", ("X", "y"), 3, (pixels, normalize)),
    "Yale B": ("faces_yaleb.npz", ("X", "y"), 5, (pixels, normalize)),
    "ORL": ("faces_orl.npz", ("X", "y"), 2, (pixels, normalize)),
    **{
        f"{name} (stand-in)": ("microarray_standins.npz", (f"X_{name}", f"y_{name}"), 5, (columns,))
        for name in ("srbct", "tox171", "glioma")
    },
}


def _cases(table, file):
    """Read pairs of accuracies; a line's name has its data and, unless it is 5, its dimension."""
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


def study(job, outcome, step):
    """Fill in an outcome by its method."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        # scikit-learn warns that labels of many people with two faces each look like a regression.
        warnings.filterwarnings("ignore", "The number of unique classes", UserWarning)
        outcome.case = job.method.case
        job.method.build(job, outcome, step)


def _problem(table, data, file, methods):
    name = f"{table}, {data}"
    return Problem(
        name, name, "", file, {}, mmds_data.load, tuple(methods), study=study, outcome=Shifted
    )


def _faces():
    """Yield Table 1: faces, and gene expressions, for which the paper prints no figures."""
    for data, (file, arrays, count, ways) in FACES.items():
        printed = figures("mmds-1").get(data, {})
        given = {"arrays": arrays, "per_class": count, "ways": ways}
        methods = []
        kinds = {"PCA": pca_split, "LDA": lda_split}
        kinds |= {kind: partial(supervised_split, kind=kind) for kind in KINDS}
        for kind, split in list(kinds.items())[: None if printed else 1]:
            case = Case("Table 1", data, kind, FACE_COMPONENTS, _paper(printed, kind))
            methods.append(Experiment(kind, partial(by_faces, one_split=split, **given), case=case))
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
    "Table 1": "Table 1: PCA of faces and of gene expressions, few rows a class",
    "Table 4": "Table 4: three extractors in 5, 10 and 20 dimensions",
    "Table 3": "Table 3: five extractors of kernel features, 5 dimensions",
    "Figure 3": "Figure 3: best of the scales, on the test rows",
}
FIELDS = (
    *("table", "data", "extractor", "n_components", "original", "shifted", "scale"),
    *("paper_original", "paper_shifted", "original_deviation", "deviation", "gain_error"),
    *("n_splits", "curve", "quick", "failure"),
)


def tell(run):
    """Yield a table for each table of the paper."""
    for name, title in TITLES.items():
        done = [one for one in run.outcomes if one.case.table == name and not one.failure]
        if not done:
            continue
        numbers = ("paper %", "", "measured %", "", "gain ± error", "move", "splits")
        table = new_table(["data", "extractor", *numbers], names=2, title=title)
        for row in done:
            supervised = row.case.extractor in ("LDA", *KINDS)  # whose samples are not moved
            figures = [*row.case.paper, row.original, None if supervised else row.shifted]
            spreads = None, None, row.original_deviation, row.deviation
            told = [
                "" if value is None else f"{value:.1f}" + ("" if s is None else f" ± {s:.1f}")
                for value, s in zip(figures, spreads, strict=True)
            ]
            extractor = f"{row.case.extractor} {row.case.n_components}"
            gain = f"{row.shifted - row.original:+.1f}"
            gain += "" if row.gain_error is None else f" ± {row.gain_error:.1f}"
            told += ["", ""] if supervised else [gain, f"{row.scale:g}"]
            table.add_row(row.case.data, extractor, *told, f"{row.n_splits}")
        yield table


def lines(run):
    """Return a line for each outcome."""
    found = [
        {
            **dict(zip(FIELDS, one.case[:4], strict=False)),
            **dict(zip(("paper_original", "paper_shifted"), one.case.paper, strict=True)),
            **picked(one, "original", "shifted", "scale", "deviation", "original_deviation"),
            **picked(one, "gain_error", "n_splits", "curve", "failure"),
            "quick": run.context.quick,
        }
        for one in run.outcomes
    ]
    return {"": (FIELDS, found)}


def draw(run):
    """Draw test digits in two components of original and moved samples, and accuracies by scale."""
    if any(outcome.case.data == "Digits" for outcome in run.outcomes):
        split = mmds_data.load("Digits", run.folder, quick=run.context.quick)
        train, test = (part[np.isin(part.y, EMBEDDED)] for part in (split.train, split.test))
        shifter = Shifter(train, CURVE_C, run.context.threads)
        panels = {
            name: PCA(2, random_state=0).fit(shifter.moved(scale)).transform(test.X)
            for name, scale in EMBEDDING_SCALES.items()
        }
        yield "mmds_embeddings.png", pictures.draw_points(panels, test.y, "digit")
    curves = {f"{o.case.extractor}, {o.case.data}": o.curve for o in run.outcomes if o.curve}
    if curves:
        yield "mmds_scales.png", pictures.draw_scales(curves)


PROTOCOLS = {
    "mmds": Protocol(
        "mmds",
        (*_faces(), *_shifts()),
        tell,
        lines,
        draw,
        alone=False,
        joined=", ",
        parts="a table, data set or extractor",
    )
}
