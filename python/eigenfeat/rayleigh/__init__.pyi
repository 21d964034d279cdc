from .discriminant import FisherLDA as FisherLDA
from .discriminant import SlicedInverseRegression as SlicedInverseRegression
from .quadratic import QuadraticDiscriminant as QuadraticDiscriminant
from .rayleigh import OrientedPCA as OrientedPCA
from .rayleigh import RayleighPCA as RayleighPCA
from .rayleigh import VanishingComponents as VanishingComponents
