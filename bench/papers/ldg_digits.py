"""Digits in Figures 4.5 and 4.6 of the thesis: MNIST with help from USPS, and the reverse."""

from __future__ import annotations

from functools import partial
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from bench.papers.families import Codes
from bench.papers.ldg_transfer import METHODS, REDUCED, REPORT, Domains, transfer
from bench.papers.protocol import Context, Problem, Protocol, read_arrays
from bench.papers.scattering import scattering

PER_CLASS, QUICK_PER_CLASS = 300, 20  # section 4.5.1
SIDE = 16  # of a USPS image
USPS = "usps.npz"
PAIRS = (("mnist", "usps"), ("usps", "mnist"))


def load(path: Path, context: Context, *, source: str, target: str, scattered: bool) -> Domains:
    """Return so many random digits a class of both, as 16 x 16 pixels or what these scatter."""
    found: dict[str, tuple[NDArray[Any], Codes]] = {}
    for name, file in (("mnist", path), ("usps", path.with_name(USPS))):
        X, y = read_arrays(file, "X_train", "y_train")
        kept = _some(y, QUICK_PER_CLASS if context.quick else PER_CLASS, context.seed)
        side = round(X.shape[1] ** 0.5)
        images = resized(X[kept].reshape(-1, side, side).astype(np.float64), SIDE)
        rows = scattering(images / 255) if scattered else images
        found[name] = rows.reshape(len(rows), -1).astype(np.float64), y[kept].astype(np.int64)
    return Domains(*found[source], *found[target])


def _some(y: NDArray[Any], count: int, seed: int) -> NDArray[np.intp]:
    random = np.random.RandomState(seed)
    return np.concatenate(
        [random.permutation(np.flatnonzero(y == c))[:count] for c in np.unique(y)]
    )


def resized(images: NDArray[np.float64], side: int) -> NDArray[np.float64]:
    """Return images (n, size, size) in another size, by linear interpolation.

    What is made smaller is averaged with weights that fall to 0 at the next pixel's centre.
    """
    scale = images.shape[1] / side
    centres = (np.arange(side)[:, None] + 0.5) * scale - 0.5
    gaps = np.abs(centres - np.arange(images.shape[1])) / max(scale, 1.0)
    weights = np.maximum(0.0, 1.0 - gaps)
    weights /= weights.sum(axis=1, keepdims=True)
    return weights @ images @ weights.T


def digits(pair: tuple[str, str], scattered: bool) -> Problem:
    """Return the problem of a source and a target."""
    source, target = pair
    name = f"{source} to {target}{', scattered' if scattered else ''}"
    arrays = {"X_train": "(n, 784) pixels 0..255", "y_train": "(n,) digits"}
    beside = {USPS: {"X_train": "(n, 256) pixels 0..255", "y_train": "(n,) digits"}}
    loaded = partial(load, source=source, target=target, scattered=scattered)
    methods = REDUCED if scattered else METHODS
    return Problem(
        name, name, "", "mnist.npz", arrays, loaded, methods, study=transfer, beside=beside
    )


PROTOCOLS = {
    "ldg-digits": Protocol(
        "ldg-digits",
        tuple(digits(pair, scattered) for scattered, pair in product((False, True), PAIRS)),
        REPORT,
    )
}
