"""The label of a document: what it has of the fields that decide whether it may be paired, as bytes."""

from collections.abc import Sequence
from datetime import datetime

from nearsim_db.readers.values import value_digest
from nearsim_db.similarity.field_rules import ACROSS_BYTES, WITHIN_BYTES, FieldRules, date_label


def label_of(rules: FieldRules, values: Sequence[object], published_at: datetime | None) -> bytes:
    """Return the label of a document, from its values of the rules' fields and its date."""
    own = values[: len(rules.within)]
    label = b""
    if rules.within:
        # Documents without any value have equal ones.
        agreeing = own[0] if len(own) == 1 else None if own.count(None) == len(own) else own
        label += value_digest(agreeing, WITHIN_BYTES)
    if rules.days:
        label += date_label(published_at)
    return label if rules.across is None else label + value_digest(values[-1], ACROSS_BYTES)
