"""Tuning: a recipe proposed from a sample of the user's own documents, with what each choice costs."""

from nearsim_db.analysis.tuning.labels import Labels, read_labels
from nearsim_db.analysis.tuning.sampling import Sample, draw
from nearsim_db.analysis.tuning.tuning import Proposal, Tuning, Wishes, tune
from nearsim_db.analysis.tuning.writing import commented

__all__ = ["Labels", "Proposal", "Sample", "Tuning", "Wishes", "commented", "draw", "read_labels", "tune"]
