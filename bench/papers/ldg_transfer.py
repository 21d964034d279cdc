"""Figure 4.5 of the thesis: product images of one domain, classified with help from another."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import permutations
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from bench.papers import ldg_pictures, settings
from bench.papers.measuring import Job, Outcome
from bench.papers.protocol import Context, Method, Problem, Protocol, Report, read_arrays
from bench.papers.split_table import accuracies, tell_of_sets, write_splits
from bench.papers.splits import Score, n_splits
from bench.papers.three_nearest import accuracy, best_or_tied

__all__ = ["PROTOCOL", "Domains", "load", "transfer"]

DOMAINS = ("amazon", "webcam", "dslr")
Rows = NDArray[np.float64]
Codes = NDArray[np.int64]


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
        picked = [
            random.permutation(np.flatnonzero(self.yt == c))[: settings.TRANSFER_LABELLED]
            for c in np.unique(self.yt)
        ]
        return np.sort(np.concatenate(picked))


def load(path: Path, context: Context, *, source: str, target: str) -> Domains:
    """Return the word counts of two domains; in a quick run fewer of the source."""
    Xs, ys, Xt, yt = read_arrays(path, f"X_{source}", f"y_{source}", f"X_{target}", f"y_{target}")
    classes = np.unique(ys)
    if context.quick:
        kept = np.random.RandomState(context.seed).permutation(len(ys))
        Xs, ys = (part[kept[: settings.TRANSFER_QUICK_ROWS]] for part in (Xs, ys))
    codes = (np.searchsorted(classes, y).astype(np.int64) for y in (ys, yt))
    return Domains(Xs.astype(np.float64), next(codes), Xt.astype(np.float64), next(codes))


def transfer(job: Job, outcome: Outcome, step: Callable[[str], None]) -> None:
    """Fill in an outcome: one score a split of the target's rows."""
    step("loading")
    domains: Domains = job.problem.load(job.folder / job.problem.file, job.context)
    total = n_splits(job.context)
    for number in range(total):
        step(f"split {number + 1} of {total}")
        known = domains.labelled(job.context.seed + number)
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
    curve = {
        m: accuracy(rows[:, :m], codes, queries[:, :m], yt[asked])
        for m in range(1, rows.shape[1] + 1)
    }
    usual = min(len(np.unique(ys)) + settings.TRANSFER_EXTRA, rows.shape[1])
    parameters = {name: getattr(model, f"{name}_", None) for name in ("alpha", "gamma")}
    chosen = {name: value for name, value in parameters.items() if value is not None}
    return Score(curve[usual], usual, seconds, chosen, curve)


def transfer_ldg(context: Context) -> Any:
    """Transfer LDG in as many dimensions as the figure shows."""
    from eigenfeat.ldg import TransferLDG

    return TransferLDG(settings.LDG_MOST_DIMENSIONS)


def pooled_pca(context: Context) -> Any:
    """PCA of both domains together."""
    from eigenfeat.ldg import PooledPCA

    return PooledPCA(settings.LDG_MOST_DIMENSIONS)


def pooled_fisher(context: Context) -> Any:
    """Fisher's directions of both domains together."""
    from eigenfeat.ldg import PooledFisher

    return PooledFisher(ridge=settings.LDG_RIDGE)


METHODS = (
    Method("TransferLDG", transfer_ldg),
    Method("pooled PCA", pooled_pca),
    Method("pooled FDA", pooled_fisher),
)


def _problem(source: str, target: str) -> Problem:
    return Problem(
        name=f"{source} to {target}",
        title=f"{source} to {target}",
        split="",
        file="office_surf.npz",
        arrays={f"{name}_{domain}": "word counts, labels" for domain in DOMAINS for name in "Xy"},
        load=partial(load, source=source, target=target),
        methods=METHODS,
        study=transfer,
    )


def tell(protocol: Protocol, outcomes: Sequence[Outcome]) -> Iterator[Any]:
    """Yield the table of Figure 4.5's accuracies in 15 dimensions, and how LDG fares in all."""
    yield from tell_of_sets(
        "Figure 4.5: accuracy in %, two labelled target rows a class, 15 dimensions (FDA: 9)",
        protocol.problems,
        outcomes,
        {},
        {},
    )
    for problem in protocol.problems:
        yield from _dimensions_won(problem, outcomes)
    if outcomes:
        yield (
            "The thesis shows curves and prints no figures. Its images are of 31 classes, these of "
            "the 10 that Caltech shares; its digits of MNIST and USPS are not at hand."
        )


def _dimensions_won(problem: Problem, outcomes: Sequence[Outcome]) -> Iterator[str]:
    done = {o.method: o for o in outcomes if o.problem == problem.name and o.splits}
    found = accuracies(problem, outcomes)
    ours = METHODS[0].name
    if ours not in done or len(done) < 2:
        return
    won = tied = 0
    dimensions = sorted(done[ours].splits[0].curve)
    for m in dimensions:
        # Fisher's directions end at one less than classes: beyond, its last stays.
        at = {
            name: [score.curve[min(m, max(score.curve))] for score in outcome.splits]
            for name, outcome in done.items()
        }
        means = {name: float(np.mean(values)) for name, values in at.items()}
        won += means[ours] >= max(means.values())
        tied += ours in best_or_tied(at)
    alphas = [score.parameters.get("alpha") for score in done[ours].splits]
    nonzero = sum(alpha is not None and alpha > 0 for alpha in alphas)
    yield (
        f"{problem.name}: {ours} on top in {won} of {len(dimensions)} dimensions, best or tied in "
        f"{tied}; alpha above 0 in {nonzero} of {len(found[ours])} splits"
    )


PROTOCOL = Protocol(
    "ldg-transfer",
    "transfer LDG on product images, Figure 4.5 of the thesis",
    tuple(_problem(source, target) for source, target in permutations(DOMAINS, 2)),
    report=Report(tell, write_splits, ldg_pictures.draw_transfer),
)
