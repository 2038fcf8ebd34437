"""The label of a document: its values of the fields that decide which pairs count, packed into bytes."""

from collections.abc import Sequence
from datetime import datetime

from nearsim_db.readers.values import value_digest
from nearsim_db.similarity.field_rules import ACROSS_BYTES, WITHIN_BYTES, FieldRules, date_label


def label_of(rules: FieldRules, values: Sequence[object], published_at: datetime | None) -> bytes:
    """Return the label of a document from its values of the rules' fields, `within` before `across`, and its date."""
    within = values[: len(rules.within)]
    label = b""
    if rules.within:
        # Documents that have none of these values agree with each other.
        agreeing = within[0] if len(within) == 1 else None if within.count(None) == len(within) else within
        label += value_digest(agreeing, WITHIN_BYTES)
    if rules.days:
        label += date_label(published_at)
    return label if rules.across is None else label + value_digest(values[-1], ACROSS_BYTES)
