from eigenfeat.report.report import html_report as html_report
from eigenfeat.report.report import write_report as write_report
