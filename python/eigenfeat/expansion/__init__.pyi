from .features import ExpandedFeatures as ExpandedFeatures
