from .classifier import TableClassifier as TableClassifier
from .explanation import Contributions as Contributions
from .explanation import contributions as contributions
from .pool import PooledView as PooledView
from .regressor import RegressionView as RegressionView
from .regressor import TableRegressor as TableRegressor
