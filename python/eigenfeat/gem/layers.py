"""Layers of GEM features: Algorithm 1, lines 1 to 5, once for each layer.

After a hidden layer, the input of the next layer consists of the shifted square roots of both half
waves of the projections, and a constant (Karampatziakis and Mineiro, ICML 2014, section 4.1).
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Sized
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from sklearn.base import clone

from eigenfeat.expansion.features import Layer, as_layer

if TYPE_CHECKING:
    from eigenfeat._base.types import Pairs
    from eigenfeat.gem.gem import GEM
    from eigenfeat.moments.class_moments import ClassMoments
    from eigenfeat.pencils.contrasts import Contrasts
    from eigenfeat.samples.labelled import LabelledSamples

__all__ = ["Depth", "hidden_pairs", "solve_layers"]


@dataclass(frozen=True)
class Depth:
    """Parameters of the layers of a classifier.

    Attributes
    ----------
    gem : GEM
        Parameters of the last layer, with seed and number of threads; not fitted.
    levels : int
        Number of layers.
    hidden_directions : int or "auto"
        Directions per pair in hidden layers.
    hidden_ridge : float, "auto" or None
        Ridge of hidden layers; None means that of `gem`.
    """

    gem: GEM
    levels: int = 1
    hidden_directions: int | str = "auto"
    hidden_ridge: float | str | None = None

    def layer(self, level: int, n_classes: int, n_samples: int, n_features: int) -> GEM:
        """The GEM of one layer, not fitted, for samples of these sizes."""
        gem: GEM = clone(self.gem)
        if level > 0:
            gem.set_params(constant=True, scale="none")
        if level == self.levels - 1:
            return gem
        sizes = n_classes, n_samples, n_features
        pairs, n_directions = hidden_pairs(gem.pairs, self.hidden_directions, *sizes)
        if self.hidden_ridge is not None:
            gem.ridge = self.hidden_ridge
        return gem.set_params(
            pairs=pairs, n_directions=n_directions, threshold=None, expansion="shifted", powers=(1,)
        )


def solve_layers(
    samples: LabelledSamples,
    depth: Depth,
    log: Callable[[str, float], None],
    moments: ClassMoments | None = None,
) -> tuple[list[Layer], GEM]:
    """Solve for the directions of each layer, from the moments of the features before it.

    Parameters
    ----------
    samples : LabelledSamples
    depth : Depth
    log : callable
        Receives a line about each layer, and the time when it began.
    moments : ClassMoments, optional
        Moments of the samples, if they are known.

    Returns
    -------
    layers : list of Layer
    first : GEM
        The fitted GEM of the first layer, with the moments and the scales of the columns.
    """
    sizes = len(samples.classes), samples.n_samples, samples.n_features
    first = depth.layer(0, *sizes).fit_samples(samples, moments)
    layers = [as_layer(first)]
    for level in range(1, depth.levels):
        started = time.perf_counter()
        sizes = len(samples.classes), samples.n_samples, layers[-1].width
        gem = depth.layer(level, *sizes).fit_samples(samples.mapped(layers, hidden=True))
        layers.append(as_layer(gem))
        log(f"layer {level + 1}: {len(gem.ranks_)} directions of {sizes[-1]} columns", started)
    return layers, first


# ---- directions of hidden layers -----------------------------------------------------------------
#
# A layer of F directions has 2 F + 1 features. The next layer stores the second moments
# of k classes twice, of the current block and of all samples before: 16 k (2 F + 1)^2 bytes.


_MAX_BYTES = 2**31  # of the next layer's moments
_MAX_GROUP_BYTES = 2**29  # of these moments with random groups of classes
_MAX_GROUP_PAIRS = 600
_MAX_DIRECTIONS = 20  # per pair
_PAIRS_PER_PARTITION = 30


def hidden_pairs(
    pairs: Pairs | Contrasts,
    n_directions: int | str,
    n_classes: int,
    n_samples: int,
    n_features: int,
) -> tuple[Pairs | Contrasts, int]:
    """Pairs of a hidden layer of k classes, and the number of directions of each pair.

    "auto" means 20 directions per pair, or fewer if the next layer's moments would take more than
    two gigabytes. If one direction for each pair of classes already takes more, "auto" pairs become
    random groups of classes, and the moments take at most half a gigabyte.

    The number of directions is at most the number of samples, because more would not raise the rank
    of the features; per pair it is at most the number of columns plus one for the constant.
    """
    if not isinstance(n_directions, str):
        return pairs, n_directions
    most = min(_directions(_MAX_BYTES, n_classes), n_samples)
    count = _count(pairs, n_classes)
    if isinstance(pairs, str) and pairs == "auto" and count > most:
        most = min(_directions(_MAX_GROUP_BYTES, n_classes), _MAX_GROUP_PAIRS, n_samples)
        count = max(most // _PAIRS_PER_PARTITION, 1) * _PAIRS_PER_PARTITION
        pairs = ("random_groups", count)
    return pairs, max(1, min(_MAX_DIRECTIONS, n_features + 1, most // count))


def _directions(n_bytes: int, n_classes: int) -> int:
    """The number of directions F whose features' moments take `n_bytes`."""
    return (math.isqrt(n_bytes // (16 * n_classes)) - 1) // 2


def _count(pairs: Any, k: int) -> int:
    """Number of pairs; within a factor of two if it depends on the samples."""
    if isinstance(pairs, tuple) and len(pairs) == 2 and isinstance(pairs[0], str):
        return max(int(pairs[1]), 1)
    if not isinstance(pairs, str):
        return max(len(pairs), 1) if isinstance(pairs, Sized) else 1
    cube = k * max((k - 1).bit_length(), 1)
    kinds = {"one_vs_rest": 2 * k, "class_tree": 2 * (k - 1), "confusion": 6 * k}
    kinds |= {"all": k * (k - 1), "auto": k * (k - 1), "random_groups": 600}
    return min(kinds.get(pairs, cube), max(k * (k - 1), 600))
