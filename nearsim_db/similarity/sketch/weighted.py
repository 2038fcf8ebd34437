"""What the families have in common that weigh their features."""

from collections.abc import Mapping, Sequence

import numpy as np

from nearsim_db.errors import RecipeError
from nearsim_db.similarity.sketch.kernels import Ids, Offsets, Weights


def window(ids: Ids, offsets: Offsets, weights: Weights | None) -> tuple[Ids, Offsets, Weights]:
    """The ids and weights that offsets refer to, alone, with offsets from 0 on; weights of 1 where there are none."""
    begin, end = int(offsets[0]), int(offsets[-1])
    own = np.ones(end - begin) if weights is None else weights[begin:end]
    return ids[begin:end], offsets - begin, own


def check_options(family: str, given: Mapping[str, str | float], known: Mapping[str, Sequence[str]]) -> None:
    """Raise RecipeError for an option that the family does not have, or a value that is none of those it may have."""
    for option, value in given.items():
        if option not in known:
            raise RecipeError(f"{family} has no option {option}; its options are {', '.join(known)}")
        if known[option] and value not in known[option]:
            raise RecipeError(f"{family} has no {option} {value!r}; choose one of {', '.join(known[option])}")
