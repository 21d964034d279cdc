from eigenfeat.maxmargin.max_margin_pca import MaxMarginPCA as MaxMarginPCA
from eigenfeat.maxmargin.shifting import MaxMarginShift as MaxMarginShift
from eigenfeat.maxmargin.svm import MulticlassSVM as MulticlassSVM
