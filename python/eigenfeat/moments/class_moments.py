"""Class moments: first and second moments of the samples of each class."""

from __future__ import annotations

import threading
from collections.abc import Hashable, Iterable, Sequence
from contextlib import ExitStack
from typing import Any, TypeGuard

import numpy as np
import numpy.typing as npt
from numpy.typing import ArrayLike

from eigenfeat._base import threads as _threads
from eigenfeat._base.core import core
from eigenfeat._base.labels import LabelTable
from eigenfeat._base.types import DType, Labels, Rows, Weights
from eigenfeat._base.validation import (
    CsrRows,
    RealArray,
    check_dtype,
    check_memory,
    check_rows,
    check_same_names,
    check_weights,
    checked_names,
    names_of,
    show,
    varying,
)
from eigenfeat.moments.few_samples import FewSamples

__all__ = [
    "ClassMoments",
    "column_deviations",
    "ledoit_wolf",
    "moments_of_groups",
    "pooled_mean",
    "shares_and_means",
]

_MIN_KEPT_COLUMNS = 200  # with fewer columns, matrices are small
_MAX_BYTE_ROWS = 1 << 22  # samples per call, so that integer sums fit 64 bits
_ALTERNATIVE = "eigenfeat.gem.RandomizedGEM, which forms no such matrices"
_Array = npt.NDArray[np.float64]


class ClassMoments:
    r"""Weights, means and second moments of the samples of each class.

    For each class :math:`c` with samples :math:`x_i` and weights :math:`w_i`:

    .. math::

        W_c = \sum_i w_i, \quad \mu_c = \sum_i w_i x_i / W_c, \quad
        S_c = \sum_i w_i (x_i - \mu_c)(x_i - \mu_c)^T

    The second moment is :math:`C_c = S_c / W_c + \mu_c \mu_c^T` (Karampatziakis and Mineiro 2014,
    eq. 2), the covariance :math:`S_c / W_c`. Samples may arrive in batches of any size, which are
    merged by the rule of Chan, Golub and LeVeque (1983): results differ by rounding errors only,
    also for means far from zero, and are bit-for-bit identical for any number of threads. User
    guide: :doc:`/guide/moments`.

    Parameters
    ----------
    classes : array-like of shape (k,), optional
        All labels. Any other label is then an error. By default, every new label adds a class.
    dtype : {None, float32, float64}, default=None
        Arithmetic type of the products of samples. None: float32 for float32 samples, float64 for
        all others. Sums are always in float64.
    feature_names : sequence of str, optional
        Names of the columns, by default the names of the first data frame. They are compared by
        `merge`, and passed on to estimators that are fitted to the moments.

    Attributes
    ----------
    classes_ : ndarray of shape (k,)
        Labels seen or given, sorted.
    n_features_in_ : int
        Number of columns; not defined before the first batch.
    feature_names_in_ : ndarray of shape (d,)
        Names of the columns; not defined if they have none.

    Notes
    -----
    An update or merge that raises leaves the object unchanged. Several Python threads may share an
    object: its methods hold a lock. Memory: ``k * d * d * 8`` bytes. With at least 200 columns and
    at most half as many samples, copies of the samples are kept until a matrix is requested.
    `eigenfeat.save` and `eigenfeat.load` keep every bit.

    Examples
    --------
    >>> import numpy as np
    >>> from eigenfeat import ClassMoments
    >>> moments = ClassMoments().update([[1.0, 2.0], [3.0, 4.0], [0.0, 1.0]], ["a", "a", "b"])
    >>> moments
    ClassMoments(2 classes, 2 features, weight 3)
    >>> moments.mean("a")
    array([2., 3.])
    >>> moments.covariance("a")
    array([[1., 1.],
           [1., 1.]])
    """

    __hash__ = None  # type: ignore[assignment]

    def __init__(
        self,
        classes: npt.ArrayLike | None = None,
        dtype: npt.DTypeLike | None = None,
        feature_names: Iterable[str] | None = None,
    ) -> None:
        self._table = LabelTable() if classes is None else LabelTable.of(classes)
        self._dtype = check_dtype(dtype)
        self._names = checked_names(feature_names)
        self._single = False  # whether products were rounded to float32
        self._accumulated: core.ClassMoments | None = None
        self._kept_samples: FewSamples | None = None
        self._lock = threading.RLock()

    @property
    def classes_(self) -> Labels:
        """Labels seen or given, sorted; shape (k,)."""
        return self._table.classes

    @property
    def active_classes(self) -> Labels:
        """Labels of the classes of positive weight."""
        with self._lock:
            classes, positions = self.classes_, self._table.positions
            active = [self._weight_at(positions[c]) > 0 for c in classes.tolist()]
            return classes[np.array(active, dtype=bool)]

    @property
    def n_features_in_(self) -> int:
        """Number of columns."""
        d = self._width()
        if d is None:
            raise AttributeError("ClassMoments has no n_features_in_ before its first update")
        return d

    @property
    def feature_names_in_(self) -> npt.NDArray[np.object_]:
        """Names of the columns."""
        if self._names is None:
            raise AttributeError("ClassMoments has no feature_names_in_: its columns have no names")
        return np.array(self._names, dtype=object)

    @property
    def dtype(self) -> DType | None:
        """Dtype of the products; None means the dtype of the samples."""
        return self._dtype

    @property
    def product_dtype(self) -> DType:
        """float32 if any products were rounded to float32; otherwise float64."""
        return np.dtype(np.float32 if self._single else np.float64)

    def update(
        self, X: Rows, y: ArrayLike, sample_weight: Weights = None, *, n_threads: int | None = None
    ) -> ClassMoments:
        """Add a batch of samples.

        Parameters
        ----------
        X : array-like or sparse matrix, shape (n, d)
            Samples. float32 and float64 are not converted; other numbers become float64. For
            uint8 arrays in C order without weights, products are summed in integers, exactly up to
            the final rounding. CSR matrices are never densified as a whole. Arrays in Fortran order
            are copied; results are bit-for-bit those of C order.
        y : array-like of shape (n,)
            Labels: numbers, strings or other values that can be ordered.
        sample_weight : array-like of shape (n,), optional
            Weights >= 0; all 1 by default. A sample of weight 0 only adds its class.
        n_threads : int, optional
            Number of threads; all by default.

        Returns
        -------
        ClassMoments
            This object.

        Raises
        ------
        ValueError
            If X has NaN or infinity (the message gives row and column), another number of columns
            than before, or other column names or another order of them; if a label is missing or
            not among the given classes; or if a weight is negative.
        MemoryError
            If the matrices of all classes would not fit into memory.
        """
        with self._lock:
            columns = self._known_columns()
            as_bytes = sample_weight is None and _are_bytes(X) and not self._keeps(*X.shape)
            threads = _threads.resolve(n_threads)
            rows: Any = X
            # Bytes are always finite, so that the first row shows every possible error.
            checked = check_rows(
                rows[:1] if as_bytes else rows,
                dtype=self._dtype,
                n_columns=columns,
                by_columns=True,
            )
            rows = rows if as_bytes else checked
            n, d = rows.shape
            codes, table = self._table.encode(y, n)
            weights = None if sample_weight is None else check_weights(sample_weight, n)
            names = self._names
            if not isinstance(X, np.ndarray):
                names = check_same_names(names, names_of(X), "X")
            samples = None
            if not as_bytes and self._keeps(n, d):
                samples = (self._kept_samples or FewSamples(d)).added(rows, codes, weights)
            if samples is None:
                formed = self._with_room(len(table.labels), d)
                _update(formed, rows, codes, weights, threads)
                self._accumulated = formed
            self._kept_samples, self._table, self._names = samples, table, names
            entries = rows.data if isinstance(rows, CsrRows) else rows
            self._single |= entries.dtype == np.float32
        return self

    def add_scatter(self, c: Hashable, scatter: ArrayLike) -> ClassMoments:
        """Add a matrix to the scatter of a class, without changing its mean.

        If missing entries were replaced by conditional means, adding the weighted sum of the
        conditional covariances gives the expected moments.

        Parameters
        ----------
        c : label
            A class with samples.
        scatter : (d, d) array-like
            Symmetric positive semidefinite matrix; neither property is checked.

        Returns
        -------
        ClassMoments
            These moments.

        Raises
        ------
        ValueError
            If the class is unknown or has no weight, or the matrix is not finite or not (d, d).
        """
        with self._lock:
            core, index = self._class(c)
            added, d = np.asarray(scatter, dtype=np.float64), core.n_features
            if added.shape != (d, d) or not np.isfinite(added).all():
                raise ValueError(
                    f"scatter: expected finite numbers of shape ({d}, {d}), got {show(added)}"
                )
            packed = core.packed_scatter(index) + added[np.tril_indices(d)]
            high, low = core.mean_high(index), core.mean_low(index)
            core.restore(index, core.weight(index), high, low, packed)
        return self

    def merge(self, other: ClassMoments, *, n_threads: int | None = None) -> ClassMoments:
        """Add all samples of another accumulator.

        Associative and commutative up to rounding. `other` is not changed.

        Parameters
        ----------
        other : ClassMoments
            Moments of samples with the same columns.
        n_threads : int, optional
            Number of threads; all by default.

        Returns
        -------
        ClassMoments
            This object.

        Raises
        ------
        ValueError
            If the numbers of columns differ, or their names if both objects have names, or `other`
            has classes that this object does not accept.
        """
        if not isinstance(other, ClassMoments):
            raise ValueError(f"other: expected ClassMoments, got {show(other)}")
        threads = _threads.resolve(n_threads)
        with _both_locked(self, other):
            theirs = other._table
            table = self._table
            if theirs.labels != table.labels:
                dtype = theirs.dtype or np.dtype(np.int64)
                table = table.joined(theirs.labels, dtype, "other")
            ours, others = self._known_columns(), other._known_columns()
            if ours is not None and others is not None and ours != others:
                raise ValueError(f"other: expected {ours} columns, got {others}")
            names = self._names
            if other._names is not None:
                names = check_same_names(names, other._names, "other")
            if other._width() is not None:
                self._merge_samples(other, table, threads)
            elif self._accumulated is not None:
                self._with_room(len(table.labels), self._accumulated.n_features)
            self._table, self._names = table, names
            self._single |= other._single
        return self

    def _merge_samples(self, other: ClassMoments, table: LabelTable, n_threads: int) -> None:
        places = [table.positions[label] for label in other._table.labels]
        added = other._kept_samples
        if added is not None and self._keeps(added.n_samples, added.n_features):
            class_map = np.array(places, dtype=np.int32)
            samples = self._kept_samples or FewSamples(added.n_features)
            self._kept_samples = samples.merged(added, class_map)
            return
        theirs = other._core
        assert theirs is not None  # `other` has samples
        formed = self._with_room(len(table.labels), theirs.n_features)
        class_map = np.zeros(theirs.n_classes, dtype=np.int32)  # unlabelled classes are empty
        class_map[: len(places)] = places
        formed.merge(theirs.copy() if theirs is formed else theirs, class_map, n_threads)
        self._accumulated = formed

    @property
    def _core(self) -> core.ClassMoments | None:
        """Return the core's moments; kept samples are accumulated now."""
        with self._lock:
            samples = self._kept_samples
            if samples is not None:
                k, d = len(self._table), samples.n_features
                check_memory("ClassMoments", k, d, _ALTERNATIVE)
                formed = core.ClassMoments(k, d)
                for batch in samples.batches:
                    _update(formed, batch.rows, batch.codes, batch.weights, _threads.resolve(None))
                self._accumulated, self._kept_samples = formed, None
            return self._accumulated

    def _keeps(self, n: int, d: int) -> bool:
        """Whether samples are kept after n more of d columns."""
        total = n + (0 if self._kept_samples is None else self._kept_samples.n_samples)
        return self._accumulated is None and d >= _MIN_KEPT_COLUMNS and 2 * total <= d

    def _width(self) -> int | None:
        """Number of columns of the samples so far."""
        with self._lock:
            if self._kept_samples is not None:
                return self._kept_samples.n_features
            return None if self._accumulated is None else self._accumulated.n_features

    def _known_columns(self) -> int | None:
        width = self._width()
        return len(self._names) if width is None and self._names is not None else width

    def _with_room(self, n_classes: int, n_features: int) -> core.ClassMoments:
        """Return the core with at least this many classes; extra empty classes are hidden."""
        formed = self._core
        if formed is not None and formed.n_classes >= n_classes:
            return formed
        check_memory("ClassMoments", n_classes, n_features, _ALTERNATIVE)
        if formed is None:
            return core.ClassMoments(n_classes, n_features)
        formed.grow(n_classes)
        return formed

    def _class(self, label: Any) -> tuple[core.ClassMoments, int]:
        index = self._with_weights([label])[0]
        core = self._core
        assert core is not None  # at least one class has weight
        return core, index

    def _with_weights(self, labels: Sequence[Hashable]) -> list[int]:
        positions = self._table.positions
        try:
            indices = [positions[label] for label in labels]
        except (KeyError, TypeError):  # the error of `index` names the unknown class
            indices = [self._table.index(label) for label in labels]
        for label, index in zip(labels, indices, strict=True):
            if not self._weight_at(index) > 0:
                raise ValueError(
                    f"class: expected a class with samples of positive weight, got {show(label)}"
                )
        return indices

    def _weight_at(self, index: int) -> float:
        sums = self._kept_samples or self._accumulated
        return 0.0 if sums is None else sums.weight(index)

    def weight(self, c: Hashable) -> float:
        """Return the sum of the weights of the samples of a class.

        Parameters
        ----------
        c : label
            One of `classes_`.

        Returns
        -------
        float

        Raises
        ------
        ValueError
            If the class is unknown.
        """
        with self._lock:
            return self._weight_at(self._table.index(c))

    def mean(self, c: Hashable) -> _Array:
        """Return the mean of a class.

        Parameters
        ----------
        c : label
            A class with weight.

        Returns
        -------
        (d,) array

        Raises
        ------
        ValueError
            If the class is unknown or has no weight.
        """
        with self._lock:
            return self._mean_at(self._with_weights([c])[0])

    def _mean_at(self, index: int) -> _Array:
        if self._kept_samples is not None:
            return self._kept_samples.mean(index)
        assert self._accumulated is not None  # the class has weight
        return self._accumulated.mean_high(index) + self._accumulated.mean_low(index)

    def weights_and_means(self, classes: Sequence[Hashable]) -> tuple[_Array, _Array]:
        """Return the weights and means of several classes.

        Parameters
        ----------
        classes : sequence of k labels
            Classes with weight.

        Returns
        -------
        weights : (k,) array
            Sums of the weights of the samples.
        means : (k, d) array
            Means of the classes.

        Raises
        ------
        ValueError
            If a class is unknown or has no weight.
        """
        with self._lock:
            indices = self._with_weights(classes)
            weights = np.array([self._weight_at(i) for i in indices])
            return weights, np.array([self._mean_at(i) for i in indices])

    def variance(self, c: Hashable) -> _Array:
        """Return the variances of the columns in a class.

        Parameters
        ----------
        c : label
            A class with weight.

        Returns
        -------
        (d,) array

        Raises
        ------
        ValueError
            If the class is unknown or has no weight.
        """
        return self.variances([c])[0]

    def variances(self, classes: Sequence[Hashable]) -> list[_Array]:
        """Return the variances of the columns in each of several classes.

        Parameters
        ----------
        classes : sequence of k labels
            Classes with weight.

        Returns
        -------
        list of k (d,) arrays

        Raises
        ------
        ValueError
            If a class is unknown or has no weight.
        """
        with self._lock:
            indices, formed = self._with_weights(classes), self._accumulated
            if self._kept_samples is not None:
                return [self._kept_samples.variance(index) for index in indices]
            return [] if formed is None else [np.diag(formed.covariance(i)).copy() for i in indices]

    @property
    def keeps_samples(self) -> bool:
        """Whether `few_samples` returns samples."""
        return self._kept_samples is not None

    def few_samples(self) -> tuple[_Array, Labels, _Array] | None:
        """Return the samples, if they were kept.

        Samples are kept if there are at least 200 columns and at most half as many samples, until
        a matrix is requested.

        Returns
        -------
        X : (n, d) array
            Samples.
        y : (n,) array
            Labels.
        weight : (n,) array
            Weights of the samples. If the samples were not kept, the result is None instead.
        """
        with self._lock:
            if self._kept_samples is None:
                return None
            X, codes, weights = self._kept_samples.samples
            labels = np.empty(len(self._table), dtype=self._table.dtype)
            labels[:] = self._table.labels
            return X, labels[codes], weights

    def second_moment(self, c: Hashable) -> _Array:
        """Return the second moment of a class, E[x x^T | c] (eq. 2).

        Parameters
        ----------
        c : label
            A class with weight.

        Returns
        -------
        (d, d) array

        Raises
        ------
        ValueError
            If the class is unknown or has no weight.
        """
        with self._lock:
            core, index = self._class(c)
            return core.second_moment(index)

    def covariance(self, c: Hashable) -> _Array:
        """Return the covariance of a class, E[(x - mu_c)(x - mu_c)^T | c].

        Parameters
        ----------
        c : label
            A class with weight.

        Returns
        -------
        (d, d) array

        Raises
        ------
        ValueError
            If the class is unknown or has no weight.
        """
        return self.covariances([c])[0]

    def covariances(self, classes: Sequence[Hashable]) -> list[_Array]:
        """Return the covariances of several classes.

        Parameters
        ----------
        classes : sequence of k labels
            Classes with weight.

        Returns
        -------
        list of k (d, d) arrays

        Raises
        ------
        ValueError
            If a class is unknown or has no weight.
        """
        with self._lock:
            indices, core = self._with_weights(classes), self._core
            return [] if core is None else [core.covariance(index) for index in indices]

    def copy(self) -> ClassMoments:
        """Return an independent copy.

        Returns
        -------
        ClassMoments
        """
        with self._lock:
            twin = type(self).__new__(type(self))
            twin._table, twin._dtype, twin._lock = self._table, self._dtype, threading.RLock()
            twin._names, twin._single = self._names, self._single
            twin._accumulated = None if self._accumulated is None else self._accumulated.copy()
            twin._kept_samples = self._kept_samples
            return twin

    def __deepcopy__(self, memo: Any) -> ClassMoments:
        return self.copy()

    def __add__(self, other: object) -> ClassMoments:
        return self.copy().merge(other) if isinstance(other, ClassMoments) else NotImplemented

    def __iadd__(self, other: object) -> ClassMoments:
        return self.merge(other) if isinstance(other, ClassMoments) else NotImplemented

    def __eq__(self, other: object) -> bool:
        """Whether classes and numbers are equal bit for bit, in any order of classes."""
        if not isinstance(other, ClassMoments):
            return NotImplemented
        with _both_locked(self, other):
            if set(self._table.labels) != set(other._table.labels):
                return False
            ours, theirs = self._core, other._core
            if ours is None or theirs is None:
                return ours is theirs
            return ours.n_features == theirs.n_features and all(
                _same_class(ours, i, theirs, other._table.index(label))
                for i, label in enumerate(self._table.labels)
            )

    def __repr__(self) -> str:
        with self._lock:
            width = self._width()
            if width is None:
                return "ClassMoments(no samples yet)"
            total = sum(map(self.weight, self._table.labels))
            classes = f"{len(self._table)} class{'es' if len(self._table) != 1 else ''}"
            features = f"{width} feature{'s' if width != 1 else ''}"
            return f"ClassMoments({classes}, {features}, weight {total:.12g})"

    def __reduce_ex__(self, protocol: object) -> tuple[Any, ...]:
        return type(self), (), self.__getstate__()

    def __reduce__(self) -> tuple[Any, ...]:
        # skops calls this method before `__getstate__`; a second state would take memory.
        return type(self), (), {}

    def __getstate__(self) -> dict[str, Any]:
        with self._lock:
            m, k = self._core, len(self._table)
            weights = np.array([0.0 if m is None else m.weight(i) for i in range(k)])
            return {
                "labels": self._table.array,
                "fixed": self._table.fixed,
                "dtype": None if self._dtype is None else self._dtype.name,
                "single": self._single,
                "feature_names": self._names,
                "n_features": None if m is None else m.n_features,
                "weights": weights,
                "sums": [_sums(m, i) for i in np.flatnonzero(weights).tolist() if m is not None],
            }

    def __setstate__(self, state: dict[str, Any]) -> None:
        self._lock, self._accumulated, self._kept_samples = threading.RLock(), None, None
        self._table = LabelTable.restored(state["labels"], state["fixed"])
        self._dtype, self._single = check_dtype(state["dtype"]), bool(state["single"])
        d, weights = state["n_features"], state["weights"]
        self._names = checked_names(state["feature_names"], d)
        if d is not None:
            self._accumulated = core.ClassMoments(len(self._table), d)
            used = np.flatnonzero(weights).tolist()
            for i, sums in zip(used, state["sums"], strict=True):
                if not np.isfinite(sums).all():
                    raise ValueError("sums: expected finite numbers")
                self._accumulated.restore(i, weights[i], *np.split(sums, [d, 2 * d]))


def _are_bytes(X: object) -> TypeGuard[npt.NDArray[np.uint8]]:
    """Whether samples are a plain array of bytes, which the core reads without conversion."""
    return (
        isinstance(X, np.ndarray)
        and not isinstance(X, np.ma.MaskedArray)
        and X.dtype == np.uint8
        and X.ndim == 2
        and X.flags.c_contiguous
    )


def _both_locked(a: ClassMoments, b: ClassMoments) -> ExitStack:
    """Acquire both locks, always in the same order, to avoid deadlocks."""
    stack = ExitStack()
    for moments in sorted((a, b), key=id):
        stack.enter_context(moments._lock)
    return stack


# ---- mean and deviations of all samples, shrinkage of a covariance -------------------------------


def shares_and_means(moments: ClassMoments) -> tuple[Labels, _Array, _Array]:
    """Return classes of positive weight, their shares (k,) of the total, and means (k, d)."""
    labels = moments.active_classes
    weights, means = moments.weights_and_means(labels.tolist())
    return labels, weights / weights.sum(), means


def pooled_mean(shares: _Array, means: _Array) -> _Array:
    """Return the mean (d,) of all samples; exactly the class means where these are equal."""
    return np.asarray(means[0] + shares @ (means - means[0]))


def column_deviations(moments: ClassMoments) -> _Array:
    """Return standard deviations (d,) of the columns over all samples; 0 for constant columns."""
    labels, weights, means = shares_and_means(moments)
    centre = pooled_mean(weights, means)
    variances = moments.variances(labels.tolist())
    within = sum(w * variance for w, variance in zip(weights, variances, strict=True))
    variance = within + weights @ (means - centre) ** 2
    return varying(variance, centre)


def ledoit_wolf(centred: _Array, covariance: _Array, shares: _Array | None = None) -> float:
    """Return Ledoit and Wolf's shrinkage in [0, 1] of centred samples (n, d).

    O. Ledoit and M. Wolf, "A well-conditioned estimator for large-dimensional covariance matrices",
    2004. The fourth moments are summed as fourth powers of the lengths. `shares` (n,) are
    weights that sum to 1; the number of samples is then Kish's effective number.
    """
    d = centred.shape[1]
    mean = np.trace(covariance) / d
    if not mean > 0:
        return 1.0
    # Divide by the mean variance, so that fourth powers neither overflow nor vanish.
    squares = ((centred / np.sqrt(mean)) ** 2).sum(axis=1) ** 2
    n = float(len(centred)) if shares is None else 1.0 / float(np.sum(shares**2))
    fourth = squares.sum() / n if shares is None else shares @ squares
    size = ((covariance / mean) ** 2).sum()
    beta = (fourth - size) / (d * n)
    delta = (size - d) / d
    return float(np.clip(beta / delta, 0.0, 1.0)) if delta > 0 else 1.0


# ---- moments of groups of classes, for several partitions of the classes -------------------------


def moments_of_groups(
    moments: ClassMoments, groups: npt.NDArray[np.integer], names: Sequence[str]
) -> ClassMoments:
    """Return moments of groups of classes, whose total weight is R times that of all samples.

    `groups` (R, k): group index of each class in each of R partitions, distinct between partitions.
    `names`: labels of the G groups. Cost: R k d^2 operations and 8 G d^2 bytes.
    """
    check_memory("moments_of_groups", len(names), moments.n_features_in_)
    result = ClassMoments(feature_names=moments._names)
    with moments._lock:
        theirs, table = moments._core, moments._table
        assert theirs is not None  # `moments` has classes of positive weight
        places = [table.index(label) for label in moments.classes_.tolist()]
        merged = core.ClassMoments(len(names), theirs.n_features)
        for partition in groups:
            class_map = np.zeros(theirs.n_classes, dtype=np.int32)  # unlabelled classes are empty
            class_map[places] = partition
            merged.merge(theirs, class_map, _threads.resolve(None))
    result._table, result._accumulated = LabelTable.of(list(names)), merged
    result._single = moments._single
    return result


# ---- updates and comparisons of the core's moments -----------------------------------------------


def _sums(m: core.ClassMoments, i: int) -> _Array:
    """High and low parts of the mean of class i, and its packed scatter."""
    return np.concatenate([m.mean_high(i), m.mean_low(i), m.packed_scatter(i)])


def _same_class(a: core.ClassMoments, i: int, b: core.ClassMoments, j: int) -> bool:
    """Whether class i of `a` and class j of `b` agree bit for bit."""
    if a.weight(i) != b.weight(j):
        return False
    return a.weight(i) == 0 or np.array_equal(_sums(a, i), _sums(b, j))


def _update(
    core: core.ClassMoments,
    rows: RealArray | CsrRows,
    codes: npt.NDArray[np.int32],
    weights: _Array | None,
    n_threads: int,
) -> None:
    """Add a batch of checked samples with class indices and weights."""
    if isinstance(rows, CsrRows):
        core.update_csr(
            rows.data, rows.indices, rows.indptr, rows.n_columns, codes, weights, n_threads
        )
    elif rows.dtype == np.uint8:
        for start in range(0, len(rows), _MAX_BYTE_ROWS):
            part = slice(start, start + _MAX_BYTE_ROWS)
            core.update_bytes(rows[part], codes[part], n_threads)
    else:
        core.update_dense(rows, codes, weights, n_threads)
