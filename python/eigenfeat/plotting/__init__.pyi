from .early_decision import EarlyDecisionDisplay as EarlyDecisionDisplay
from .early_times import EarlyTimesDisplay as EarlyTimesDisplay
from .filters import FiltersDisplay as FiltersDisplay
from .spectrum import SpectrumDisplay as SpectrumDisplay
