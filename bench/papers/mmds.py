"""Tables 1, 3 and 4 and Figures 2 and 3 of the paper on max-margin data shifting, measured."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import lru_cache, partial
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from sklearn.decomposition import PCA
from sklearn.exceptions import ConvergenceWarning
from sklearn.model_selection import StratifiedKFold, StratifiedShuffleSplit

from bench.papers import mmds_data, pictures
from bench.papers.figures import figures
from bench.papers.mmds_data import Split
from bench.papers.protocol import (
    Context,
    Job,
    Method,
    Outcome,
    Problem,
    Protocol,
    Report,
    Rows,
    Step,
    read_rows,
)
from bench.papers.tables import new_table
from eigenfeat.maxmargin import MulticlassSVM

FIT_C = (1.0, 0.1)  # of the SVM that moves rows; chosen on held-out rows
CURVE_C, READ_C = 1.0, 1.0  # of Figure 3's moves, and of the SVM that reads the features
TOLERANCE, EPOCHS = 1e-2, 60  # of both: the paper, too, stops at a fixed number of iterations
SCALES = (0.3, 0.6, 1.0, 1.5, 2.0, 3.0)  # moves relative to rows; chosen on held-out rows
QUICK_SCALES = (0.6, 1.5)
CURVE_SCALES = (0.0, 0.1, 0.2, 0.3, 0.5, 0.7, 1.0, 1.5, 2.0, 3.0, 5.0, 8.0)  # Figure 3
HELD_OUT = 0.2
FEW_ROWS, SPLITS_OF_FEW = 1_000, 6  # below so many rows one held-out part would say too little
# Of exp(-gamma |x - x'|^2), over the inverse of the median squared distance.
KERNEL_WIDTHS = (0.25, 0.5, 1.0, 2.0)  # chosen on held-out rows for each extractor

FACE_SPLITS, QUICK_FACE_SPLITS = 10, 2
FACE_COMPONENTS = 10
FACE_C = (10.0, 1000.0)  # few rows of few differences
FACE_SCALES = (0.3, 0.6, 1.0, 2.0, 4.0)
MOST_FOLDS = 5

EMBEDDED = (1, 3, 5, 8)  # digits of Figure 2
EMBEDDING_SCALES = {"PCA": 0.0, "PCA of moved rows": 1.5}

Learn = Callable[[], Any]
Array = NDArray[np.float32]


class Case(NamedTuple):
    """What is measured: a table, data, an extractor, dimensions, and the paper's two figures."""

    table: str
    data: str
    extractor: str
    n_components: int
    paper: tuple[float, float] | tuple[None, None] = (None, None)


NO_CASE = Case("", "", "", 0)


@dataclass(frozen=True)
class Experiment(Method):
    """A method of one case: `build` fills in an outcome, of a job's folder and context."""

    case: Case = NO_CASE


@dataclass
class Shifted(Outcome):
    """Accuracies in percent: of features of rows as they are, and of moved ones."""

    case: Case = NO_CASE
    original: float = np.nan
    shifted: float = np.nan
    scale: float = np.nan
    deviation: float | None = None
    curve: list[tuple[float, float, float]] = field(default_factory=list)


# ---- how rows are moved and read -----------------------------------------------------------------


class Shifter:
    """Rows, and how an SVM moves them: fitted once, for every extractor and scale."""

    def __init__(self, rows: Rows, C: float, threads: int | None) -> None:
        self.rows, self.threads = rows, threads
        self.svm = _svm(rows.X, rows.y, C, threads)
        self.moves = (self.svm.dual_coef_ @ self.svm.class_coef_).astype(rows.X.dtype)
        spread = np.linalg.norm(rows.X - rows.X.mean(axis=0))
        self.unit = float(np.linalg.norm(self.moves) / spread)

    def moved(self, scale: float) -> NDArray[Any]:
        """Rows moved so far, relative to their spread."""
        if scale == 0.0 or self.unit == 0.0:
            return self.rows.X
        return self.rows.X + self.rows.X.dtype.type(scale / self.unit) * self.moves

    def accuracy(self, extractor: Any, scale: float, test: Rows) -> float:
        """Of a linear SVM on features of the rows as they are, in percent."""
        extractor.fit(self.moved(scale))
        train, held = extractor.transform(self.rows.X), extractor.transform(test.X)
        mean, deviation = train.mean(axis=0), train.std(axis=0)
        deviation[deviation == 0] = 1
        model = _svm((train - mean) / deviation, self.rows.y, READ_C, self.threads)
        return 100.0 * float(model.score((held - mean) / deviation, test.y))


Parts = Sequence[tuple[Shifter, Rows]]


def _svm(X: NDArray[Any], y: NDArray[np.int64], C: float, threads: int | None) -> MulticlassSVM:
    return MulticlassSVM(C=C, tol=TOLERANCE, max_iter=EPOCHS, n_threads=threads).fit(X, y)


def held_out(rows: Rows, C: float, threads: int | None) -> Parts:
    """Shifters of parts of the training rows, and the rows that were kept from them."""
    n = SPLITS_OF_FEW if len(rows) < FEW_ROWS else 1
    splitter = StratifiedShuffleSplit(n, test_size=HELD_OUT, random_state=mmds_data.SEED)
    splits = splitter.split(rows.y[:, None], rows.y)
    return [(Shifter(rows[train], C, threads), rows[held]) for train, held in splits]


def scores_of(parts: Parts, make: Learn, scale: float) -> NDArray[np.float64]:
    """Accuracies on held-out rows, one a split."""
    return np.array([shifter.accuracy(make(), scale, held) for shifter, held in parts])


def chosen_move(
    parts_of: Mapping[float, Parts], make: Learn, scales: Sequence[float]
) -> tuple[float, float]:
    """The SVM's C and the scale that are best on held-out rows; a scale of 0 for none.

    Rows stay unless the mean gain over that exceeds twice its standard error.
    """
    still = scores_of(next(iter(parts_of.values())), make, 0.0)
    tried = {
        (C, scale): scores_of(parts, make, scale)
        for C, parts in parts_of.items()
        for scale in scales
    }
    (C, scale), best = max(tried.items(), key=lambda one: float(one[1].mean()))
    gains = best - still
    error = gains.std(ddof=1) / np.sqrt(len(gains)) if len(gains) > 1 else 0.0
    return (C, scale) if gains.mean() > 2 * error else (C, 0.0)


# ---- Tables 3 and 4, Figure 3 --------------------------------------------------------------------


class Features:
    """A data set's rows, or their kernel features of several widths, which experiments share."""

    def __init__(self, data: str, kernels: bool, folder: Path, context: Context) -> None:
        split = mmds_data.load(data, folder, quick=context.quick)
        self.quick, self.threads = context.quick, context.threads
        self._test = split.test
        self._kernels: list[Any] = [None]
        if kernels:
            self._kernels = [
                mmds_data.kernel(data, split.train.X, width, quick=context.quick)
                for width in KERNEL_WIDTHS
            ]
        self._trains = [_mapped(kernel, split.train) for kernel in self._kernels]
        self._parts: dict[tuple[int, float], Parts] = {}

    def parts(self, width: int, C: float) -> Parts:
        """Shifters of parts of the training rows by an SVM of this C, and the rows kept back."""
        if (width, C) not in self._parts:
            self._parts[width, C] = held_out(self._trains[width], C, self.threads)
        return self._parts[width, C]

    def _chosen(self, case: Case) -> tuple[Learn, int, Rows]:
        """An extractor, its kernel's width by number, and the test rows.

        The width is best for the extractor and rows as they are on held-out rows.
        """
        make = partial(mmds_data.extractor, *case[2:4], quick=self.quick)
        scores = [
            scores_of(self.parts(width, FIT_C[0]), make, 0.0).mean() if len(self._trains) > 1 else 0
            for width in range(len(self._trains))
        ]
        width = int(np.argmax(scores))
        return make, width, _mapped(self._kernels[width], self._test)

    def measure(self, outcome: Shifted) -> None:
        """Accuracies without moves, and with those that held-out rows prefer to none."""
        make, width, test = self._chosen(outcome.case)
        scales = QUICK_SCALES if self.quick else SCALES
        C, scale = chosen_move({C: self.parts(width, C) for C in FIT_C}, make, scales)
        shifter = Shifter(self._trains[width], C, self.threads)
        outcome.original = shifter.accuracy(make(), 0.0, test)
        outcome.shifted = shifter.accuracy(make(), scale, test) if scale else outcome.original
        outcome.scale = scale

    def curve(self, outcome: Shifted) -> None:
        """Accuracy and reconstruction error of test rows for each of many scales: Figure 3."""
        make, width, test = self._chosen(outcome.case)
        shifter = Shifter(self._trains[width], CURVE_C, self.threads)
        for scale in CURVE_SCALES:
            learnt = make()
            accuracy = shifter.accuracy(learnt, scale, test)
            rebuilt = learnt.inverse_transform(learnt.transform(test.X))
            error = float(((rebuilt - test.X) ** 2).sum(axis=1).mean())
            outcome.curve.append((scale, accuracy, error))
        outcome.original = outcome.curve[0][1]
        outcome.scale, outcome.shifted, _ = max(outcome.curve, key=lambda point: point[1])


def _mapped(kernel: Any, rows: Rows) -> Rows:
    """A kernel's features of rows; without one, rows as they are."""
    return rows if kernel is None else Rows(kernel.transform(rows.X).astype(np.float32), rows.y)


shared = lru_cache(maxsize=1)(Features)  # one at a time is held


def _features(job: Job, outcome: Shifted) -> Features:
    data, extractor = outcome.case[1:3]
    return shared(data, extractor in BY_KERNELS, job.folder, job.context)


def by_move(job: Job, outcome: Shifted) -> None:
    """A cell of Table 3 or 4."""
    _features(job, outcome).measure(outcome)


def by_scales(job: Job, outcome: Shifted) -> None:
    """A panel of Figure 3."""
    _features(job, outcome).curve(outcome)


# ---- Table 1: PCA of few faces of each of many people --------------------------------------------


class Choice(NamedTuple):
    """How rows are prepared (by number), the SVM's C, and how far rows are moved."""

    kind: int
    C: float
    scale: float


def columns(X: Array) -> Array:
    """Standardised; rows of length 1 on average."""
    deviation = X.std(axis=0)
    scaled: Array = (X - X.mean(axis=0)) / np.where(deviation > 0, deviation, 1)
    return scaled / np.sqrt(np.float32(X.shape[1]))


def pixels(X: Array) -> Array:
    """As they are; rows of length 1 on average."""
    return X / np.sqrt((X.astype(np.float64) ** 2).sum(axis=1).mean()).astype(np.float32)


def unit(X: Array) -> Array:
    """Every row of length 1: lights differ."""
    return X / np.linalg.norm(X, axis=1, keepdims=True)


def by_faces(
    job: Job, outcome: Shifted, *, arrays: tuple[str, str], per_class: int, ways: Sequence[Any]
) -> None:
    """Accuracies of ten principal components of rows and of moved rows, over random splits.

    What is done to the rows before, the SVM's C and the size of the moves are chosen by folds of
    the training rows, as many as a class has rows and at most five.
    """
    rows = read_rows(job.folder / job.problem.file, *arrays)
    kinds = [Rows(way(rows.X), rows.y) for way in ways]
    splits = QUICK_FACE_SPLITS if job.context.quick else FACE_SPLITS
    threads = job.context.threads
    found = np.array([_one_split(kinds, per_class, seed, threads) for seed in range(splits)])
    outcome.original, outcome.shifted = (float(one) for one in np.mean(found[:, :2], axis=0))
    outcome.scale = float(np.median(found[:, 2]))
    outcome.deviation = float(np.std(found[:, 1], ddof=1))


def _one_split(
    kinds: list[Rows], per_class: int, seed: int, threads: int | None
) -> tuple[float, float, float]:
    """Accuracy of PCA, of PCA of moved rows, and how far these were moved."""
    splits = [mmds_data.few_of_each(rows, per_class, seed) for rows in kinds]
    scores: dict[Choice, list[float]] = {}
    for kind, split in enumerate(splits):
        for part in _folds(split.train, seed):
            for choice, score in _scores(kind, part, threads):
                scores.setdefault(choice, []).append(score)
    # The best mean; of equal ones that with the smallest move.
    means = {choice: (float(np.mean(one)), -choice.scale) for choice, one in scores.items()}
    still = max((choice for choice in means if choice.scale == 0), key=means.__getitem__)
    moved = max((choice for choice in means if choice.scale > 0), key=means.__getitem__)
    accuracies = []
    for choice in (still, moved):
        train, test = _centred(splits[choice.kind])
        shifter = Shifter(train, choice.C, threads)
        accuracies.append(shifter.accuracy(_ten(), choice.scale, test))
    return accuracies[0], accuracies[1], moved.scale


def _scores(kind: int, part: Split, threads: int | None) -> Iterator[tuple[Choice, float]]:
    train, held = _centred(part)
    for number, C in enumerate(FACE_C):
        shifter = Shifter(train, C, threads)
        still = () if number else (0.0,)  # rows that stay do not depend on C
        for scale in (*still, *FACE_SCALES):
            yield Choice(kind, C, scale), shifter.accuracy(_ten(), scale, held)


def _folds(rows: Rows, seed: int) -> Iterator[Split]:
    fewest = int(np.unique(rows.y, return_counts=True)[1].min())
    folds = StratifiedKFold(min(max(fewest, 2), MOST_FOLDS), shuffle=True, random_state=seed)
    for fit, held in folds.split(rows.y[:, None], rows.y):
        yield Split(rows[fit], rows[held])


def _ten() -> Any:
    return mmds_data.extractor("PCA", FACE_COMPONENTS, quick=False)


def _centred(split: Split) -> tuple[Rows, Rows]:
    mean = split.train.X.mean(axis=0)
    return Rows(split.train.X - mean, split.train.y), Rows(split.test.X - mean, split.test.y)


# ---- what is run ---------------------------------------------------------------------------------

FILES = {"MNIST": "mnist.npz", "Digits": "opencv_digits.npz", "Letters": "ocr_letters.npz"}
BY_KERNELS = ("KPCA", "ICA", "SPCA", "KM", "FA", "NMF")  # on random Fourier features of rows
FACES = (("Yale", "yale", 3), ("Yale B", "yaleb", 5), ("ORL", "orl", 2))  # and rows to train on
# In place of the paper's 11 Tumors, which is not at hand; the sets have other rows and classes.
STANDINS = ("srbct", "tox171", "glioma")


def _cases(table: str, file: str) -> Iterator[Case]:
    """Read pairs of accuracies; a row is named by its data and, but for 5, its dimension."""
    for name, row in figures(file).items():
        data, _, dimension = name.partition(" ")
        for extractor in dict.fromkeys(column.split()[0] for column in row):
            paper = float(row[f"{extractor} rows"]), float(row[f"{extractor} moved"])
            yield Case(table, data, extractor, int(dimension or 5), paper)


CASES = (*_cases("Table 4", "mmds-4"), *_cases("Table 3", "mmds-3"))
CURVES = tuple(Case("Figure 3", "MNIST", extractor, 10) for extractor in ("PCA", "AE", "KPCA"))


def study(job: Job, outcome: Shifted, step: Step) -> None:
    """Fill in an outcome as its method does."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        # Two faces of each of many people look like a regression.
        warnings.filterwarnings("ignore", "The number of unique classes", UserWarning)
        outcome.case = job.method.case  # type: ignore[attr-defined]
        job.method.build(job, outcome)


def _problem(table: str, data: str, file: str, methods: Sequence[Method]) -> Problem:
    name = f"{table}, {data}"
    return Problem(
        name, name, "", file, {}, mmds_data.load, tuple(methods), study=study, outcome=Shifted
    )


def _faces() -> Iterator[Problem]:
    """Table 1: its faces, and gene expressions in place of its tumors."""
    printed = figures("mmds-1")
    for name, file, count in FACES:
        case = Case(
            "Table 1", name, "PCA", FACE_COMPONENTS, tuple(map(float, printed[name].values()))
        )
        build = partial(by_faces, arrays=("X", "y"), per_class=count, ways=(pixels, unit))
        yield _problem(*case[:2], f"faces_{file}.npz", [Experiment("PCA", build, case=case)])
    for name in STANDINS:
        case = Case("Table 1", f"{name} (stand-in)", "PCA", FACE_COMPONENTS)
        arrays = (f"X_{name}", f"y_{name}")
        build = partial(by_faces, arrays=arrays, per_class=5, ways=(columns,))
        yield _problem(*case[:2], "microarray_standins.npz", [Experiment("PCA", build, case=case)])


def _shifts() -> Iterator[Problem]:
    """Tables 4 and 3 and Figure 3; what shares features stands together."""
    for data, file in FILES.items():
        for kernels in (True, False):
            for table in TITLES:
                methods = [
                    Experiment(f"{case.extractor} {case.n_components}", by_move, case=case)
                    for case in CASES
                    if (case.table, case.data) == (table, data)
                    and (case.extractor in BY_KERNELS) == kernels
                ]
                if methods:
                    yield _problem(table, data, file, methods)
    curves = [Experiment(case.extractor, by_scales, case=case) for case in CURVES]
    yield _problem("Figure 3", "MNIST", FILES["MNIST"], curves)


# ---- what is told --------------------------------------------------------------------------------

TITLES = {
    "Table 1": "Table 1: PCA of faces and of gene expressions, few rows a class",
    "Table 4": "Table 4: three extractors in 5, 10 and 20 dimensions",
    "Table 3": "Table 3: five extractors of kernel features, 5 dimensions",
    "Figure 3": "Figure 3: best of the scales, on the test rows",
}
FIELDS = (
    *("table", "data", "extractor", "n_components", "original", "shifted", "scale"),
    *("paper_original", "paper_shifted", "deviation", "curve", "quick", "failure"),
)


def tell(protocol: Protocol, outcomes: Sequence[Shifted]) -> Iterator[Any]:
    """Yield a table for each of the paper's, and what failed."""
    for name, title in TITLES.items():
        done = [one for one in outcomes if one.case.table == name and not one.failure]
        if not done:
            continue
        numbers = ("paper %", "", "measured %", "", "move")
        table = new_table(["data", "extractor", *numbers], names=2, title=title)
        for row in done:
            spread = "" if row.deviation is None else f" ± {row.deviation:.1f}"
            figures = [*row.case.paper, row.original, row.shifted]
            told = ["" if value is None else f"{value:.1f}" for value in figures]
            told[-1] += spread
            extractor = f"{row.case.extractor} {row.case.n_components}"
            table.add_row(row.case.data, extractor, *told, f"{row.scale:g}")
        yield table
    for one in outcomes:
        if one.failure:
            yield f"{one.problem}, {one.method} failed: {one.failure}", "red"


def lines(
    protocol: Protocol, outcomes: Sequence[Shifted], context: Context
) -> dict[str, tuple[Sequence[str], Any]]:
    """Return one line for each outcome."""
    own = ("original", "shifted", "scale", "deviation", "curve", "failure")
    found = [
        {
            **dict(zip(FIELDS, one.case[:4], strict=False)),
            **dict(zip(("paper_original", "paper_shifted"), one.case.paper, strict=True)),
            **{field: getattr(one, field) for field in own},
            "quick": context.quick,
        }
        for one in outcomes
    ]
    return {"": (FIELDS, found)}


def draw(
    protocol: Protocol, outcomes: Sequence[Shifted], context: Context, folder: Path
) -> pictures.Drawn:
    """Draw test digits in two components of rows and of moved rows, and accuracies by scale."""
    if any(outcome.case.data == "Digits" for outcome in outcomes):
        split = mmds_data.load("Digits", folder, quick=context.quick)
        train, test = (part[np.isin(part.y, EMBEDDED)] for part in (split.train, split.test))
        shifter = Shifter(train, CURVE_C, context.threads)
        panels = {
            name: PCA(2, random_state=0).fit(shifter.moved(scale)).transform(test.X)
            for name, scale in EMBEDDING_SCALES.items()
        }
        yield "mmds_embeddings.png", pictures.draw_points(panels, test.y, "digit")
    curves = {f"{o.case.extractor}, {o.case.data}": o.curve for o in outcomes if o.curve}
    if curves:
        yield "mmds_scales.png", pictures.draw_scales(curves)


PROTOCOLS = {
    "mmds": Protocol(
        "mmds",
        (*_faces(), *_shifts()),
        Report(tell, lines, draw),
        alone=False,
        joined=", ",
        parts="a table, data set or extractor",
    )
}
