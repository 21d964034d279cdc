from .classifier import TableClassifier as TableClassifier
from .explanation import Contributions as Contributions
from .explanation import contributions as contributions
from .regressor import TableRegressor as TableRegressor
from .search import PooledView as PooledView
