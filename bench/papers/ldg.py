"""The thesis's LDG: Table 3.1, Figures 3.4 to 3.8, Tables 3.3 to 3.5, Figures 4.5 and 4.6.

Data of many kinds (ldg.json describes the files), sets with fewer series than time points, and
samples of a domain classified with labels of another domain: product images, and digits.
"""

from __future__ import annotations

import json
import time
from dataclasses import dataclass, replace
from functools import partial
from itertools import permutations, product
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from bench.papers import choosing, families, figures, pictures
from bench.papers.accuracy_tables import (
    UNION,
    best_or_tied,
    done_on,
    lines,
    tell_of_sets,
    tell_of_sparsity,
)
from bench.papers.families import RIDGE, Rules, accuracy
from bench.papers.protocol import Method, Problem, Protocol, read_arrays, seeds, some_of_each
from bench.papers.scattering import scattering
from bench.papers.splits import Score, Table, by_splits

# ---- data of many kinds --------------------------------------------------------------------------

TRAINING_SHARE = 0.7
MAX_TRAINING, QUICK_TRAINING = 3_000, 200
MAX_TESTING, QUICK_TESTING = 5_000, 400  # only MNIST and USPS have more
RULES = Rules(gammas=(0.2, 0.4, 0.6, 0.8, 1.0), at=5, most=40)  # section 3.4


def load(path, context, *, parts=("",)):
    """Return the samples of all official parts of a set."""
    X, y = (np.concatenate(read_arrays(path, *(f"{a}{part}" for part in parts))) for a in "Xy")
    return _table(X, y, context)


load_parts = partial(load, parts=("", "_test"))
load_mnist = partial(load, parts=("_train", "_test"))


def load_sparse(path, context):
    """Return the rows of a sparse matrix, dense."""
    from scipy.sparse import csr_matrix

    ends, columns, values, shape, y = read_arrays(path, *ARRAYS["sparse"])
    X = csr_matrix((values.astype(np.float32), columns, ends), shape=tuple(shape)).toarray()
    return _table(X, y, context)


def _table(X, y, context):
    """Return a table of which 70% of the samples train, up to a limit."""
    codes = np.unique(y, return_inverse=True)[1].astype(np.int64)
    most = QUICK_TRAINING if context.quick else MAX_TRAINING
    testing = QUICK_TESTING if context.quick else MAX_TESTING
    return Table(X, codes, min(most, round(TRAINING_SHARE * len(codes))), testing)


LOADS = {
    "whole": load,
    "official parts": load_parts,
    "train and test": load_mnist,
    "sparse": load_sparse,
}
METHODS = (
    Method("LDG", families.ldg),
    Method("PCA", families.pca),
    Method("FDA", families.fisher),
    Method("LFDA", families.local_fisher),
    Method("all columns", families.all_columns),
    Method("LDG, its default", families.ldg_by_itself),
    Method("ITML", families.itml, peer=True),
    Method("NCA", families.nca, peer=True),
)
SPARSE_METHODS = (
    METHODS[0],
    *(
        Method(f"SparseLDG, {kind} deflation", partial(families.sparse_ldg, deflation=kind))
        for kind in ("sparse", "orthonormal")
    ),
)


def _set(name, title, file, split="", kind="whole", methods=""):
    return Problem(
        name,
        title,
        split,
        file,
        ARRAYS[kind],
        LOADS[kind],
        SPARSE_METHODS if methods else METHODS,
        study=partial(by_splits, rules=RULES),
    )


_described = json.loads(Path(__file__).with_suffix(".json").read_text(encoding="utf-8"))
ARRAYS = _described["arrays"]
*TABLE, SPARSE_PROBLEM = (_set(**entry) for entry in _described["sets"])


def tell(run):
    """Yield Table 3.1, its times, and the results of sparse directions."""
    title = "Table 3.1: accuracy in %, in a dimension chosen greedily"
    yield from tell_of_sets(title, TABLE, run)
    yield from tell_of_sparsity(SPARSE_PROBLEM, run)


# ---- fewer series than time points ---------------------------------------------------------------

SMALL_QUICK_TESTING = 200
SMALL_RULES = Rules(
    gammas=(),
    at=-1,
    ridges=(0.001, 0.01, 0.1, 1.0, 10.0, 100.0),  # section 3.5.2
    steps=(-1, 0, 1, 2, 4, 8, 16, 32),
    folds=5,
)
SMALL_METHODS = (
    Method("LDG", families.ldg_by_itself),
    Method("PCA", families.pca),
    Method("PCA FDA", families.pca_fisher),
    Method("Reg. FDA", families.regularized_fisher),
    Method("DLDA", families.direct_lda),
    Method("GDA", families.gsvd),
    Method("PCA LFDA", families.pca_local_fisher),
    Method("Reg. LFDA", families.regularized_local_fisher),
    Method("ITML", families.itml_by_itself, peer=True),
    Method(UNION, families.ldg_and_fisher, peer=True),
)


def load_small(path, context):
    """Return the series of both official parts; as many train as the official training part has."""
    n_train = len(read_arrays(path, "y_train")[0])
    most = SMALL_QUICK_TESTING if context.quick else None
    return replace(load_mnist(path, context), n_train=n_train, most_testing=most)


def load_training_file(path, context):
    """Return the series of a set of which only the training file exists; 70% of them train."""
    X, y = read_arrays(path, "X_train", "y_train")
    return _table(X, y, context)


def _small(name, folder="ucr", load=load_small, split=""):
    study, arrays = partial(by_splits, rules=SMALL_RULES), ARRAYS["train and test"]
    if load is load_training_file:
        arrays = {key: arrays[key] for key in ("X_train", "y_train")}
    file = f"{folder}/{name}.npz"
    return Problem(name, name, split, file, arrays, load, SMALL_METHODS, study=study)


def tell_small(run):
    """Yield Tables 3.3, 3.4 and 3.5, and their conclusions."""
    few = "Table 3.3: accuracy in %, in one dimension less than there are classes"
    yield from tell_of_sets(few, run.protocol.problems, run, value="few")
    title = "Table 3.4: accuracy in %, in a dimension chosen by cross-validation"
    yield from tell_of_sets(title, run.protocol.problems, run)
    if run.outcomes:
        yield (
            "LDG has its defaults. Parameters and dimensions of the other methods are chosen by "
            "five folds, whose rows are not used for the directions. CBF, GunPoint, Lightning7, "
            "OliveOil, StarLightCurves and TwoLeadECG are not available."
        )


# ---- one domain with help from another -----------------------------------------------------------

LABELLED = 2  # samples of each class of the target, section 4.5.3
EXTRA = 5  # dimensions beyond the number of classes
MAX_DIMENSIONS = 40
QUICK_ROWS = 300  # samples of the source
DOMAINS = ("amazon", "webcam", "dslr")
PER_CLASS, QUICK_PER_CLASS = 300, 20  # digits, section 4.5.1
SIDE = 16  # of a USPS image
USPS = "usps.npz"


@dataclass(frozen=True, eq=False)
class Domains:
    """Samples and class codes of a source and of a target; all samples of the source train."""

    Xs: NDArray[np.float64]
    ys: NDArray[np.int64]
    Xt: NDArray[np.float64]
    yt: NDArray[np.int64]

    def labelled(self, seed):
        """Return the indices of the target's training samples, two random samples of each class."""
        return np.sort(some_of_each(self.yt, LABELLED, seed))


def load_domains(path, context, *, source, target):
    """Return the word counts of two domains; a quick run has fewer samples of the source."""
    Xs, ys, Xt, yt = read_arrays(path, f"X_{source}", f"y_{source}", f"X_{target}", f"y_{target}")
    classes = np.unique(ys)
    if context.quick:
        kept = np.random.RandomState(context.seed).permutation(len(ys))[:QUICK_ROWS]
        Xs, ys = Xs[kept], ys[kept]
    codes = (np.searchsorted(classes, y).astype(np.int64) for y in (ys, yt))
    return Domains(Xs.astype(np.float64), next(codes), Xt.astype(np.float64), next(codes))


def load_digits(path, context, *, source, target, scattered):
    """Return random digits of both domains, as 16 x 16 pixels or their scattering coefficients."""
    found = {}
    for name, file in (("mnist", path), ("usps", path.with_name(USPS))):
        X, y = read_arrays(file, "X_train", "y_train")
        kept = some_of_each(y, QUICK_PER_CLASS if context.quick else PER_CLASS, context.seed)
        side = round(X.shape[1] ** 0.5)
        images = resized(X[kept].reshape(-1, side, side).astype(np.float64), SIDE)
        rows = scattering(images / 255) if scattered else images
        found[name] = rows.reshape(len(rows), -1).astype(np.float64), y[kept].astype(np.int64)
    return Domains(*found[source], *found[target])


def resized(images, side):
    """Resize images (n, size, size) by linear interpolation.

    Pixels of a smaller image are weighted averages; weights fall to 0 at the next pixel's centre.
    """
    scale = images.shape[1] / side
    centres = (np.arange(side)[:, None] + 0.5) * scale - 0.5
    gaps = np.abs(centres - np.arange(images.shape[1])) / max(scale, 1.0)
    weights = np.maximum(0.0, 1.0 - gaps)
    weights /= weights.sum(axis=1, keepdims=True)
    return weights @ images @ weights.T


def transfer(job, outcome):
    """Fill in an outcome: a score for each split of the target's samples."""
    domains = job.load()
    for seed in seeds(job.context):
        known = domains.labelled(seed)
        outcome.splits.append(_score(job.method.build(job.context), domains, known))
        outcome.n_train = len(domains.ys) + len(known)
        outcome.n_test = len(domains.yt) - len(known)


def _score(model, domains, known):
    """Reduce, and classify target samples by samples of the source and labelled target samples."""
    Xs, ys, Xt, yt = domains.Xs, domains.ys, domains.Xt, domains.yt
    asked = np.setdiff1d(np.arange(len(yt)), known)
    X, y = np.vstack([Xs, Xt[known]]), np.concatenate([ys, yt[known]])
    domain = np.repeat([1, -1], [len(Xs), len(known)])
    started = time.process_time()
    model.fit(X, y, sample_domain=domain)
    seconds = time.process_time() - started
    ones = np.ones(len(Xs), dtype=int)
    rows = np.vstack([model.transform(Xs, sample_domain=ones), model.transform(Xt[known])])
    codes, queries = y, model.transform(Xt[asked])
    most = rows.shape[1]
    # ITML's whole metric has more columns, which have no order: measure it with all columns.
    shown = range(1, most + 1) if most <= MAX_DIMENSIONS else [most]
    curve = {m: accuracy(rows[:, :m], codes, queries[:, :m], yt[asked]) for m in shown}
    usual = min(len(np.unique(ys)) + EXTRA, most) if most <= MAX_DIMENSIONS else most
    parameters = families.chosen_by(model, "alpha", "gamma")
    return Score(curve[usual], usual, seconds, parameters, curve)


def _transfer(method, estimator, peer=False, **parameters):
    build = partial(choosing.made, where=(estimator,), **parameters)
    return Method(method, build, peer=peer)


BASELINES = "bench.papers.baselines.domains"
REDUCED = (
    _transfer("TransferLDG", "eigenfeat.ldg.TransferLDG", n_components=MAX_DIMENSIONS),
    _transfer("pooled PCA", f"{BASELINES}.PooledPCA", n_components=MAX_DIMENSIONS),
    _transfer("pooled FDA", f"{BASELINES}.PooledFisher", ridge=RIDGE),
)
TRANSFER_METHODS = (
    *REDUCED,
    _transfer("ITML", f"{BASELINES}.TransferITML", peer=True, n_components=MAX_DIMENSIONS),
    _transfer("ITML, whole metric", f"{BASELINES}.TransferITML", peer=True),
)


def _product_images(source, target):
    name = f"{source} to {target}"
    arrays = {f"{a}_{domain}": "word counts, labels" for domain in DOMAINS for a in "Xy"}
    loaded = partial(load_domains, source=source, target=target)
    methods = TRANSFER_METHODS
    return Problem(name, name, "", "office_surf.npz", arrays, loaded, methods, study=transfer)


def _digits(source, target, scattered):
    name = f"{source} to {target}{', scattered' if scattered else ''}"
    arrays, usps = (
        {"X_train": f"(n, {d}) pixels 0..255", "y_train": "(n,) digits"} for d in (784, 256)
    )
    loaded = partial(load_digits, source=source, target=target, scattered=scattered)
    methods = REDUCED if scattered else TRANSFER_METHODS
    given = {"study": transfer, "beside": {USPS: usps}}
    return Problem(name, name, "", "mnist.npz", arrays, loaded, methods, **given)


def tell_transfer(run):
    """Yield the accuracies of Figure 4.5 in 15 dimensions, and the dimensions where LDG is best."""
    title = (
        "Figures 4.5 and 4.6: accuracy in %, two labelled target rows per class, 15 dimensions "
        "(FDA: 9, ITML's whole metric: all)"
    )
    yield from tell_of_sets(title, run.protocol.problems, run)
    for problem in run.protocol.problems:
        yield from _dimensions_won(problem, run)
    if run.outcomes:
        yield (
            "The thesis shows curves and prints no numbers. Its product images are of 31 classes; "
            "the images here are of the 10 classes that Caltech has, too."
        )


def _dimensions_won(problem, run):
    done = done_on(problem, run)
    ours = REDUCED[0].name
    if ours not in done or len(done) < 2:
        return
    won = tied = 0
    own = done[ours].splits
    dimensions = own[0].curve
    for m in dimensions:
        # Methods with fewer directions, such as Fisher's, keep their last accuracy.
        at = {
            name: [score.curve.get(m, score.curve[max(score.curve)]) for score in outcome.splits]
            for name, outcome in done.items()
        }
        won += np.mean(at[ours]) >= max(np.mean(values) for values in at.values())
        tied += ours in best_or_tied(at)
    nonzero = sum((score.parameters.get("alpha") or 0) > 0 for score in own)
    yield (
        f"{problem.name}: {ours} on top in {won} of {len(dimensions)} dimensions, best or tied "
        f"in {tied}; alpha above 0 in {nonzero} of {len(own)} splits"
    )


# ---- protocols -----------------------------------------------------------------------------------

TRAINING_ONLY = ("CinCECGTorso", "InlineSkate", "Mallat", "Yoga")
SMALL = tuple(_small(name) for name in figures.TABLE_3_4 if name not in TRAINING_ONLY)
TRAINING_FILES = tuple(
    _small(name, "ucr/train_only", load_training_file, "splits of the training file, 70% train")
    for name in TRAINING_ONLY
)
IMAGES = tuple(_product_images(*pair) for pair in permutations(DOMAINS, 2))
PAIRS = tuple(permutations(("mnist", "usps")))
DIGITS = tuple(_digits(*pair, kind) for kind, pair in product((False, True), PAIRS))
PROTOCOLS = {
    name: Protocol(name, problems, lines, told, *drawn)
    for name, problems, told, *drawn in (
        ("ldg", (*TABLE, SPARSE_PROBLEM), tell, pictures.draw_sets),
        ("ldg-small", SMALL, tell_small),
        ("ldg-training-files", TRAINING_FILES, tell_small),
        ("ldg-transfer", IMAGES, tell_transfer, pictures.draw_transfer),
        ("ldg-digits", DIGITS, tell_transfer, pictures.draw_transfer),
    )
}
