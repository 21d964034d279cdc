from .report import write_report as write_report
