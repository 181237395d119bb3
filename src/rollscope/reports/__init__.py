"""Reports: one HTML file that holds the page and what it shows of a run, and asks nobody.

What is in it is asked of `answers` and `timeline`; the page is the one of `webui`. Nothing here
computes a number of its own.
"""

from rollscope.reports.choices import ReportChoices
from rollscope.reports.writing import Written, write_report

__all__ = ["ReportChoices", "Written", "write_report"]
