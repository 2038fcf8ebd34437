"""S-curves to look at: of constructions as such, and of what a profile does in its own metric."""

from nearsim_db.analysis.curves.curve import Curve, of_profile, of_text
from nearsim_db.analysis.curves.figures import Figures, measure
from nearsim_db.analysis.curves.picture import AXES, SUFFIXES, draw

__all__ = ["AXES", "SUFFIXES", "Curve", "Figures", "draw", "measure", "of_profile", "of_text"]
