"""The report: everything an index says, on one page that needs nothing else."""

from nearsim_db.analysis.report.figures import Report
from nearsim_db.analysis.report.gather import Options, gather
from nearsim_db.analysis.report.page import render, render_difference

__all__ = ["Options", "Report", "gather", "render", "render_difference"]
