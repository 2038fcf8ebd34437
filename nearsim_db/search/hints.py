"""Hints: what an index found that suggests another recipe."""

from typing import Literal, TypedDict

from nearsim_db.errors import count_of
from nearsim_db.similarity import recipe_warnings
from nearsim_db.similarity.recipe import Recipe
from nearsim_db.store.query_rows import PairSample

Kind = Literal["numbers-apart", "within-source", "few-pairs"]

_LEAST_DOCUMENTS = 100  # from which the absence of pairs says something
_LEAST_PAIRS = 20
_FEW = 1_000  # documents for each pair or twin
_SHORT_FEATURES = 60  # of a title or a record on average


class Hint(TypedDict):
    """A hint, the preset to try instead, if it is one, and the sentence that says so."""

    kind: Kind
    preset: str | None
    message: str


def of_index(recipe: Recipe, documents: int, found: int, sample: PairSample) -> list[Hint]:
    """Return the hints of an index of so many documents with features, and pairs and twins found among them."""
    apart = recipe_warnings.of_numbers(recipe, sample.numbers_differ, sample.pairs)
    hints = [Hint(kind="numbers-apart", preset=None, message=one) for one in apart]
    if recipe.sketch.input == "vector":
        return hints
    preset = "records" if sample.features < _SHORT_FEATURES else "reworded"
    advice = f"compare with nearsim tune --preset {preset}"
    if documents >= _LEAST_DOCUMENTS and found * _FEW < documents:
        hints.append(
            Hint(
                kind="few-pairs",
                preset=preset,
                message=f"only {count_of(found, 'near-duplicate')} among {documents:,} documents; if you expect more, "
                f"{advice}",
            )
        )
    elif sample.sources > 1 and _LEAST_PAIRS <= sample.pairs == sample.within_source:
        hints.append(
            Hint(
                kind="within-source",
                preset=preset,
                message=f"all {sample.pairs:,} pairs looked at lie within one source, though there are "
                f"{sample.sources:,}; if sources publish the same content in other words, {advice}",
            )
        )
    return hints
