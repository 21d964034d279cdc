"""Tables 3.3 to 3.5 of the thesis: time series that are fewer than their samples."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from bench.papers import families, ldg_pictures, settings, thesis
from bench.papers.families import Rules
from bench.papers.measuring import Outcome
from bench.papers.protocol import Context, Method, Problem, Protocol, Report, read_arrays
from bench.papers.split_table import few_of, tell_of_sets, write_splits
from bench.papers.splits import Table, by_splits

__all__ = ["PROTOCOL", "load"]

ARRAYS = {
    "X_train": "(n, t) series",
    "y_train": "(n,) labels",
    "X_test": "(m, t) series",
    "y_test": "(m,) labels",
}
NOT_AT_HAND = (
    "CBF, CinCECGTorso, GunPoint, InlineSkate, Lightning7, Mallat, OliveOil, StarLightCurves, "
    "TwoLeadECG and Yoga are not at hand, or without their test part"
)


def load(path: Path, context: Context) -> Table:
    """Return the series of both official parts; as many as in the first of them train."""
    X = np.concatenate(read_arrays(path, "X_train", "X_test"))
    y_train, y_test = read_arrays(path, "y_train", "y_test")
    codes = np.unique(np.concatenate([y_train, y_test]), return_inverse=True)[1].astype(np.int64)
    testing = settings.LDG_SMALL_QUICK_TESTING if context.quick else None
    return Table(X, codes, len(y_train), testing)


RULES = Rules(
    gammas=(),
    at=-1,
    ridges=settings.LDG_SMALL_RIDGES,
    steps=settings.LDG_SMALL_STEPS,
    folds=settings.LDG_SMALL_FOLDS,
)
METHODS = (
    Method("LDG", families.ldg_by_itself),
    Method("PCA", families.pca),
    Method("PCA FDA", families.pca_fisher),
    Method("Reg. FDA", families.regularized_fisher),
    Method("DLDA", families.direct_lda),
    Method("GDA", families.gsvd),
    Method("PCA LFDA", families.pca_local_fisher),
    Method("Reg. LFDA", families.regularized_local_fisher),
)


def _problem(name: str) -> Problem:
    return Problem(
        name=name,
        title=name,
        split="",
        file=f"ucr/{name}.npz",
        arrays=ARRAYS,
        load=load,
        methods=METHODS,
        study=partial(by_splits, rules=RULES),
    )


def tell(protocol: Protocol, outcomes: Sequence[Outcome]) -> Iterator[Any]:
    """Yield Tables 3.3, 3.4 and 3.5, and what they come to."""
    yield from tell_of_sets(
        "Table 3.3: accuracy in %, in one dimension less than there are classes",
        protocol.problems,
        outcomes,
        thesis.TABLE_3_3,
        value=few_of,
    )
    yield from tell_of_sets(
        "Table 3.4: accuracy in %, in a dimension chosen by cross-validation",
        protocol.problems,
        outcomes,
        thesis.TABLE_3_4,
        thesis.TABLE_3_5,
    )
    if outcomes:
        yield (
            "LDG has its defaults and chooses by itself. Parameters and dimensions of the others "
            "are chosen by 5-fold cross-validation in which rows that are asked had no part in the "
            "directions: in directions of all rows, with fewer of them than columns, nearly all "
            "candidates are "
            f"right on every row. {NOT_AT_HAND}."
        )


PROTOCOL = Protocol(
    "ldg-small",
    "time series that are fewer than their samples, Tables 3.3 to 3.5 of the thesis",
    tuple(_problem(name) for name in thesis.TABLE_3_4),
    report=Report(tell, write_splits, ldg_pictures.draw_small),
)
