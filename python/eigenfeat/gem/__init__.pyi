from eigenfeat.gem.class_components import ClassComponents as ClassComponents
from eigenfeat.gem.classifier import GEMClassifier as GEMClassifier
from eigenfeat.gem.ensemble import GEMEnsemble as GEMEnsemble
from eigenfeat.gem.gem import GEM as GEM
from eigenfeat.gem.patches import GEMPatches as GEMPatches
from eigenfeat.gem.regressor import GEMRegressor as GEMRegressor
from eigenfeat.gem.search import GEMClassifierCV as GEMClassifierCV
