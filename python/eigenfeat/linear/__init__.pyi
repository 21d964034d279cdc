from .calibrated import CalibratedLeastSquares as CalibratedLeastSquares
from .logistic import MultinomialLogit as MultinomialLogit
