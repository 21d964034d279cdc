"""Names of the columns that expanded directions make."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray
from sklearn.utils.validation import _check_feature_names_in

from eigenfeat.expansion.features import check_powers, column_suffixes

if TYPE_CHECKING:
    from numpy.typing import ArrayLike

__all__ = ["NamedFeatures"]


class NamedFeatures:
    """Mixin with `get_feature_names_out` for estimators that expand directions of class pairs."""

    expansion: str
    powers: Sequence[int]
    include_input: bool

    def _found(self) -> Any:
        """Return the solution, with `pairs` and `ranks`."""
        raise NotImplementedError

    def get_feature_names_out(self, input_features: ArrayLike | None = None) -> NDArray[np.object_]:
        """Name the columns of `transform`, as in "gem_3_vs_2_rank0_pos_pow1".

        Parameters
        ----------
        input_features : (d,) array-like of str, optional
            Names of the input columns; they must be those seen in `fit`, if it saw names.

        Returns
        -------
        (columns,) array of str
            Numerator and denominator label (or name, as in "gem_3_vs_rest_rank0_pos_pow1"), rank
            within the pair, half wave, and power.
        """
        found = self._found()
        inputs = _check_feature_names_in(self, input_features)
        ranked = zip(found.pairs, found.ranks, strict=True)
        stems = [self._stem(pair, rank) for pair, rank in ranked]
        suffixes = column_suffixes(self.expansion, check_powers(self.powers))
        names = [stem + suffix for suffix in suffixes for stem in stems]
        return np.asarray([*inputs, *names] if self.include_input else names, dtype=object)

    def _stem(self, pair: Any, rank: int) -> str:
        return f"gem_{pair[0]}_vs_{pair[1]}_rank{rank}"

    @property
    def _n_features_out(self) -> int:
        return len(self.get_feature_names_out())
