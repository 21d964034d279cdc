"""What files keep of directions, their reports, and contrasts."""

from __future__ import annotations

from eigenfeat._base.files.stored import Stored, fits
from eigenfeat.expansion.layers import DIRECTIONS
from eigenfeat.pencils.class_matrices import Contraction
from eigenfeat.pencils.contrasts import Contrasts
from eigenfeat.pencils.eigh import PencilResult, Status
from eigenfeat.pencils.pair_batches import PairDirections
from eigenfeat.pencils.rayleigh_matrices import RayleighDirections
from eigenfeat.pencils.scale import ScaleReport
from eigenfeat.pencils.solution import Solution

__all__ = ["SOLUTION", "STORED"]


def _check_contraction(value: Contraction) -> None:
    fits((value.indices >= 0).all() and (value.weights >= 0).all(), "Contraction.weights")


def _check_contrasts(value: Contrasts) -> None:
    fits(len(value.above) == len(value.below) == len(value.names), "Contrasts.names")


_CONTRASTS = {
    "above": "many Contraction",
    "below": "many Contraction",
    "names": "labels p 2",
    "classes": "value?",
    "n_classes": "count?",
}
_CONTRACTION = {"indices": "whole n", "weights": "numbers n", "others": "number"}
_PAIRS = {
    "vectors": "floats d F",
    "eigenvalues": "floats F",
    "pairs": "labels F 2",
    "ranks": "whole F",
    "residuals": "floats F",
    "offset": "floats F?",
    "solved_pairs": "labels P 2",
    "status": "whole P",
    "iterations": "whole P",
    "solver": "labels P",
}
_DIRECTIONS = {
    "directions": "numbers d m",
    "eigenvalues": "floats m",
    "mean": "numbers d",
    "column_scale": "floats d",
}
SOLUTION = DIRECTIONS | {"directions": "numbers d F", "scale": "of ScaleReport"}
_REPORT = {
    "choice": "text",
    "basis": "text",
    "column_scale": "floats *",
    "errors": "value",
    "n_rows": "count",
    "spread": "value",
}

STORED = (
    Stored("Contrasts", Contrasts, _CONTRASTS, _check_contrasts),
    Stored("Contraction", Contraction, _CONTRACTION, _check_contraction),
    Stored(
        "Status",
        Status,
        pack=lambda value: {"value": int(value)},
        build=lambda state: Status(state["value"]),
    ),
    Stored("Directions", RayleighDirections, _DIRECTIONS),
    Stored("Solution", Solution, SOLUTION),
    Stored("ScaleReport", ScaleReport, _REPORT),
    Stored("PairDirections", PairDirections, _PAIRS),
    Stored(
        "PencilResult",
        PencilResult,
        dict.fromkeys(PencilResult.__dataclass_fields__, "value"),
    ),
)
