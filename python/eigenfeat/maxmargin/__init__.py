"""Max-margin data shifting: a multiclass SVM moves rows before features are learnt."""

from eigenfeat.maxmargin.autoencoder import Autoencoder
from eigenfeat.maxmargin.max_margin_pca import MaxMarginPCA
from eigenfeat.maxmargin.shifting import MaxMarginShift
from eigenfeat.maxmargin.svm import MulticlassSVM

__all__ = ["Autoencoder", "MaxMarginPCA", "MaxMarginShift", "MulticlassSVM"]
