"""Figures 4.5 and 4.6 of the thesis: images of one domain, classified with help from another."""

from __future__ import annotations

import time
from collections.abc import Iterator
from dataclasses import dataclass
from functools import partial
from itertools import permutations, starmap
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from bench.papers import pictures
from bench.papers.accuracy_tables import done_on, lines, tell_of_sets
from bench.papers.families import RIDGE, Codes, Rows
from bench.papers.protocol import (
    Context,
    Job,
    Method,
    Outcome,
    Problem,
    Protocol,
    Report,
    Run,
    Step,
    read_arrays,
)
from bench.papers.splits import Score, seeds
from bench.papers.three_nearest import accuracy, best_or_tied

LABELLED = 2  # rows a class of the target, section 4.5.3
EXTRA = 5  # dimensions beyond the classes
MOST_DIMENSIONS = 40
QUICK_ROWS = 300  # of the source
DOMAINS = ("amazon", "webcam", "dslr")


@dataclass(frozen=True, eq=False)
class Domains:
    """Rows and codes of a source, all of which train, and of a target."""

    Xs: Rows
    ys: Codes
    Xt: Rows
    yt: Codes

    def labelled(self, seed: int) -> NDArray[np.intp]:
        """Return the target's rows that train: two random ones a class, ascending."""
        random = np.random.RandomState(seed)
        classes = [np.flatnonzero(self.yt == c) for c in np.unique(self.yt)]
        return np.sort(np.concatenate([random.permutation(rows)[:LABELLED] for rows in classes]))


def load(path: Path, context: Context, *, source: str, target: str) -> Domains:
    """Return the word counts of two domains; in a quick run fewer of the source."""
    Xs, ys, Xt, yt = read_arrays(path, f"X_{source}", f"y_{source}", f"X_{target}", f"y_{target}")
    classes = np.unique(ys)
    if context.quick:
        kept = np.random.RandomState(context.seed).permutation(len(ys))[:QUICK_ROWS]
        Xs, ys = Xs[kept], ys[kept]
    codes = (np.searchsorted(classes, y).astype(np.int64) for y in (ys, yt))
    return Domains(Xs.astype(np.float64), next(codes), Xt.astype(np.float64), next(codes))


def transfer(job: Job, outcome: Outcome, step: Step) -> None:
    """Fill in an outcome: one score a split of the target's rows."""
    step("loading")
    domains: Domains = job.problem.load(job.folder / job.problem.file, job.context)
    for seed in seeds(job.context, step):
        known = domains.labelled(seed)
        outcome.splits.append(_score(job.method.build(job.context), domains, known))
        outcome.n_train = len(domains.ys) + len(known)
        outcome.n_test = len(domains.yt) - len(known)


def _score(model: Any, domains: Domains, known: NDArray[np.intp]) -> Score:
    """Reduce, and classify target rows from the source's and the labelled ones of the target."""
    Xs, ys, Xt, yt = domains.Xs, domains.ys, domains.Xt, domains.yt
    asked = np.setdiff1d(np.arange(len(yt)), known)
    started = time.perf_counter()
    model.fit_transfer(Xs, ys, Xt[known], yt[known])
    seconds = time.perf_counter() - started
    ones = np.ones(len(Xs), dtype=int)
    rows = np.vstack([model.transform(Xs, sample_domain=ones), model.transform(Xt[known])])
    codes, queries = np.concatenate([ys, yt[known]]), model.transform(Xt[asked])
    most = rows.shape[1]
    # More columns than that are those of a whole metric, in no order.
    shown = range(1, most + 1) if most <= MOST_DIMENSIONS else [most]
    curve = {m: accuracy(rows[:, :m], codes, queries[:, :m], yt[asked]) for m in shown}
    usual = min(len(np.unique(ys)) + EXTRA, most) if most <= MOST_DIMENSIONS else most
    parameters = {name: getattr(model, f"{name}_", None) for name in ("alpha", "gamma")}
    chosen = {name: value for name, value in parameters.items() if value is not None}
    return Score(curve[usual], usual, seconds, chosen, curve)


def reduction(context: Context, *, name: str, **parameters: Any) -> Any:
    """Make an estimator of `eigenfeat.ldg`."""
    from eigenfeat import ldg

    return getattr(ldg, name)(**parameters)


REDUCED = (
    Method("TransferLDG", partial(reduction, name="TransferLDG", n_components=MOST_DIMENSIONS)),
    Method("pooled PCA", partial(reduction, name="PooledPCA", n_components=MOST_DIMENSIONS)),
    Method("pooled FDA", partial(reduction, name="PooledFisher", ridge=RIDGE)),
)
METHODS = (
    *REDUCED,
    Method(
        "ITML", partial(reduction, name="TransferITML", n_components=MOST_DIMENSIONS), peer=True
    ),
    Method("ITML, whole metric", partial(reduction, name="TransferITML"), peer=True),
)


def product_images(source: str, target: str) -> Problem:
    """Return the problem of two of the domains of product images."""
    name = f"{source} to {target}"
    arrays = {f"{name}_{domain}": "word counts, labels" for domain in DOMAINS for name in "Xy"}
    loaded = partial(load, source=source, target=target)
    return Problem(name, name, "", "office_surf.npz", arrays, loaded, METHODS, study=transfer)


def tell(run: Run) -> Iterator[Any]:
    """Yield the table of Figure 4.5's accuracies in 15 dimensions, and how LDG fares in all."""
    title = (
        "Figures 4.5 and 4.6: accuracy in %, two labelled target rows a class, 15 dimensions "
        "(FDA: 9, ITML's whole metric: all)"
    )
    yield from tell_of_sets(title, run.protocol.problems, run, {}, {})
    for problem in run.protocol.problems:
        yield from _dimensions_won(problem, run)
    if run.outcomes:
        yield (
            "The thesis shows curves and prints no figures. Its product images are of 31 classes, "
            "these of the 10 that Caltech shares."
        )


def _dimensions_won(problem: Problem, run: Run) -> Iterator[str]:
    done = done_on(problem, run)
    ours = METHODS[0].name
    if ours not in done or len(done) < 2:
        return
    won = tied = 0
    own = done[ours].splits
    dimensions = own[0].curve
    for m in dimensions:
        # Fisher's directions end at one less than classes: beyond, its last stays. So does what
        # a whole metric has.
        at = {
            name: [score.curve.get(m, score.curve[max(score.curve)]) for score in outcome.splits]
            for name, outcome in done.items()
        }
        won += np.mean(at[ours]) >= max(np.mean(values) for values in at.values())
        tied += ours in best_or_tied(at)
    alphas = [score.parameters.get("alpha") for score in own]
    nonzero = sum(alpha is not None and alpha > 0 for alpha in alphas)
    yield (
        f"{problem.name}: {ours} on top in {won} of {len(dimensions)} dimensions, best or tied "
        f"in {tied}; alpha above 0 in {nonzero} of {len(own)} splits"
    )


REPORT = Report(tell, lines, pictures.draw_transfer)
PROTOCOLS = {
    "ldg-transfer": Protocol(
        "ldg-transfer", tuple(starmap(product_images, permutations(DOMAINS, 2))), REPORT
    )
}
