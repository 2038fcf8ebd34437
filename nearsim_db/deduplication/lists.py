"""The lists of `dedupe`: a JSON line for each counted pair of records, equal texts included, and for each cluster."""

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from itertools import combinations, product
from pathlib import Path

import numpy as np

from nearsim_db.deduplication.clusters import Clusters
from nearsim_db.deduplication.comparison import Labels
from nearsim_db.deduplication.pairs import SortedPairs, Twins
from nearsim_db.deduplication.records import EncodedRecords
from nearsim_db.readers.output import json_line, open_output
from nearsim_db.readers.places import RecordPlaces
from nearsim_db.readers.writers.file_format import compression_of
from nearsim_db.readers.writers.opened import compressed

# If a text has more copies, each copy is listed with the first copy only.
MAX_LISTED_COPIES = 100
# Digits of a 32-bit float, in which an index stores estimates; no sketch is more precise.
_ESTIMATE_DIGITS = 6

Figures = dict[str, object]


@dataclass
class PairLines:
    """Makes the lines of counted pairs of records, including pairs of records with equal features."""

    twins: Twins
    records: EncodedRecords
    places: RecordPlaces
    labels: Labels
    ordered: Callable[[int, int], tuple[int, int]]  # returns the left and the right record of a pair

    def __post_init__(self) -> None:
        head_of = self.twins.head_of
        self._order = np.argsort(head_of, kind="stable")
        self._bounds = np.searchsorted(head_of[self._order], np.arange(len(head_of) + 1))

    def of_heads(self, pairs: SortedPairs) -> Iterator[bytes]:
        """Yield the pairs of records with different features; `pairs` are the pairs of their heads."""
        is_exact = self.records.encoder.profile.recipe.match.verify == "exact"
        for rows in pairs.blocks():
            for row in rows:
                figures: Figures = {
                    "similarity": float(row["similarity"]),
                    "intersection": int(row["intersection"]) if pairs.has_counts else None,
                    "union": int(row["union"]) if pairs.has_counts else None,
                    "estimate": round(float(str(row["estimate"])), _ESTIMATE_DIGITS),
                    "shared_bands": int(row["shared_bands"]),
                    "verified": is_exact,
                    **({"distance": float(row["distance"])} if pairs.has_distances else {}),
                }
                ends = self._between(self._documents(row["left"]), self._documents(row["right"]))
                yield from self._lines(ends, figures)

    def of_twins(self, pairs: SortedPairs) -> Iterator[bytes]:
        """Yield the pairs of records with the same features, with the same figures as `pairs`."""
        has_features = self.records.encoder.has_sketches
        for head in np.flatnonzero(self.twins.sizes() > 1).tolist():
            count = int(self.records.counts[head]) if pairs.has_counts and has_features else None
            same: Figures = {"similarity": 1.0, "intersection": count, "union": count, "estimate": 1.0}
            same |= {"shared_bands": self._bands_of(head) if has_features else 0, "verified": True}
            if pairs.has_distances:
                same["distance"] = 0.0
            yield from self._lines(self._within(self._documents(head)), same)

    def _bands_of(self, head: int) -> int:
        """Return the number of bands that twins share; with containment it is the number of their fingerprints."""
        encoder = self.records.encoder
        if encoder.metric.name != "containment":
            return encoder.profile.bands
        sketches = self.records.read_sketches(np.array([head]))
        return int(encoder.shared_bands(sketches, sketches)[0])

    def _documents(self, head: int) -> list[int]:
        documents: list[int] = self._order[self._bounds[head] : self._bounds[head + 1]].tolist()
        return documents

    def _between(self, left: list[int], right: list[int]) -> Iterable[tuple[int, int]]:
        """Return the pairs between copies of two texts; if there are many copies, pair each with one copy only."""
        if max(len(left), len(right)) <= MAX_LISTED_COPIES:
            return product(left, right)
        lines = [*self._with_first(right, left), *self._with_first(left, right)]
        return dict.fromkeys((min(ends), max(ends)) for ends in lines)

    def _within(self, copies: list[int]) -> Iterable[tuple[int, int]]:
        """Return the pairs of copies of one text; if there are many copies, pair each with one of the first only."""
        if len(copies) <= MAX_LISTED_COPIES:
            return combinations(copies, 2)
        return dict.fromkeys((min(ends), max(ends)) for ends in self._with_first(copies, copies))

    def _with_first(self, records: list[int], copies: list[int]) -> Iterator[tuple[int, int]]:
        """Yield each record with the first of `copies` with which it has a counted pair."""
        firsts = self.labels.firsts(copies)
        for record in records:
            for first in firsts:
                if first != record and self.labels.counts(first, record):
                    yield first, record
                    break

    def _lines(self, ends: Iterable[tuple[int, int]], figures: Figures) -> Iterator[bytes]:
        for first, second in ends:
            if not self.labels.counts(first, second):
                continue

            numbers = self.ordered(first, second)
            left, right = map(self.places.find, numbers)
            titles = {"left_title": left[2], "right_title": right[2]}
            yield json_line(
                {
                    **{
                        "left": left[1],
                        "right": right[1],
                        **figures,
                        **self._shares(numbers, figures),
                        **titles,
                    },
                    **{"left_place": left[0], "right_place": right[0]},
                }
            )

    def _shares(self, numbers: tuple[int, int], figures: Figures) -> Figures:
        """Return for each record the fraction of its features that the other has, if the metric is containment."""
        both = figures["intersection"]
        if self.records.encoder.metric.name != "containment" or not isinstance(both, int):
            return {}
        left, right = (both / int(self.records.counts[number]) for number in numbers)
        return {"left_in_right": left, "right_in_left": right}


def cluster_lines(clusters: Clusters, places: RecordPlaces) -> Iterator[bytes]:
    """Yield the clusters, the largest first. The number of a cluster is the number of its first record, from 1."""
    # Sort the rows by cluster, and find where each cluster begins and ends.
    order = np.argsort(clusters.cluster_ids, kind="stable")
    begins = np.flatnonzero(np.diff(clusters.cluster_ids[order], prepend=-1))
    ends = np.append(begins[1:], len(order))

    # begin - end is the negative size; the sort is stable, so clusters of equal size keep the order of the input.
    for at in np.argsort(begins - ends, kind="stable").tolist():
        rows = order[begins[at] : ends[at]]
        members = [places.find(number) for number in clusters.numbers[rows].tolist()]
        kept = np.flatnonzero(clusters.survives[rows]).tolist()
        survivor, external_id, title = members[kept[0]] if kept else (None, None, None)
        yield json_line(
            {
                "cluster": int(clusters.cluster_ids[rows[0]]) + 1,
                "survivor": external_id,
                "members": [id for _, id, _ in members],
                "title": title,
                "survivor_place": survivor,
                "places": [place for place, _, _ in members],
            }
        )


def write_lines(path: Path | None, lines: Iterable[bytes]) -> None:
    if path is not None:
        with open_output(path) as stream, compressed(stream, compression_of(path)) as target:
            for line in lines:
                target.write(line)
