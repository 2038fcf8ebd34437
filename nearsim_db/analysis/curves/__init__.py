"""S-curves of bands and amplifications, and of profiles in their own metric."""

from nearsim_db.analysis.curves.curve import Curve, Measures, measure, of_profile, of_text
from nearsim_db.analysis.curves.image import AXES, SUFFIXES, draw

__all__ = ["AXES", "SUFFIXES", "Curve", "Measures", "draw", "measure", "of_profile", "of_text"]
