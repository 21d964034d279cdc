"""Labels and times of early decisions, by any early classifier."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

__all__ = ["EarlyLabels"]


@dataclass(frozen=True, eq=False)
class EarlyLabels:
    """Labels and times of decision of n series.

    Attributes
    ----------
    label : (n,) array
        Labels at the time of decision.
    time : (n,) array of int
        Number of samples used, 1 to d.
    """

    label: NDArray[Any]
    time: NDArray[np.int64]

    def __len__(self) -> int:
        return len(self.time)
