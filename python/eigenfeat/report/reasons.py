"""What a prediction rests on: columns that are missed most, and directions."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from eigenfeat.expansion.layers import layer_features
from eigenfeat.plotting.arguments import new_figure
from eigenfeat.report.directions import parts_of
from eigenfeat.report.evidence import Evidence, quietly
from eigenfeat.report.html import Html, Section, bar, figure, paragraph, table

if TYPE_CHECKING:
    from sklearn.base import BaseEstimator

__all__ = ["column_costs", "reasons"]

MOST_ROWS, MOST_GROUPS, SHOWN = 400, 256, 12
MOST_CHANGED = 2e8  # entries of rows that are predicted again


def reasons(
    model: BaseEstimator,
    evidence: Evidence,
    names: list[str],
    shape: tuple[int, int] | None,
    random_state: int,
) -> Section:
    """Importance of columns by permutation and, of one layer of GEM, of directions."""
    section = Section("What a prediction rests on")
    groups = column_groups(len(names), shape)
    costs, unit = column_costs(model, evidence, groups, random_state)
    rows = min(len(evidence), MOST_ROWS)
    drawn = "all rows" if rows == len(evidence) else f"{rows} rows drawn at random"
    section.parts.append(
        paragraph(
            f"Each column in turn, or each group of neighbours, takes its values from other rows, "
            f"so that it says nothing about its own. What that costs, as the rise in {unit}, is "
            f"how much predictions rest on it beside all others; columns that can stand in for "
            f"each other cost little each. Measured on {drawn}."
        )
    )
    if shape is not None:
        section.parts.append(_heat(costs, groups, shape, unit))
    else:
        section.parts.append(_column_table(costs, groups, names, unit))
    of_directions = _directions(model, evidence)
    if of_directions is not None:
        section.parts += of_directions
    return section


def column_groups(d: int, shape: tuple[int, int] | None) -> list[NDArray[np.intp]]:
    """Columns that are changed together: single ones, or neighbours where there are too many."""
    if shape is None:
        return list(np.array_split(np.arange(d), min(d, MOST_GROUPS)))
    tile = 1
    while -(-shape[0] // tile) * -(-shape[1] // tile) > MOST_GROUPS:
        tile += 1
    at = np.arange(d).reshape(shape)
    return [
        at[i : i + tile, j : j + tile].ravel()
        for i in range(0, shape[0], tile)
        for j in range(0, shape[1], tile)
    ]


def column_costs(
    model: BaseEstimator, evidence: Evidence, groups: list[NDArray[np.intp]], random_state: int
) -> tuple[NDArray[np.float64], str]:
    """Rise in loss for each group of columns, and the name of the loss."""
    rng = np.random.default_rng(random_state)
    n = len(evidence)
    most = int(np.clip(MOST_CHANGED / max(len(groups), 1) / evidence.X.shape[1], 50, MOST_ROWS))
    some = np.sort(rng.permutation(n)[:most])
    X = evidence.X[some]
    X = X.toarray() if hasattr(X, "toarray") else np.array(X)
    true = evidence.true[some]
    loss, unit = _loss(model, evidence, true)
    start = loss(X)
    costs = np.zeros(len(groups))
    others = rng.permutation(len(some))
    for place, columns in enumerate(groups):
        kept = X[:, columns].copy()
        X[:, columns] = kept[others]
        costs[place] = loss(X) - start
        X[:, columns] = kept
    return costs, unit


def _loss(
    model: Any, evidence: Evidence, true: NDArray[np.intp]
) -> tuple[Callable[[Any], float], str]:
    if evidence.chances is not None:

        def log_loss(X: Any) -> float:
            with quietly():
                chances = np.asarray(model.predict_proba(X), dtype=float)
            right = chances[np.arange(len(true)), true]
            return float(-np.log(np.maximum(right, 1e-12)).mean())

        return log_loss, "log loss"
    labels = evidence.classes[true]

    def errors(X: Any) -> float:
        with quietly():
            return float(np.mean(np.asarray(model.predict(X)) != labels))

    return errors, "the share of errors"


def _column_table(
    costs: NDArray[np.float64], groups: list[NDArray[np.intp]], names: list[str], unit: str
) -> Html:
    order = np.argsort(-costs, kind="stable")[:SHOWN]
    most = max(float(costs.max()), 1e-300)
    lines = []
    for g in order:
        first, last = int(groups[g][0]), int(groups[g][-1])
        name = names[first] if first == last else f"{names[first]} \u2026 {names[last]}"
        lines.append((name, bar(costs[g] / most, f"{costs[g]:+.4f}")))
    what = "column" if len(groups) == len(names) else "columns"
    return table((what, f"rise in {unit}"), lines, words=(0, 1))


def _heat(
    costs: NDArray[np.float64], groups: list[NDArray[np.intp]], shape: tuple[int, int], unit: str
) -> Html:
    pixels = np.zeros(shape[0] * shape[1])
    for cost, columns in zip(costs, groups, strict=True):
        pixels[columns] = cost / len(columns)
    picture = new_figure(4.8, 3.9)
    ax = picture.subplots()
    most = max(float(np.abs(pixels).max()), 1e-300)
    image = ax.imshow(pixels.reshape(shape), cmap="Blues", vmin=0, vmax=most)
    ax.set(xticks=[], yticks=[])
    picture.colorbar(image, ax=ax, label=f"rise in {unit}, a pixel")
    return figure(picture, "Pixels that predictions rest on.", "importance of pixels")


def _directions(model: Any, evidence: Evidence) -> list[Html] | None:
    """Directions by what they add to the margin of the predicted class over the next one."""
    found = [part for part in parts_of(model) if hasattr(part, "layers_")]
    part = found[0] if found else None
    if part is None or len(part.layers_) != 1 or evidence.chances is None:
        return None
    layer, logit = part.layers_[0], part.logit_
    if part.include_input or not len(layer.offset):
        return None
    X = evidence.X[:MOST_ROWS]
    first, second = np.argsort(-evidence.chances[:MOST_ROWS], axis=1, kind="stable")[:, :2].T
    phi = layer_features(np.asarray(X, np.float32) if isinstance(X, np.ndarray) else X, [layer],
                         False, part.n_threads).toarray()  # fmt: skip
    W = logit.coef_ if len(logit.coef_) > 1 else np.vstack([0 * logit.coef_[0], logit.coef_[0]])
    added = phi * (W[first] - W[second])
    by_direction = np.abs(added.reshape(len(phi), -1, len(layer.offset)).sum(axis=1)).mean(axis=0)
    total = max(float(by_direction.sum()), 1e-300)
    order = np.argsort(-by_direction, kind="stable")[:SHOWN]
    lines = [
        (
            f"{layer.pairs[f, 0]} against {layer.pairs[f, 1]}",
            int(layer.ranks[f]) + 1,
            f"{layer.eigenvalues[f]:.3g}",
            bar(by_direction[f] / by_direction[order[0]], f"{by_direction[f] / total:.1%}"),
        )
        for f in order
    ]
    head = ("direction of the pair", "rank", "eigenvalue", "share of the margin")
    text = (
        "The logit adds up what directions say. For each one: the mean absolute part in the "
        "difference of the two most probable classes\u2019 logits, as a share of the sum over all "
        f"{len(layer.offset)} directions."
    )
    return [paragraph(text), table(head, lines, words=(0, 3))]
