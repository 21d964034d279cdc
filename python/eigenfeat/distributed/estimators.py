"""Estimators for Dask collections."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from eigenfeat._base.types import Rows
from eigenfeat.distributed._dask import is_collection, is_frame
from eigenfeat.distributed._partitions import encoded_frame, encoder_of
from eigenfeat.distributed.blocks import DaskBlocks
from eigenfeat.distributed.pencils import solve_pencils_if_many
from eigenfeat.distributed.predictions import apply
from eigenfeat.gem import classifier, gem, search
from eigenfeat.linear import logistic
from eigenfeat.moments.class_moments import ClassMoments

if TYPE_CHECKING:
    from dask.typing import DaskCollection as Collection

    from eigenfeat.gem.layers import Depth
    from eigenfeat.samples.blocks import RowBlocks
    from eigenfeat.samples.columns import TableColumns

__all__ = ["GEM", "GEMClassifier", "GEMClassifierCV", "MultinomialLogit"]


class _OnDask:
    """What the estimators share."""

    _local: ClassVar[Any]

    def fit(self, X: Any, y: Any = None, sample_weight: Any = None, **options: Any) -> Any:
        """Fit like the estimator of the same name in `eigenfeat`, with passes on the workers.

        Parameters
        ----------
        X : dask array (n, d) or dask data frame; or what that estimator takes
            Chunks may be CSR matrices.
        y : labels of any kind, or the name of a data frame's column
        sample_weight : weights, or the name of a column, optional
        **options
            Further arguments of that estimator's `fit`.

        Returns
        -------
        estimator
            The estimator itself.
        """
        if not is_collection(X):
            return super().fit(X, y, sample_weight, **options)  # type: ignore[misc]
        encoder = None
        if is_frame(X) and self._takes_categories():
            encoder = encoder_of(X, y, sample_weight)
        blocks = self._blocks(X, y, sample_weight, encoder)
        super().fit(blocks, **options)  # type: ignore[misc]
        self._keep_names(blocks.feature_names if encoder is None else encoder.names_, encoder)
        return self

    def _takes_categories(self) -> bool:
        return getattr(self, "categorical_features", None) is not None

    def to_local(self) -> Any:
        """Convert to the same class outside `eigenfeat.distributed`.

        Returns
        -------
        estimator
            Fitted estimator that shares the fitted arrays.
        """
        twin = self._local.__new__(self._local)
        twin.__dict__.update(self.__dict__)
        return twin

    def _sent(self) -> Any:
        """What workers need for predictions."""
        return self.to_local()

    def _blocks(
        self, X: Any, y: Any, sample_weight: Any, encoder: TableColumns | None
    ) -> DaskBlocks:
        if y is None:
            raise ValueError("y: expected labels, or the name of a column, got None")
        if encoder is not None:
            if not is_frame(X):
                raise ValueError(
                    "X: expected a data frame with the columns of the fit, some of which are "
                    "categories, got a dask array"
                )
            X = encoded_frame(X, encoder, y, sample_weight)
        return DaskBlocks(X, y, sample_weight)

    def _keep_names(self, names: list[str] | None, encoder: TableColumns | None) -> None:
        """Remember a data frame's columns, as scikit-learn does, and their encoder."""
        for name in ("feature_names_in_", "columns_"):
            self.__dict__.pop(name, None)
        if encoder is not None:
            self.columns_, self.n_features_in_ = encoder, len(encoder.names_)
        if names is not None:
            self.feature_names_in_ = np.array(names, dtype=object)


class _ClassifierOnDask(_OnDask):
    """Predictions of a classifier, block by block."""

    def decision_function(self, X: Any) -> Any:
        """Return the logits; a lazy Dask array for a Dask collection."""
        return self._of_rows("decision_function", X)

    def predict_log_proba(self, X: Any) -> Any:
        """Return log-probabilities of the classes; lazy for a Dask collection."""
        return self._of_rows("predict_log_proba", X)

    def predict_proba(self, X: Any) -> Any:
        """Return probabilities of the classes; lazy for a Dask collection."""
        return self._of_rows("predict_proba", X)

    def predict(self, X: Any) -> Any:
        """Return the most probable labels; lazy for a Dask collection."""
        return self._of_rows("predict", X)

    def score(self, X: Any, y: Any = None, sample_weight: Any = None) -> float:
        """Return the accuracy, which is computed at once.

        Parameters
        ----------
        X, y, sample_weight
            As in `fit`.

        Returns
        -------
        float
            Accuracy.
        """
        if not is_collection(X):
            return float(super().score(X, y, sample_weight))  # type: ignore[misc]
        return float(
            self._sent().score(self._blocks(X, y, sample_weight, getattr(self, "columns_", None)))
        )

    def _of_rows(self, method: str, X: Any) -> Any:
        if is_collection(X):
            return apply(self._sent(), method, X)
        return getattr(self._local, method)(self, X)


class GEM(_OnDask, gem.GEM):
    """GEM on Dask collections; parameters and attributes are those of :class:`eigenfeat.GEM`.

    Pencils that take more than a few seconds are also solved on the workers.
    """

    _local: ClassVar[Any] = gem.GEM
    _pencil_solver: ClassVar[Any] = staticmethod(solve_pencils_if_many)

    def transform(self, X: Rows | RowBlocks | Collection) -> Any:
        """Expand rows into features; a lazy Dask array for a Dask collection.

        Parameters
        ----------
        X : dask array or data frame, or what `eigenfeat.GEM.transform` takes

        Returns
        -------
        (n, columns) array
        """
        rows: Any = X
        return (
            apply(self._sent(), "transform", rows) if is_collection(X) else super().transform(rows)
        )

    def _sent(self) -> Any:
        _ = self._solution  # solved for here, not by every worker
        twin = self.to_local()
        twin.moments_ = ClassMoments()  # which are large, and of no use to predictions
        return twin


class MultinomialLogit(_ClassifierOnDask, logistic.MultinomialLogit):
    """Multinomial logit on Dask collections; see :class:`eigenfeat.MultinomialLogit`."""

    _local: ClassVar[Any] = logistic.MultinomialLogit


class GEMClassifier(_ClassifierOnDask, classifier.GEMClassifier):
    """GEM's classifier on Dask collections; see :class:`eigenfeat.GEMClassifier`."""

    _local: ClassVar[Any] = classifier.GEMClassifier

    def depth_options(self) -> Depth:
        """How the layers are solved for: by GEM on Dask collections."""
        depth = super().depth_options()
        return replace(depth, gem=GEM(**depth.gem.get_params(deep=False)))


class GEMClassifierCV(_ClassifierOnDask, search.GEMClassifierCV):
    """Search on Dask collections; see :class:`eigenfeat.GEMClassifierCV`.

    The labels are collected on the client, one to four bytes a row. The mask of held-out rows is
    sent with every pass, one bit a row. `best_estimator_` is a :class:`GEMClassifier` of this
    module.
    """

    _local: ClassVar[Any] = search.GEMClassifierCV

    def to_local(self) -> search.GEMClassifierCV:
        """Convert the search and its best estimator to the classes outside this module.

        Returns
        -------
        GEMClassifierCV
            Fitted search that shares the fitted arrays.
        """
        twin = super().to_local()
        if isinstance(self.estimator, GEMClassifier):
            twin.estimator = self.estimator.to_local()
        if hasattr(self, "best_estimator_"):
            twin.best_estimator_ = self.best_estimator_.to_local()
        return twin

    def _base(self) -> GEMClassifier:
        base = super()._base()
        known = type(base) is classifier.GEMClassifier
        return GEMClassifier(**base.get_params(deep=False)) if known else base

    def _takes_categories(self) -> bool:
        return self._base()._takes_categories()

    def _keep_names(self, names: list[str] | None, encoder: TableColumns | None) -> None:
        super()._keep_names(names, encoder)
        if hasattr(self, "best_estimator_"):
            self.best_estimator_._keep_names(names, encoder)
