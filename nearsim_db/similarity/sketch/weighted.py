"""Helpers of the families for weighted features."""

from collections.abc import Mapping, Sequence

import numpy as np

from nearsim_db.errors import RecipeError
from nearsim_db.similarity.sketch.kernels import Ids, Offsets, Weights


def window(ids: Ids, offsets: Offsets, weights: Weights | None) -> tuple[Ids, Offsets, Weights]:
    """Return the ids and weights between the first and last offset, and offsets from 0; weights default to 1."""
    begin, end = int(offsets[0]), int(offsets[-1])
    selected = np.ones(end - begin) if weights is None else weights[begin:end]
    return ids[begin:end], offsets - begin, selected


def check_options(
    family: str, options: Mapping[str, str | float], known: Mapping[str, Sequence[str]]
) -> None:
    """Raise RecipeError for an unknown option, or a value that is not one of those allowed (any, if none are
    listed).
    """
    for option, value in options.items():
        if option not in known:
            raise RecipeError(f"{family} has no option {option}; its options are {', '.join(known)}")
        if known[option] and value not in known[option]:
            raise RecipeError(
                f"unknown {family} {option} {value!r}; choose one of {', '.join(known[option])}"
            )
