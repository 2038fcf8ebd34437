"""Field rules: two documents may be a pair only if some fields are equal, dates are close, or a field differs.

The values that a document has in these fields are hashed to its label. In an index the label is the end of the digest.
Pairs can therefore be excluded before they are verified, and a document is signed again when its fields change. The
part of the label that must be equal also alters the sketch, so that documents with different values share no bucket.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from hashlib import blake2b
from itertools import repeat
from typing import Literal, Self
from uuid import UUID

import numpy as np
from numpy.typing import NDArray

from nearsim_db.messages import count_of
from nearsim_db.similarity.arrays import Ints, Mask, Sketches
from nearsim_db.similarity.batches import PackedDigests, SignatureRows
from nearsim_db.similarity.recipe import Recipe
from nearsim_db.similarity.recipe.sections import NOWHERE
from nearsim_db.similarity.sketch.family import Family

# The numbers of bytes of the parts of a label, in this order. Among a million values, the probability that any two have
# the same six bytes is 1 / 560.
WITHIN_BYTES, DATE_BYTES, ACROSS_BYTES = 6, 4, 5
_DIGEST_BYTES = 16
_EARLIEST, _MINUTES_PER_DAY = datetime(1600, 1, 1, tzinfo=UTC), 24 * 60

ExclusionKind = Literal["other_value", "distant_dates", "same_value"]
Labels = NDArray[np.uint8]


@dataclass(frozen=True, slots=True)
class FieldRules:
    """The rules of a recipe: its keys `match.within`, `match.within_days` and `match.across`."""

    within: tuple[str, ...]  # the fields whose values must be equal in a pair; None is equal to None
    days: int  # the largest difference of the dates of a pair, or 0 for any; no date is close only to no date
    across: str | None  # the field whose values must differ in a pair; None differs from any other value

    @classmethod
    def of(cls, recipe: Recipe) -> Self | None:
        """Return the rules of a recipe, or None if it has no such keys."""
        match = recipe.match
        rules = cls(match.fields_within, match.within_days, None if match.across == NOWHERE else match.across)
        return rules if rules.label_bytes else None

    @classmethod
    def of_records(cls, recipe: Recipe) -> Self | None:
        """Return the rules of a recipe without `across`, or None if it has no other such keys."""
        rules = cls(recipe.match.fields_within, recipe.match.within_days, None)
        return rules if rules.label_bytes else None

    @property
    def fields(self) -> tuple[str, ...]:
        """The fields whose values are read: the fields of `within`, then the field of `across`."""
        return self.within if self.across is None else (*self.within, self.across)

    @property
    def has_twins(self) -> bool:
        """Whether documents with the same features and label have the same digest, and are twins.

        With `across`, documents of the same value are not a pair, so each document has a digest of its own.
        """
        return self.across is None

    @property
    def label_bytes(self) -> int:
        """The size of a label in bytes."""
        return self._across_begin + ACROSS_BYTES * (self.across is not None)

    @property
    def _date_begin(self) -> int:
        return WITHIN_BYTES * bool(self.within)

    @property
    def _across_begin(self) -> int:
        return self._date_begin + DATE_BYTES * bool(self.days)

    def digest(self, features: bytes, doc_id: int, label: bytes) -> bytes:
        """Return the digest of a document with a label. `features` is the digest of its features."""
        content = features if self.has_twins else features + doc_id.to_bytes(8, "little")
        return blake2b(content, digest_size=_DIGEST_BYTES - self.label_bytes).digest() + label

    def is_digest(self, digest: UUID, features: bytes, doc_id: int) -> bool:
        """Whether a digest belongs to a document with these features, whatever its label is."""
        return digest.bytes == self.digest(features, doc_id, digest.bytes[-self.label_bytes :])

    def labelled(self, rows: SignatureRows, labels: Labels, family: Family) -> SignatureRows:
        """Return signatures with the digests and sketches that documents with these labels have."""
        digests = self.digests(rows.digests, labels, rows.doc_ids.tolist())
        return replace(rows, digests=digests, sketches=self.salted(rows.sketches, labels, family))

    def digests(
        self, features: NDArray[np.void], labels: Labels, doc_ids: Iterable[int] = repeat(0)
    ) -> NDArray[np.void]:
        """Return the digests of documents with labels. `doc_ids` are used only if there are no twins."""
        columns = zip(features, doc_ids, labels, strict=False)
        digests = b"".join(
            [self.digest(digest.tobytes(), doc_id, label.tobytes()) for digest, doc_id, label in columns]
        )
        return np.frombuffer(digests, f"V{_DIGEST_BYTES}")

    def salted(self, sketches: Sketches, labels: Labels, family: Family) -> Sketches:
        """Alter sketches so that two documents whose values of `within` differ share no band.

        The sketches of two documents with equal values stay as similar as they were.
        """
        if not self.within or not len(sketches):
            return sketches
        salts = np.zeros((len(labels), 8), np.uint8)
        salts[:, :WITHIN_BYTES] = labels[:, :WITHIN_BYTES]
        return family.salted(sketches, salts.view("<u8")[:, 0].astype(np.uint64))

    def labels_of(self, digests: Sequence[UUID]) -> Labels:
        """Return the labels of digests, (n, label_bytes)."""
        array = PackedDigests.of(digests).array.view(np.uint8).reshape(-1, _DIGEST_BYTES)
        return array[:, _DIGEST_BYTES - self.label_bytes :]

    def may_pair(self, left: Labels, right: Labels) -> Mask:
        """Return which rows of labels may be a pair. `left` or `right` may be a single row, for all rows of the
        other.
        """
        return self.agree(left, right) & self.are_close(left, right) & self.differ(left, right)

    def agree(self, left: Labels, right: Labels) -> Mask:
        """Return for each row whether the values of `within` are equal."""
        end = self._date_begin
        agree: Mask = np.asarray((left[:, :end] == right[:, :end]).all(axis=1))
        return agree

    def are_close(self, left: Labels, right: Labels) -> Mask:
        """Return for each row whether the dates are at most `days` apart, or are both missing."""
        if not self.days:
            return np.ones(max(len(left), len(right)), np.bool_)
        minutes, other_minutes = self._minutes(left), self._minutes(right)
        are_both_given = (minutes > 0) == (other_minutes > 0)
        close: Mask = are_both_given & (np.abs(minutes - other_minutes) <= self.days * _MINUTES_PER_DAY)
        return close

    def differ(self, left: Labels, right: Labels) -> Mask:
        """Return for each row whether the values of `across` differ."""
        if self.across is None:
            return np.ones(max(len(left), len(right)), np.bool_)
        differ: Mask = (left[:, self._across_begin :] != right[:, self._across_begin :]).any(axis=1)
        return differ

    def _minutes(self, labels: Labels) -> Ints:
        part = np.ascontiguousarray(labels[:, self._date_begin : self._across_begin])
        return part.view(">u4")[:, 0].astype(np.int64)

    def exclusion(self, left: Labels, right: Labels) -> tuple[ExclusionKind, str] | None:
        """Return the rule that excludes the pair of two labels, each a single row, with a description; None if none
        does.
        """
        if not self.agree(left, right)[0]:
            named = ", ".join(self.within)
            return "other_value", f"their values of {named} differ, within which pairs count (match.within)"
        if not self.are_close(left, right)[0]:
            days = count_of(self.days, "day")
            return "distant_dates", f"their dates are more than {days} apart (match.within_days)"
        if not self.differ(left, right)[0]:
            return (
                "same_value",
                f"their values of {self.across} are equal, across which pairs count (match.across)",
            )
        return None


def date_label(published_at: datetime | None) -> bytes:
    """Return the label of a date: 1 plus the minutes since the beginning of 1600, or 0 if there is no date."""
    minutes = 0 if published_at is None else (published_at - _EARLIEST) // timedelta(minutes=1) + 1
    limited = minutes if published_at is None else min(max(minutes, 1), 256**DATE_BYTES - 1)
    return limited.to_bytes(DATE_BYTES, "big")
