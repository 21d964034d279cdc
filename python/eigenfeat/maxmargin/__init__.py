"""Max-margin data shifting: a multiclass SVM moves rows before features are learnt."""

from eigenfeat.maxmargin.autoencoder import Autoencoder
from eigenfeat.maxmargin.shifting import MaxMarginShift
from eigenfeat.maxmargin.svm import MulticlassSVM

__all__ = ["Autoencoder", "MaxMarginShift", "MulticlassSVM"]
