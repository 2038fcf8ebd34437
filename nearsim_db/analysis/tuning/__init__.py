"""Tuning: propose a recipe from a sample of the user's documents, with the cost of each choice."""

from nearsim_db.analysis.tuning.labels import Labels, read_labels
from nearsim_db.analysis.tuning.proposal import Proposal, Tuning, TuningOptions, commented
from nearsim_db.analysis.tuning.sampling import Sample, draw, draw_from_collection
from nearsim_db.analysis.tuning.tuning import tune

__all__ = [
    "Labels",
    "Proposal",
    "Sample",
    "Tuning",
    "TuningOptions",
    "commented",
    "draw",
    "draw_from_collection",
    "read_labels",
    "tune",
]
