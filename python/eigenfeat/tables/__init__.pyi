from .classifier import TableClassifier as TableClassifier
from .estimator import PooledView as PooledView
from .explanation import Contributions as Contributions
from .explanation import contributions as contributions
from .regressor import TableRegressor as TableRegressor
