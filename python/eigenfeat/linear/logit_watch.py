"""Monitor of a multinomial logit's search: messages, and early stopping on held-out rows."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from eigenfeat.linear.lbfgs import Progress

if TYPE_CHECKING:
    from eigenfeat.linear.logit_problem import LogitProblem

__all__ = ["Watch"]

_Array = NDArray[np.float64]


class Watch:
    """Reports progress, and stops when the loss of the held-out rows no longer decreases."""

    PATIENCE = 3

    def __init__(
        self,
        held_out: LogitProblem | None,
        uncentred: Callable[[_Array], _Array],
        say: Callable[[str], None],
        stops: Callable[[], bool] = lambda: False,
    ) -> None:
        self.held_out, self.uncentred, self.say = held_out, uncentred, say
        self.stops = stops
        self.losses: list[float] = []
        self.best: Progress | None = None

    def __call__(self, progress: Progress) -> bool:
        """Say how far the solver is; return whether the held-out loss has stopped falling."""
        text = f"iteration {progress.iteration}: objective {progress.objective:.6g}"
        text += f", estimated gap {progress.gap:.1e}"
        stop = self.stops()
        if self.held_out is None:
            self.say(text)
            return stop
        self.losses.append(self.held_out.loss(self.uncentred(progress.point)))
        self.say(f"{text}, held-out loss {self.losses[-1]:.5g}")
        least = int(np.argmin(self.losses))
        if least == len(self.losses) - 1:
            self.best = progress
        return stop or len(self.losses) - 1 - least >= self.PATIENCE
