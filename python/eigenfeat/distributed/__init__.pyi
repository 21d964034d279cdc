from eigenfeat.distributed.blocks import DaskBlocks as DaskBlocks
from eigenfeat.distributed.blocks import class_moments as class_moments
from eigenfeat.distributed.estimators import GEM as GEM
from eigenfeat.distributed.estimators import GEMClassifier as GEMClassifier
from eigenfeat.distributed.estimators import GEMClassifierCV as GEMClassifierCV
from eigenfeat.distributed.estimators import MultinomialLogit as MultinomialLogit
from eigenfeat.distributed.pencils import pair_directions as pair_directions
from eigenfeat.distributed.predictions import apply as apply
