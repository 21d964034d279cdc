"""The same estimators on Dask arrays and data frames, with the results of one machine.

Rows stay where they are. What travels is what `eigenfeat.rows.reductions` returns for a partition,
merged in a tree whose shape depends on the partitions alone: runs agree bit for bit, whatever
workers there are, and whichever of them are lost on the way. Whatever scheduler Dask has at the
moment does the work: that of the current `distributed.Client`, or its threads.

The estimators are subclasses of those of the same names in `eigenfeat`, with the same parameters.
Fitted attributes are ordinary arrays, and the methods take NumPy's and SciPy's rows as well; Dask
collections give Dask arrays, lazy and chunked along the rows as they are. Labels and weights may be
arrays of either kind or, with a data frame, names of its columns. Every pass of a fit goes through
all rows: persist those that fit into the workers' memory.
"""

from typing import TYPE_CHECKING

from eigenfeat._base.lazy_names import lazy_names

if TYPE_CHECKING:
    from eigenfeat.distributed.blocks import DaskBlocks
    from eigenfeat.distributed.estimators import (
        GEM,
        GEMClassifier,
        GEMClassifierCV,
        MultinomialLogit,
    )
    from eigenfeat.distributed.moments import class_moments
    from eigenfeat.distributed.pencils import pair_directions
    from eigenfeat.distributed.predictions import apply

# Imported when they are first asked for: workers start without scikit-learn, which none of a fit's
# tasks needs and which takes longer to import than all the rest.
_HOMES = {
    "GEM": "estimators",
    "DaskBlocks": "blocks",
    "GEMClassifier": "estimators",
    "GEMClassifierCV": "estimators",
    "MultinomialLogit": "estimators",
    "apply": "predictions",
    "class_moments": "moments",
    "pair_directions": "pencils",
}

__all__ = [
    "GEM",
    "DaskBlocks",
    "GEMClassifier",
    "GEMClassifierCV",
    "MultinomialLogit",
    "apply",
    "class_moments",
    "pair_directions",
]

if not TYPE_CHECKING:
    __getattr__, __dir__ = lazy_names(__name__, _HOMES)
