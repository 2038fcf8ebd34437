"""Fields that decide whether two documents may be a pair, whatever their texts are: values that are equal, dates that
lie close, values that differ.

What a document has of them is its label. In an index it is the end of the digest, so that pairs are left out before
they are verified, and a document whose fields change is signed again. The part that has to be equal also alters the
sketch: documents that differ in it share no bucket.
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

# The bytes of a label, in this order. Of a million values two have the same six bytes once in 560 collections.
WITHIN_BYTES, DATE_BYTES, ACROSS_BYTES = 6, 4, 5
_DIGEST_BYTES = 16
_EARLIEST, _MINUTES_PER_DAY = datetime(1600, 1, 1, tzinfo=UTC), 24 * 60

ExclusionKind = Literal["other_value", "distant_dates", "same_value"]
Labels = NDArray[np.uint8]


@dataclass(frozen=True, slots=True)
class FieldRules:
    """The keys `match.within`, `match.within_days` and `match.across` of a recipe.

    Of documents that `has_twins`, those with the same features and the same label are twins; without it, as under
    `across`, where they are no pair, digests are distinct.
    """

    within: tuple[str, ...]  # fields whose values are equal in a pair, where None is a value
    days: int  # by which the dates of a pair may differ, 0: any; documents without a date are paired with each other
    across: str | None  # the field whose values differ in a pair, where None is a value

    @classmethod
    def of(cls, recipe: Recipe) -> Self | None:
        """Return the rules of a recipe, None if fields decide nothing."""
        match = recipe.match
        rules = cls(match.fields_within, match.within_days, None if match.across == NOWHERE else match.across)
        return rules if rules.label_bytes else None

    @classmethod
    def of_records(cls, recipe: Recipe) -> Self | None:
        """Return the rules of a recipe without `across`, None if there are no others."""
        rules = cls(recipe.match.fields_within, recipe.match.within_days, None)
        return rules if rules.label_bytes else None

    @property
    def fields(self) -> tuple[str, ...]:
        """The fields whose values are read: those of `within`, then the one of `across`."""
        return self.within if self.across is None else (*self.within, self.across)

    @property
    def has_twins(self) -> bool:
        """Whether documents with the same digest are twins."""
        return self.across is None

    @property
    def label_bytes(self) -> int:
        """The size of a label."""
        return self._across_begin + ACROSS_BYTES * (self.across is not None)

    @property
    def _date_begin(self) -> int:
        return WITHIN_BYTES * bool(self.within)

    @property
    def _across_begin(self) -> int:
        return self._date_begin + DATE_BYTES * bool(self.days)

    def digest(self, features: bytes, doc_id: int, label: bytes) -> bytes:
        """Return the digest of a document, from the one of its features."""
        own = features if self.has_twins else features + doc_id.to_bytes(8, "little")
        return blake2b(own, digest_size=_DIGEST_BYTES - self.label_bytes).digest() + label

    def is_digest(self, digest: UUID, features: bytes, doc_id: int) -> bool:
        """Whether a digest with any label is of these features of a document."""
        return digest.bytes == self.digest(features, doc_id, digest.bytes[-self.label_bytes :])

    def labelled(self, rows: SignatureRows, labels: Labels, family: Family) -> SignatureRows:
        """Return signatures with the digests and sketches that these documents have under labels."""
        digests = self.digests(rows.digests, labels, rows.doc_ids.tolist())
        return replace(rows, digests=digests, sketches=self.salted(rows.sketches, labels, family))

    def digests(
        self, features: NDArray[np.void], labels: Labels, doc_ids: Iterable[int] = repeat(0)
    ) -> NDArray[np.void]:
        """Return the digests of documents under labels; `doc_ids` only count without twins."""
        columns = zip(features, doc_ids, labels, strict=False)
        digests = b"".join(
            [self.digest(digest.tobytes(), doc_id, label.tobytes()) for digest, doc_id, label in columns]
        )
        return np.frombuffer(digests, f"V{_DIGEST_BYTES}")

    def salted(self, sketches: Sketches, labels: Labels, family: Family) -> Sketches:
        """Alter sketches so that those of documents whose values have to be equal, and are not, share no band.

        All else that two sketches show stays the same.
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
        """Return which documents with these labels, row by row, may be a pair; one of both may be a single row."""
        return self.agree(left, right) & self.are_close(left, right) & self.differ(left, right)

    def agree(self, left: Labels, right: Labels) -> Mask:
        """Return whether the values that have to be equal are."""
        end = self._date_begin
        agree: Mask = np.asarray((left[:, :end] == right[:, :end]).all(axis=1))
        return agree

    def are_close(self, left: Labels, right: Labels) -> Mask:
        """Return whether the dates lie as close as they have to."""
        if not self.days:
            return np.ones(max(len(left), len(right)), np.bool_)
        minutes, other_minutes = self._minutes(left), self._minutes(right)
        are_both_given = (minutes > 0) == (other_minutes > 0)
        close: Mask = are_both_given & (np.abs(minutes - other_minutes) <= self.days * _MINUTES_PER_DAY)
        return close

    def differ(self, left: Labels, right: Labels) -> Mask:
        """Return whether the values that have to differ do."""
        if self.across is None:
            return np.ones(max(len(left), len(right)), np.bool_)
        differ: Mask = (left[:, self._across_begin :] != right[:, self._across_begin :]).any(axis=1)
        return differ

    def _minutes(self, labels: Labels) -> Ints:
        part = np.ascontiguousarray(labels[:, self._date_begin : self._across_begin])
        return part.view(">u4")[:, 0].astype(np.int64)

    def exclusion(self, left: Labels, right: Labels) -> tuple[ExclusionKind, str] | None:
        """Say which rule keeps two documents with these labels, a row each, from being a pair; None if none does."""
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
    """Return a date in minutes since 1600, which is 1; 0 for none."""
    minutes = 0 if published_at is None else (published_at - _EARLIEST) // timedelta(minutes=1) + 1
    limited = minutes if published_at is None else min(max(minutes, 1), 256**DATE_BYTES - 1)
    return limited.to_bytes(DATE_BYTES, "big")
