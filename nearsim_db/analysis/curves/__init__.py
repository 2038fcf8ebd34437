"""S-curves of bands and amplifications, and of profiles in their own metric."""

from nearsim_db.analysis.curves.curve import Curve, of_profile, of_text
from nearsim_db.analysis.curves.image import AXES, SUFFIXES, draw
from nearsim_db.analysis.curves.measures import Measures, measure

__all__ = ["AXES", "SUFFIXES", "Curve", "Measures", "draw", "measure", "of_profile", "of_text"]
