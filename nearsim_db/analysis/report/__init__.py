"""The report on an index or on files: one self-contained HTML page, or one JSON document."""

from nearsim_db.analysis.report.contents import Report
from nearsim_db.analysis.report.files import gather_files
from nearsim_db.analysis.report.gather import Options, gather
from nearsim_db.analysis.report.page import render, render_difference

__all__ = ["Options", "Report", "gather", "gather_files", "render", "render_difference"]
