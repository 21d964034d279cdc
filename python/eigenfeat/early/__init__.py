"""Classify incomplete data as soon as the label of the complete data is known.

Parrish (2012), chapter 5.
"""

import lazy_loader

# Names are imported at their first use, because SciPy and scikit-learn take a second to import.
__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
