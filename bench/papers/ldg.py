"""Table 3.1 and Figures 3.4 to 3.8 of the thesis: LDG on data of many kinds."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from bench.papers import families, ldg_pictures, settings, thesis
from bench.papers.families import Rules
from bench.papers.measuring import Outcome
from bench.papers.protocol import Context, Method, Problem, Protocol, Report, read_arrays
from bench.papers.split_table import tell_of_sets, tell_of_sparsity, write_splits
from bench.papers.splits import Table, by_splits

__all__ = ["PROTOCOL", "load", "load_mnist", "load_parts", "load_sparse"]

WHOLE = {"X": "(n, d) rows", "y": "(n,) labels"}
PARTS = {**WHOLE, "X_test": "(m, d) rows", "y_test": "(m,) labels"}
SPARSE = {
    "csr_indptr": "(n + 1,)",
    "csr_indices": "columns",
    "csr_data": "values",
    "csr_shape": "(n, d)",
    "y": "(n,) labels",
}
MNIST = {f"{name}_{part}": "as in the files" for name in "Xy" for part in ("train", "test")}


def load(path: Path, context: Context) -> Table:
    """Return the rows of a set."""
    X, y = read_arrays(path, "X", "y")
    return table(X, y, context)


def load_parts(path: Path, context: Context) -> Table:
    """Return the rows of both official parts."""
    X, y = (np.concatenate(read_arrays(path, name, f"{name}_test")) for name in "Xy")
    return table(X, y, context)


def load_mnist(path: Path, context: Context) -> Table:
    """Return the images of both official parts."""
    X = np.concatenate(read_arrays(path, "X_train", "X_test"))
    return table(X, np.concatenate(read_arrays(path, "y_train", "y_test")), context)


def load_sparse(path: Path, context: Context) -> Table:
    """Return the rows of a sparse matrix, dense."""
    from scipy.sparse import csr_matrix

    values, columns, ends, shape, y = read_arrays(
        path, "csr_data", "csr_indices", "csr_indptr", "csr_shape", "y"
    )
    X = csr_matrix((values.astype(np.float32), columns, ends), shape=tuple(shape)).toarray()
    return table(X, y, context)


def table(X: NDArray[np.generic], y: NDArray[np.generic], context: Context) -> Table:
    """Return rows of which 70% train, up to a limit."""
    codes = np.unique(y, return_inverse=True)[1].astype(np.int64)
    most = settings.LDG_QUICK_TRAINING if context.quick else settings.LDG_MOST_TRAINING
    testing = settings.LDG_QUICK_TESTING if context.quick else settings.LDG_MOST_TESTING
    return Table(X, codes, min(most, round(settings.LDG_TRAINING_SHARE * len(codes))), testing)


RULES = Rules(gammas=settings.LDG_GAMMAS, at=5, most=settings.LDG_MOST_DIMENSIONS)
STUDY = partial(by_splits, rules=RULES)
METHODS = (
    Method("LDG", families.ldg),
    Method("PCA", families.pca),
    Method("FDA", families.fisher),
    Method("LFDA", families.local_fisher),
    Method("all columns", families.all_columns),
    Method("LDG, its default", families.ldg_by_itself),
)
SPARSE_METHODS = (
    Method("LDG", families.ldg),
    Method("SparseLDG, sparse deflation", families.sparsely_deflated),
    Method("SparseLDG, orthonormal deflation", families.orthonormally_deflated),
)


def _problem(
    name: str,
    title: str,
    file: str,
    note: str = "",
    load: Callable[[Path, Context], Table] = load,
    arrays: Mapping[str, str] = WHOLE,
) -> Problem:
    return Problem(name, title, note, file, arrays, load, METHODS, study=STUDY)


STANDARDISED = "columns were standardised over all rows beforehand"
TABLE = (
    _problem("diabetes", "Pima Indians diabetes", "uci_pima.npz"),
    _problem("wine", "Wine", "uci_wine.npz"),
    _problem(
        "german",
        "Statlog German credit",
        "uci_german_numeric.npz",
        "the numeric version of 24 columns, where the thesis has 20",
    ),
    _problem("ringnorm", "Ringnorm", "uci_ringnorm_standardized.npz", STANDARDISED),
    _problem(
        "dermatology",
        "Dermatology",
        "uci_dermatology.npz",
        "34 columns, where the thesis has 33; 8 missing ages become the training rows' mean",
    ),
    _problem("ionosphere", "Ionosphere", "uci_ionosphere.npz"),
    _problem("satimage", "Statlog Landsat", "uci_satimage.npz", "", load_parts, PARTS),
    _problem("isolet", "Isolet, spoken letters", "uci_isolet.npz", "", load_parts, PARTS),
    _problem(
        "mnist",
        "MNIST digits",
        "mnist.npz",
        f"{settings.LDG_MOST_TESTING:,} of the rows that do not train are tested",
        load_mnist,
        MNIST,
    ),
    _problem("arcene", "Arcene", "uci_arcene.npz", "the official training part, as in the thesis"),
    _problem(
        "dexter",
        "Dexter",
        "uci_dexter_train.npz",
        "the official training part, as in the thesis",
        load_sparse,
        SPARSE,
    ),
    _problem(
        "twonorm",
        "Twonorm",
        "uci_twonorm_standardized.npz",
        f"{STANDARDISED}; not in the thesis",
    ),
)
SPARSE_PROBLEM = Problem(
    name="wine, sparse directions",
    title="Sparse directions on Wine, Figures 3.6 and 3.8 of the thesis",
    split="",
    file="uci_wine.npz",
    arrays=WHOLE,
    load=load,
    methods=SPARSE_METHODS,
    study=STUDY,
)


def tell(protocol: Protocol, outcomes: Sequence[Outcome]) -> Iterator[Any]:
    """Yield Table 3.1, its times, and what sparse directions gave."""
    yield from tell_of_sets(
        "Table 3.1: accuracy in %, in a dimension chosen greedily",
        TABLE,
        outcomes,
        thesis.TABLE_3_1,
        thesis.TABLE_3_1_SECONDS,
    )
    yield from tell_of_sparsity(SPARSE_PROBLEM, outcomes)


PROTOCOL = Protocol(
    "ldg",
    "LDG on data of many kinds, Table 3.1 and Figures 3.4 to 3.8 of the thesis",
    (*TABLE, SPARSE_PROBLEM),
    report=Report(tell, write_splits, ldg_pictures.draw_sets),
)
