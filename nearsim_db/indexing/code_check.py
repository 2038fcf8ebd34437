"""Reject source code that takes too long to split into tokens, before it is stored.

A document that an application writes in SQL is always stored; an index then treats it as a document without features.
"""

from collections.abc import Iterable
from typing import Any

from nearsim_db.readers.rejects import with_refusals
from nearsim_db.records import Document, ReadDocument, Reject
from nearsim_db.similarity.encoder import Encoder
from nearsim_db.similarity.profile import resolve
from nearsim_db.similarity.recipe import Recipe, from_mapping


def refuse_slow_code(
    records: Iterable[ReadDocument | Reject],
    recipes: Iterable[dict[str, Any]],
    planned: Recipe | None = None,
) -> Iterable[ReadDocument | Reject]:
    """Replace records that a recipe cannot split into tokens in time by rejects.

    `recipes` are the stored recipes of a collection's generations; `planned` is the recipe of a profile that is yet to
    be created. The tokens are cached for the encoder that signs the records next.
    """
    parsed = [from_mapping(recipe) for recipe in recipes]
    if planned is not None:
        parsed.append(planned)
    encoders = [Encoder(resolve(recipe)) for recipe in parsed if recipe.shingle.language is not None]
    if not encoders:
        return records

    def refusal(document: Document) -> str | None:
        reasons = (encoder.refusal(document.title, document.body) for encoder in encoders)
        return next((reason for reason in reasons if reason is not None), None)

    return with_refusals(records, refusal)
