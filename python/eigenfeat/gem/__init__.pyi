from .class_components import ClassComponents as ClassComponents
from .classifier import GEMClassifier as GEMClassifier
from .ensemble import GEMEnsemble as GEMEnsemble
from .gem import GEM as GEM
from .joint import JointGEMClassifier as JointGEMClassifier
from .patches import GEMPatches as GEMPatches
from .randomized import RandomizedGEM as RandomizedGEM
from .search import GEMClassifierCV as GEMClassifierCV
