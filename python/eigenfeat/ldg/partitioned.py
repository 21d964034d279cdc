"""Reduction of very many columns a part at a time (Parrish 2012, section 6.2)."""

from __future__ import annotations

from numbers import Integral
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.sparse import issparse, vstack
from sklearn.base import BaseEstimator as AnyEstimator
from sklearn.base import MetaEstimatorMixin, TransformerMixin, clone
from sklearn.utils import check_random_state, get_tags
from sklearn.utils._param_validation import HasMethods, Interval, StrOptions
from sklearn.utils.validation import check_is_fitted

from eigenfeat._base.saved import fits
from eigenfeat._base.types import Estimator, Floats, RandomState, Rows, Targets
from eigenfeat._base.validation import MOST, in_order, show
from eigenfeat.ldg.linear import LDG
from eigenfeat.samples.blocks import Block
from eigenfeat.samples.estimator import (
    BaseEstimator,
    given_blocks,
    keep_columns,
    unchanged_on_error,
    validate_data,
)
from eigenfeat.samples.out_of_core import all_targets, over_blocks

if TYPE_CHECKING:
    from eigenfeat.samples.blocks import RowBlocks

__all__ = ["PartitionedReducer"]

_Columns = NDArray[np.intp]


class PartitionedReducer(MetaEstimatorMixin, TransformerMixin, BaseEstimator):
    r"""Reduce the columns part by part, and put the features of all parts side by side.

    Use it where all columns together do not fit into memory. Choose `reducer` and `part_size`
    first. User guide: :doc:`/guide/reduction`.

    Methods that solve eigenproblems take a matrix of all d columns or of all n samples: where both
    are many, its memory and the time of the solver (d^3 or n^3) are out of reach. A partition of
    the columns into p parts takes p problems of d / p columns, :math:`p^2` times less arithmetic in
    the solver. Only one part of the samples is copied at a time. What columns of different parts
    have in common is lost to the reducer: another one after this sees it, as in
    ``make_pipeline(PartitionedReducer(LDG(10)), LDG(20))``.

    Parameters
    ----------
    reducer : transformer or None, default=None
        Cloned and fitted for each part, with labels if there are any; None: ``LDG()``.
    part_size : int >= 1, default=1000
        Maximum number of features of a part. The sizes of parts differ by at most one column.
    partition : {"contiguous", "random"} or (d,) array-like, default="contiguous"
        "contiguous": neighbouring columns stand in one part, as is good for pixels, samples and
        spectra. "random": columns are dealt at random, as in Rotation Forest. An array has a label
        for each column: columns with equal labels are a part, and `part_size` has no effect.
    random_state : int, RandomState or None, default=0
        For "random", and for reducers whose own `random_state` is None.

    Attributes
    ----------
    parts_ : list of arrays of int
        Columns of each part, ascending. Columns with one value in all training samples are in none.
    reducers_ : list of transformers
        Fitted to the parts.
    n_features_in_ : int
        d.
    feature_names_in_ : (d,) array of str
        Names of the input features, if they had names.

    Raises
    ------
    ValueError
        If samples, labels or parameters are invalid, no column varies, or a part cannot be reduced.

    See Also
    --------
    LDG : All columns at once.
    sklearn.compose.ColumnTransformer : Parts that you name.

    Notes
    -----
    Sparse samples become dense a part at a time, unless the reducer takes sparse ones. Blocks
    are read once for each part and once before; the columns of the part are held in memory, n
    times `part_size` numbers.

    References
    ----------
    N. Parrish, "Supervised Dimensionality Reduction for Different Learning Architectures", PhD
    thesis, University of Washington, 2012, section 6.2; J. J. Rodriguez, L. I. Kuncheva and
    C. J. Alonso, "Rotation Forest", IEEE Trans. PAMI 28, 2006.

    Examples
    --------
    >>> from sklearn.datasets import load_digits
    >>> from eigenfeat.ldg import LDG, PartitionedReducer
    >>> X, y = load_digits(return_X_y=True)
    >>> model = PartitionedReducer(LDG(4, gamma=0.3, n_neighbors=5), part_size=32).fit(X, y)
    >>> [len(part) for part in model.parts_], model.transform(X).shape
    ([31, 30], (1797, 8))
    """

    _saved: ClassVar[dict[str, str]] = {"parts_": "value", "reducers_": "value"}

    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        "reducer": [HasMethods(["fit", "transform"]), None],
        "part_size": [Interval(Integral, 1, MOST, closed="both")],
        "partition": [StrOptions({"contiguous", "random"}), "array-like"],
        "random_state": ["random_state"],
    }

    parts_: list[_Columns]
    reducers_: list[Any]

    def __init__(
        self,
        reducer: Estimator | None = None,
        *,
        part_size: int = 1000,
        partition: str | ArrayLike = "contiguous",
        random_state: RandomState = 0,
    ) -> None:
        self.reducer = reducer
        self.part_size = part_size
        self.partition = partition
        self.random_state = random_state

    def fit(self, X: Rows | RowBlocks, y: Targets = None) -> PartitionedReducer:
        """Fit a reducer to each part of the features.

        Parameters
        ----------
        X : (n, d) array-like, sparse matrix or RowBlocks
            Finite samples.
        y : (n,) array-like or None
            Labels, where the reducer needs them; None with blocks, which have their own.

        Returns
        -------
        PartitionedReducer
            The estimator itself. If an error is raised, it is unchanged.
        """
        with unchanged_on_error(self):
            self._validate_params()
            supervised = bool(get_tags(self._reducer()).target_tags.required)
            blocks = given_blocks(X, y, estimator=self, labelled=supervised)
            if blocks is None:
                X, y = self._in_memory(X, y, supervised)
                pieces: Any = [Block(X)]
            else:
                y, weight = all_targets(blocks) if supervised or y is not None else (None, None)
                if weight is not None:
                    raise ValueError("X: expected blocks without weights, got weights")
                pieces = blocks
                keep_columns(self, blocks, blocks.n_features)
            self.parts_ = self._parts(_varying(pieces))
            random = check_random_state(self.random_state)
            self.reducers_ = [
                self._seeded(random).fit(self._together(pieces, part), y) for part in self.parts_
            ]
        return self

    @over_blocks
    def transform(self, X: Rows | RowBlocks) -> Floats:
        """Reduce each part of the features.

        Parameters
        ----------
        X : (n, d) array-like, sparse matrix or RowBlocks
            Finite samples. For blocks the result is an iterator over blocks.

        Returns
        -------
        (n, m) array
            The features of the first part, then those of the second, and so on.
        """
        check_is_fitted(self)
        rows: Any = validate_data(self, X, accept_sparse=["csc", "csr"], reset=False)
        rows = _by_column(rows)
        result = [
            np.asarray(reducer.transform(self._of(rows, part)))
            for reducer, part in zip(self.reducers_, self.parts_, strict=True)
        ]
        return np.concatenate(result, axis=1)

    def get_feature_names_out(self, input_features: ArrayLike | None = None) -> NDArray[np.object_]:
        """Return the reducers' names, each after that of its part: ``part0_ldg0``."""
        check_is_fitted(self)
        names = [
            f"part{number}_{name}"
            for number, reducer in enumerate(self.reducers_)
            for name in reducer.get_feature_names_out()
        ]
        return np.array(names, dtype=object)

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        own = get_tags(self._reducer())
        tags.target_tags.required = own.target_tags.required
        tags.transformer_tags.preserves_dtype = own.transformer_tags.preserves_dtype
        tags.input_tags.sparse = True
        return tags

    def _reducer(self) -> AnyEstimator:
        return LDG() if self.reducer is None else clone(self.reducer)

    def _seeded(self, random: np.random.RandomState) -> AnyEstimator:
        """A reducer whose seeds are drawn, but for those that are given."""
        reducer = self._reducer()
        for name, value in sorted(reducer.get_params().items()):
            if name.split("__")[-1] == "random_state" and value is None:
                reducer.set_params(**{name: random.randint(2**31 - 1)})
        return reducer

    def _in_memory(self, X: Any, y: Any, supervised: bool) -> tuple[Any, Any]:
        """Checked rows in their own type, sparse ones by column, and labels if there are any."""
        options = {"accept_sparse": ["csc", "csr"], "ensure_min_samples": 2}
        if y is None and not supervised:
            X = validate_data(self, X, **options)
        else:
            X, y = validate_data(self, X, y, **options)
        return _by_column(X), y

    def _of(self, X: Any, part: _Columns) -> Any:
        """Some columns of rows, dense unless the reducer takes sparse ones."""
        result = X[:, part]
        if issparse(result) and not get_tags(self._reducer()).input_tags.sparse:
            result = result.toarray()
        return result.tocsr() if issparse(result) else np.ascontiguousarray(result)

    def _together(self, pieces: Any, part: _Columns) -> Any:
        """The part's columns of all rows."""
        result = [self._of(block.X, part) for block in pieces if len(block)]
        if len(result) == 1:
            return result[0]
        return vstack(result, format="csr") if issparse(result[0]) else np.concatenate(result)

    def _parts(self, varying: NDArray[np.bool_]) -> list[_Columns]:
        columns = np.flatnonzero(varying)
        if not len(columns):
            raise ValueError("X: expected columns that vary, got none")
        if not isinstance(self.partition, str):
            labels = np.asarray(self.partition)
            if labels.shape != varying.shape:
                raise ValueError(
                    f"partition: expected a label for each of {len(varying)} columns, got "
                    f"{show(self.partition)}"
                )
            return [columns[labels[columns] == one] for one in np.unique(labels[columns])]
        if self.partition == "random":
            columns = check_random_state(self.random_state).permutation(columns)
        count = -(-len(columns) // self.part_size)
        return [np.sort(part) for part in np.array_split(columns, count)]

    def _check_loaded(self) -> None:
        parts, d = self.parts_, self.n_features_in_
        fits(type(parts) is type(self.reducers_) is list, "PartitionedReducer.reducers_")
        fits(len(parts) == len(self.reducers_) > 0, "PartitionedReducer.reducers_")
        for part, reducer in zip(parts, self.reducers_, strict=True):
            sound = part.ndim == 1 and part.dtype.kind == "i" and part.size > 0
            fits(sound and part[0] >= 0 and part[-1] < d, "PartitionedReducer.parts_")
            fits((part[1:] > part[:-1]).all(), "PartitionedReducer.parts_")
            fits(reducer.n_features_in_ == len(part), "PartitionedReducer.reducers_")


def _by_column(X: Any) -> Any:
    """Sparse rows by column, with one entry for each place; those given stay as they are."""
    return in_order(X.tocsc()) if issparse(X) else X


def _varying(pieces: Any) -> NDArray[np.bool_]:
    """(d,): which columns have more than one value."""
    ranges = np.array([_range(block.X) for block in pieces if len(block)])
    if not len(ranges):
        raise ValueError("X: expected at least one sample, got none")
    if not np.isfinite(ranges).all():
        raise ValueError("X: expected finite numbers, got NaN or infinity")
    return np.asarray(ranges[:, 0].min(axis=0) < ranges[:, 1].max(axis=0))


def _range(X: Any) -> NDArray[np.float64]:
    """(2, d): the least and the largest number of each column."""
    ends = [X.min(axis=0), X.max(axis=0)]
    dense = [one.toarray() if issparse(one) else one for one in ends]
    return np.array([np.asarray(one, dtype=np.float64).ravel() for one in dense])
