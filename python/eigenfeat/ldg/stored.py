"""State of reductions that files store."""

from __future__ import annotations

from typing import Any

import numpy as np

from eigenfeat._base.files.stored import Stored, fits
from eigenfeat.ldg._solving.domains import DomainScaler
from eigenfeat.ldg.direct import DirectLDA
from eigenfeat.ldg.fisher import PCAFisher, RegularizedFisher
from eigenfeat.ldg.gradient import DiscriminativeGaussian
from eigenfeat.ldg.gsvd import GSVDDiscriminant
from eigenfeat.ldg.kernel import KernelLDG
from eigenfeat.ldg.linear import LDG
from eigenfeat.ldg.local_fisher import LocalFisher
from eigenfeat.ldg.margin_criterion import MaximumMarginCriterion
from eigenfeat.ldg.metric_learning import ITML, TransferITML
from eigenfeat.ldg.nca import NCA
from eigenfeat.ldg.partitioned import PartitionedReducer
from eigenfeat.ldg.pooled import PooledFisher, PooledPCA
from eigenfeat.ldg.sparse import SparseLDG
from eigenfeat.ldg.transfer import TransferLDG

__all__ = ["STORED"]

_LINEAR = {"components_": "numbers m d", "mean_": "numbers d", "scale_": "floats d?"}
_POOLED = _LINEAR | {"_scaler": "of DomainScaler"}
_KERNEL = {
    "dual_coef_": "numbers n m",
    "kernel_means_": "numbers n",
    "origin_": "numbers d?",
    "X_fit_": "value?",
}
_SCALER = {"means": "numbers 2 d", "scales": "floats 2 d", "kept": "flags d"}

_ALONE = (
    *(LDG, SparseLDG, DiscriminativeGaussian, RegularizedFisher, PCAFisher, DirectLDA),
    *(GSVDDiscriminant, LocalFisher, MaximumMarginCriterion, ITML, NCA),
)


def _check_pooled(value: Any) -> None:
    fits(value._scaler.kept.shape == (value.n_features_in_,), f"{type(value).__name__}._scaler")


def _check_kernel(value: KernelLDG) -> None:
    rows = value.X_fit_
    fits(rows is None or rows.shape[0] == len(value.kernel_means_), "KernelLDG.X_fit_")


def _check_partitioned(value: PartitionedReducer) -> None:
    parts, d = value.parts_, value.n_features_in_
    fits(len(parts) == len(value.reducers_) > 0, "PartitionedReducer.reducers_")
    for part, reducer in zip(parts, value.reducers_, strict=True):
        sound = part.ndim == 1 and part.dtype.kind == "i" and part.size > 0
        fits(sound and part[0] >= 0 and part[-1] < d, "PartitionedReducer.parts_")
        fits(np.all(np.diff(part) > 0), "PartitionedReducer.parts_")
        fits(reducer.n_features_in_ == len(part), "PartitionedReducer.reducers_")


STORED = (
    *(Stored(kind.__name__, kind, _LINEAR) for kind in _ALONE),
    *(
        Stored(kind.__name__, kind, _POOLED, _check_pooled)
        for kind in (TransferLDG, TransferITML, PooledPCA, PooledFisher)
    ),
    Stored("KernelLDG", KernelLDG, _KERNEL, _check_kernel),
    Stored(
        "PartitionedReducer",
        PartitionedReducer,
        {"parts_": "value", "reducers_": "value"},
        _check_partitioned,
    ),
    Stored("DomainScaler", DomainScaler, _SCALER),
)
