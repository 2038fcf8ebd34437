"""Reports on an index or on files: what a report contains, and how it is rendered as one self-contained HTML page."""

from nearsim_db.analysis.report.contents import Report
from nearsim_db.analysis.report.files import gather_files
from nearsim_db.analysis.report.gather import Options, gather
from nearsim_db.analysis.report.page import render, render_difference

__all__ = ["Options", "Report", "gather", "gather_files", "render", "render_difference"]
