"""Sections about directions: their spectrum, and their weights as images or as a table."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from eigenfeat.plotting import FiltersDisplay, SpectrumDisplay
from eigenfeat.plotting.arguments import new_figure, plain
from eigenfeat.plotting.colours import BAND, FILTER_COLOURS
from eigenfeat.report.html import Section, bar, figure, paragraph, table

if TYPE_CHECKING:
    from scipy.sparse import csr_array
    from sklearn.base import BaseEstimator

    from eigenfeat._base.types import Floats

__all__ = ["Linear", "filters", "image_shape_of", "linear_part", "of_pairs", "spectrum", "weights"]

MOST_IMAGES, MOST_COLUMNS, MOST_DENSE = 15, 12, 20_000


@dataclass(frozen=True, eq=False)
class Linear:
    """Directions in the columns of rows.

    Attributes
    ----------
    weights : (m, d) array
        A direction a row, in the units of the rows.
    values : (m,) array or None
        Their eigenvalues.
    of : str
        What the eigenvalues are.
    """

    weights: NDArray[np.float64]
    values: NDArray[np.float64] | None
    of: str


def parts_of(model: BaseEstimator) -> list[BaseEstimator]:
    """The model and those inside it that see its own columns, from the outside."""
    found = [model]
    while True:
        last = found[-1]
        inner = getattr(last, "best_estimator_", None)
        inner = getattr(last, "extractor_", None) if inner is None else inner
        if inner is None and hasattr(last, "steps") and last.steps:
            inner = last.steps[0][1]
        if inner is None or len(found) > 5:
            return found
        found.append(inner)


def of_pairs(model: BaseEstimator) -> BaseEstimator | None:
    """The GEM, or the classifier, whose directions belong to pairs of classes; None without one."""
    for part in parts_of(model):
        layers = getattr(part, "layers_", None)
        if layers:
            dense = isinstance(layers[0].directions, np.ndarray)
            return part if dense and len(layers[0].offset) else None
        named = hasattr(part, "pairs_") and hasattr(part, "ranks_")
        if named and getattr(part, "n_features_in_", MOST_DENSE) < MOST_DENSE:
            return part if len(part.eigenvalues_) else None
    return None


def linear_part(model: BaseEstimator) -> Linear | None:
    """Directions of a reduction, such as LDG or what MaxMarginShift has fitted."""
    for part in parts_of(model):
        found = getattr(part, "components_", None)
        if found is None or hasattr(part, "layers_"):
            continue
        weights = np.atleast_2d(np.asarray(found, dtype=np.float64))
        if weights.shape[1] != getattr(part, "n_features_in_", weights.shape[1]):
            continue
        for name, told in (
            ("eigenvalues_", "eigenvalue"),
            ("explained_variance_", "variance along the component"),
        ):
            values = getattr(part, name, None)
            if values is not None and np.shape(values) == weights.shape[:1]:
                return Linear(weights, np.asarray(values, dtype=np.float64), told)
        return Linear(weights, None, "")
    return None


def spectrum(model: BaseEstimator) -> Section | None:
    """Eigenvalues, those of pairs of classes pair by pair."""
    section = Section("Spectrum")
    gem = of_pairs(model)
    if gem is not None:
        told = (
            "Left: eigenvalues of each pair by rank. Right: the largest of each pair; a pair with "
            "a large one is told apart by its first direction alone."
        )
        picture = SpectrumDisplay.from_estimator(gem).figure_
        section.parts.append(figure(picture, told, "eigenvalues of pairs of classes"))
        return section
    found = linear_part(model)
    if found is None or found.values is None or len(found.values) < 2:
        return None
    from matplotlib.ticker import MaxNLocator

    picture = new_figure(6.6, 3.4)
    ax = picture.subplots()
    ax.plot(np.arange(1, len(found.values) + 1), found.values, "o-", color=BAND, ms=4, lw=1.4)
    ax.set(xlabel="component", ylabel=found.of)
    ax.xaxis.set_major_locator(MaxNLocator(integer=True))
    plain(ax, grid="y")
    section.parts.append(
        figure(picture, "Eigenvalues in the order of the components.", "eigenvalues by component")
    )
    return section


def filters(model: BaseEstimator, shape: tuple[int, int] | None) -> Section | None:
    """Directions as images."""
    if shape is None:
        return None
    section = Section("Filters")
    gem = of_pairs(model)
    if gem is not None:
        picture = FiltersDisplay.from_estimator(gem, image_shape=shape).figure_
        told = (
            "The directions with the largest eigenvalues, as images. Red pixels count for, blue "
            "ones against the direction."
        )
        section.parts.append(figure(picture, told, "directions as images"))
        return section
    found = linear_part(model)
    if found is None:
        return None
    count = min(len(found.weights), MOST_IMAGES)
    columns = min(5, count)
    lines = -(-count // columns)
    picture = new_figure(1.45 * columns + 0.4, 1.6 * lines + 0.2)
    axes = picture.subplots(lines, columns, squeeze=False)
    for place, ax in enumerate(axes.flat):
        ax.set(xticks=[], yticks=[])
        if place >= count:
            ax.set_axis_off()
            continue
        pixels = found.weights[place].reshape(shape)
        most = max(float(np.abs(pixels).max()), 1e-300)
        ax.imshow(pixels / most, cmap=FILTER_COLOURS, vmin=-1, vmax=1)
        ax.set_title(f"component {place + 1}", fontsize=9)
    told = "Components as images, each on its own scale: red is positive, blue negative."
    section.parts.append(figure(picture, told, "components as images"))
    return section


def weights(model: BaseEstimator, names: list[str], spread: NDArray[np.float64]) -> Section | None:
    """Columns with the largest weight in a reduction's directions."""
    found = linear_part(model)
    if found is None or found.weights.shape[1] != len(names):
        return None
    # LDG's components are in standardised columns already.
    standard = any(hasattr(part, "scale_") for part in parts_of(model))
    scaled = found.weights if standard else found.weights * spread
    squares = scaled**2
    total = float(squares.sum())
    if not total > 0:
        return None
    share = squares.sum(axis=0) / total
    order = np.argsort(-share, kind="stable")[:MOST_COLUMNS]
    shown = min(3, len(scaled))
    lines = [
        (
            names[j],
            bar(share[j] / share[order[0]], f"{share[j]:.1%}"),
            *(f"{scaled[c, j]:+.3g}" for c in range(shown)),
        )
        for j in order
    ]
    head = ("column", "share of all weight", *(f"component {c + 1}" for c in range(shown)))
    section = Section("Weights of columns")
    section.parts.append(table(head, lines, words=(0, 1)))
    section.parts.append(
        paragraph(
            "Weights are those of columns divided by their standard deviations; the share is that "
            f"of squares over {len(scaled)} components. "
            + (f"The {len(order)} largest of {len(names)} columns." if len(names) > 12 else ""),
            kind="soft",
        )
    )
    return section


# ---- columns that are pixels ---------------------------------------------------------------------


def image_shape_of(
    wanted: tuple[int, int] | str | None, X: Floats | csr_array, d: int
) -> tuple[int, int] | None:
    """The shape of rows that are images; with "auto" square ones whose neighbours are alike.

    Columns are taken for pixels if d is a square of at least 5 x 5 and the mean correlations of
    neighbours in a row and in a column of the square both exceed that of columns half a side apart
    in both by 0.2.
    """
    if wanted is None:
        return None
    if not isinstance(wanted, str):
        rows, columns = (int(size) for size in wanted)
        if rows < 1 or columns < 1 or rows * columns != d:
            raise ValueError(f"image_shape: expected {d} pixels, got {rows} x {columns}")
        return rows, columns
    side = round(d**0.5)
    if side * side != d or side < 5 or getattr(X, "ndim", 2) != 2:
        return None
    first: Any = X[:500]
    dense = first.toarray() if hasattr(X, "toarray") else np.asarray(first, dtype=np.float64)
    if len(dense) < 20:
        return None
    spread = dense.std(axis=0)
    standard = (dense - dense.mean(axis=0)) / np.where(spread > 0, spread, 1)
    grid = standard.reshape(-1, side, side)
    varied = (spread > 0).reshape(side, side)

    def likeness(down: int, right: int) -> float:
        a, b = grid[:, down:, right:], grid[:, : side - down, : side - right]
        both = varied[down:, right:] & varied[: side - down, : side - right]
        return float((a * b).mean(axis=0)[both].mean()) if both.any() else 0.0

    near = min(likeness(0, 1), likeness(1, 0))
    return (side, side) if near > likeness(side // 2, side // 2) + 0.2 else None
