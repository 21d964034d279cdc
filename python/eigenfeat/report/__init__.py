"""One self-contained HTML page about a fitted model and what it makes of rows with labels."""

from typing import TYPE_CHECKING

from eigenfeat._base.lazy_names import lazy_names

if TYPE_CHECKING:
    from eigenfeat.report.report import html_report, write_report

# Imported when they are first asked for: the libraries below take a second or more.
_HOMES = {"html_report": "report", "write_report": "report"}

__all__ = ["html_report", "write_report"]

if not TYPE_CHECKING:
    __getattr__, __dir__ = lazy_names(__name__, _HOMES)
