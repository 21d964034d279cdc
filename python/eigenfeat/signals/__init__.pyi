from .convolution_features import ConvolutionFeatures as ConvolutionFeatures
from .convolutions import ConvolutionClassifier as ConvolutionClassifier
from .epoch_classifier import EpochClassifier as EpochClassifier
from .intervals import interval_summaries as interval_summaries
from .spatial_filters import SpatialFilters as SpatialFilters
from .tangent_space import TangentSpace as TangentSpace
