"""Tuning: a recipe proposed from a sample of the user's own documents, with what each choice costs."""

from nearsim_db.tune.labels import Labels, read_labels
from nearsim_db.tune.sampling import Sample, draw
from nearsim_db.tune.tuning import Proposal, Tuning, Wishes, tune
from nearsim_db.tune.writing import commented

__all__ = ["Labels", "Proposal", "Sample", "Tuning", "Wishes", "commented", "draw", "read_labels", "tune"]
