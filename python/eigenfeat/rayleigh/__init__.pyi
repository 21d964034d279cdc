from eigenfeat.rayleigh.discriminant import FisherLDA as FisherLDA
from eigenfeat.rayleigh.discriminant import SlicedInverseRegression as SlicedInverseRegression
from eigenfeat.rayleigh.quadratic import QuadraticDiscriminant as QuadraticDiscriminant
from eigenfeat.rayleigh.rayleigh import OrientedPCA as OrientedPCA
from eigenfeat.rayleigh.rayleigh import RayleighPCA as RayleighPCA
from eigenfeat.rayleigh.rayleigh import VanishingComponents as VanishingComponents
