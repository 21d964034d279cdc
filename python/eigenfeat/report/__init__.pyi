from .comparison import compare as compare
from .comparison import comparison_figure as comparison_figure
from .measures import ClassificationMeasures as ClassificationMeasures
from .measures import RegressionMeasures as RegressionMeasures
from .report import write_report as write_report
