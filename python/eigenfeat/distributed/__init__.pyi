from .blocks import DaskBlocks as DaskBlocks
from .blocks import class_moments as class_moments
from .estimators import GEM as GEM
from .estimators import GEMClassifier as GEMClassifier
from .estimators import GEMClassifierCV as GEMClassifierCV
from .estimators import MultinomialLogit as MultinomialLogit
from .pencils import pair_directions as pair_directions
from .predictions import apply as apply
