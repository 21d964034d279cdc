"""The compiled core, loaded together with the BLAS that it needs."""

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from eigenfeat import _core as core
else:
    from eigenfeat._base.blas import load_core

    core = load_core()

__all__ = ["core"]
