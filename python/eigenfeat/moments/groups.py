"""Moments of groups of classes: several partitions of the classes at once."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from eigenfeat._base import threads
from eigenfeat._base.core import core
from eigenfeat._base.labels import LabelTable
from eigenfeat._base.validation import check_memory
from eigenfeat.moments.class_moments import ClassMoments

__all__ = ["moments_of_groups"]


def moments_of_groups(
    moments: ClassMoments, groups: npt.NDArray[np.integer], names: Sequence[str]
) -> ClassMoments:
    """Merge classes into groups, once for each of several partitions.

    Parameters
    ----------
    moments : ClassMoments
        Moments of k classes.
    groups : (R, k) array of int
        Numbers of each class's group in each partition; those of different partitions are distinct.
    names : sequence of G str
        Labels of the groups 0..G-1.

    Returns
    -------
    ClassMoments
        Of G classes, R times the weight of all rows together. Cost: R k d^2 operations; 8 G d^2
        bytes.
    """
    check_memory("moments_of_groups", len(names), moments.n_features_in_)
    result = ClassMoments(feature_names=moments._names)
    with moments._lock:
        theirs, table = moments._core, moments._table
        assert theirs is not None  # it has classes with weight
        places = [table.index(label) for label in moments.classes_.tolist()]
        merged = core.ClassMoments(len(names), theirs.n_features)
        for partition in groups:
            class_map = np.zeros(theirs.n_classes, dtype=np.int32)  # unnamed classes are empty
            class_map[places] = partition
            merged.merge(theirs, class_map, threads.resolve(None))
    result._table, result._core = LabelTable.of(list(names)), merged
    result._single = moments._single
    return result
