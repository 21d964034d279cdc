from .max_margin_pca import MaxMarginPCA as MaxMarginPCA
from .shifting import MaxMarginShift as MaxMarginShift
from .svm import MulticlassSVM as MulticlassSVM
