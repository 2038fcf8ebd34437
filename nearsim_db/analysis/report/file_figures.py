"""Figures of a report on files: counts and lists of the pairs and clusters that `dedupe` found, without a database."""

from collections.abc import Callable, Iterator, Sequence

import numpy as np
from numpy.typing import NDArray

from nearsim_db.deduplication.files import FoundDuplicates
from nearsim_db.deduplication.pairs import PairRows
from nearsim_db.similarity.arrays import Floats, Ints, Mask
from nearsim_db.store.clusters.reports import (
    ClusterFacts,
    Copies,
    CorpusCounts,
    Member,
    OverTime,
    ReportPair,
    SourceCount,
    SourceOrigin,
    Timeline,
    TimeStep,
)

_SECOND = np.timedelta64(1, "s")
# Steps of time range over these percentiles of the dates. Earlier documents count in the first step, later ones in the
# last step.
_OUTER_PERCENTILES = (1, 99)
_MIN_SECONDS_SHOWN = 60

_RowFilter = Callable[[PairRows], Mask]


class FileFigures:
    """Counts and lists of pairs, clusters, sources and dates. Documents are numbered from 0.

    For an index of the same documents, the methods of `ReportQueries` with the same names return the same figures.
    """

    def __init__(self, result: FoundDuplicates) -> None:
        self._pairs, self._duplicates = result.duplicates.pairs, result.duplicates
        self._places, self._numbers = result.places, result.records.numbers
        self._is_exact = result.records.encoder.profile.recipe.match.verify == "exact"

        columns = result.places.columns()
        self._titled = int((columns["title"] >= 0).sum())
        names = np.array(result.places.sources, object)
        self._source_names: list[str] = sorted(result.places.sources)
        # Each source has a code. Codes ascend with the names of the sources; the highest code means no source.
        rank = np.append(np.argsort(np.argsort(names)), len(names)).astype(np.int64)
        self._sources: Ints = rank[columns["source"]]
        self._dates: NDArray[np.datetime64] = columns["published"]
        self._seconds: Floats = self._dates.astype(np.int64) / 1e6
        self._seconds[np.isnat(self._dates)] = np.nan

        self._clusters = _ClusterRows(result, self._seconds)

    def count_corpus(self) -> CorpusCounts:
        """Count all documents, and the documents that have a title, a source or a date."""
        dated = self._dates[~np.isnat(self._dates)]
        first, last = (_minute(dated.min()), _minute(dated.max())) if len(dated) else (None, None)
        return CorpusCounts(
            documents=len(self._dates),
            with_title=self._titled,
            with_source=int((self._sources < len(self._source_names)).sum()),
            with_date=len(dated),
            sources=len(self._source_names),
            first_date=first,
            last_date=last,
            pinned=0,
            vetoed=0,
        )

    # Pairs.

    def count_similarities(self, min_similarity: float, steps: int) -> Ints:
        """Count the pairs in equal steps of similarity from `min_similarity` to 1.

        Returns int64 of (steps, 2): pairs whose texts have equal numbers, and pairs whose texts have different numbers.
        """
        counts = np.zeros((steps, 2), np.int64)
        for rows in self._pairs.blocks():
            step = _steps(rows["similarity"], min_similarity, 1.0, steps)
            np.add.at(counts, (step, self._numbers_differ(rows).astype(np.int64)), 1)
        return counts

    def read_lowest_pairs(self, amount: int) -> list[ReportPair]:
        """Return the least similar pairs."""
        return self._first_pairs(amount, lambda rows: np.ones(len(rows), bool), sign=1)

    def read_renumbered_pairs(self, amount: int) -> list[ReportPair]:
        """Return the most similar pairs whose numbers differ."""
        return self._first_pairs(amount, self._numbers_differ, sign=-1)

    def read_spread_pairs(self, min_similarity: float, steps: int) -> list[ReportPair]:
        """Divide the range from `min_similarity` to 1 into equal steps, and return the first pair of each step."""
        firsts: dict[int, ReportPair] = {}
        for rows in self._pairs.blocks():
            rows = rows[rows["similarity"] >= min_similarity]
            step_of_row = _steps(rows["similarity"], min_similarity, 1.0, steps)
            for step, row in zip(*np.unique(step_of_row, return_index=True), strict=True):
                if int(step) not in firsts:
                    firsts[int(step)] = self._pair(rows[row])
        return [pair for _, pair in sorted(firsts.items())]

    def _first_pairs(self, amount: int, is_wanted: _RowFilter, sign: int) -> list[ReportPair]:
        """Return the wanted pairs with the lowest similarities if `sign` is 1, the highest similarities if it is -1."""
        best = None
        for rows in self._pairs.blocks():
            candidates = rows[is_wanted(rows)]
            if best is not None:
                candidates = np.concatenate((best, candidates))
            best = candidates[np.argsort(sign * candidates["similarity"], kind="stable")[:amount]]
        return [] if best is None else [self._pair(row) for row in best]

    def _numbers_differ(self, rows: PairRows) -> Mask:
        differ: Mask = self._numbers[rows["left"]] != self._numbers[rows["right"]]
        return differ

    def _pair(self, row: np.void) -> ReportPair:
        left, right = int(row["left"]), int(row["right"])
        cluster_id = int(self._clusters.of_document[left])

        return ReportPair(
            similarity=float(row["similarity"]),
            intersection=int(row["intersection"]) if self._pairs.has_counts else None,
            union=int(row["union"]) if self._pairs.has_counts else None,
            estimate=float(row["estimate"]),
            shared_bands=int(row["shared_bands"]),
            distance=float(row["distance"]) if self._pairs.has_distances else None,
            verified=self._is_exact,
            left_id=left,
            right_id=right,
            numbers_differ=bool(self._numbers[left] != self._numbers[right]),
            cluster_id=None if cluster_id < 0 else cluster_id,
            verdict=None,
        )

    # Clusters.

    def stream_cluster_facts(self) -> Iterator[ClusterFacts]:
        """Yield the facts of all clusters, in the order of their first documents."""
        clusters = self._clusters
        group, count = clusters.group, len(clusters.survivors)
        similarity = clusters.similarity
        is_paired = ~np.isnan(similarity) & ~clusters.is_survivor
        paired = np.bincount(group[is_paired], minlength=count)
        total = np.bincount(group[is_paired], similarity[is_paired], count)
        least = np.full(count, np.inf)
        np.minimum.at(least, group[is_paired], similarity[is_paired])

        members = np.bincount(group, minlength=count)
        numbers = self._numbers
        differ = numbers[clusters.documents] != numbers[clusters.survivors[group]]
        renumbered = np.bincount(group[differ], minlength=count)

        sources = self._sources[clusters.documents]
        named = np.unique(np.stack((group, sources), axis=1)[sources < len(self._source_names)], axis=0)
        source_counts = np.bincount(named[:, 0], minlength=count)

        first, last = clusters.bounds_of_dates()
        for at in range(count):
            yield ClusterFacts(
                cluster_id=int(clusters.ids[at]),
                survivor_id=int(clusters.survivors[at]),
                members=int(members[at]),
                chained=int(members[at] - 1 - paired[at]),
                mean=float(total[at] / paired[at]) if paired[at] else None,
                least=float(least[at]) if paired[at] else None,
                renumbered=int(renumbered[at]),
                sources=int(source_counts[at]),
                span_seconds=None if np.isnan(first[at]) else float(last[at] - first[at]),
            )

    def read_cluster_details(self, cluster_ids: Sequence[int], members: int) -> dict[int, list[Member]]:
        """Return the first members of some clusters.

        The survivor comes first, then chained members, then the members that are least similar to the survivor.
        """
        clusters, details = self._clusters, {}
        for cluster_id in cluster_ids:
            rows = clusters.rows_of(cluster_id)
            similarity = np.nan_to_num(clusters.similarity[rows], nan=-np.inf)
            order = np.lexsort((clusters.documents[rows], similarity, ~clusters.is_survivor[rows]))
            details[cluster_id] = [self._member(int(row)) for row in rows[order][:members]]
        return details

    def _member(self, row: int) -> Member:
        clusters = self._clusters
        document, survivor = int(clusters.documents[row]), int(clusters.survivors[clusters.group[row]])

        _, external_id, title = self._places.find(document)
        similarity = float(clusters.similarity[row])
        date = self._dates[document]

        return Member(
            external_id=external_id,
            title=title,
            source=self._source_name(int(self._sources[document])),
            date=None if np.isnat(date) else _minute(date),
            url=None,
            survives=bool(clusters.is_survivor[row]),
            similarity=None if np.isnan(similarity) else similarity,
            numbers_differ=bool(self._numbers[document] != self._numbers[survivor]),
        )

    def read_timelines(self, cluster_ids: Sequence[int], steps: int) -> dict[int, Timeline]:
        """Return the timelines of some clusters, without clusters that have no dates."""
        timelines = {}
        for cluster_id in cluster_ids:
            seconds = self._seconds[self._clusters.documents[self._clusters.rows_of(cluster_id)]]
            seconds = seconds[~np.isnan(seconds)]
            if len(seconds):
                first, last = float(seconds.min()), float(seconds.max())
                counts = np.bincount(_steps(seconds, first, max(last, first + 1), steps), minlength=steps)
                timelines[cluster_id] = Timeline(_minute_of(first), tuple(counts.tolist()))
        return timelines

    # Sources and dates.

    def count_sources(self, amount: int) -> tuple[list[SourceCount], int]:
        """Return the `amount` sources with the most clustered documents, and the number of named sources.

        Documents without a source are counted as a source of the name None.
        """
        clusters, count = self._clusters, len(self._source_names) + 1
        documents, clustered, survivors, first = (
            np.bincount(self._sources[chosen], minlength=count)
            for chosen in (
                np.arange(len(self._sources)),
                clusters.documents,
                clusters.documents[clusters.is_survivor],
                clusters.first_documents(),
            )
        )

        present = np.flatnonzero(documents)
        order = present[np.lexsort((present, -documents[present], -clustered[present]))]
        listed = [
            SourceCount(
                self._source_name(int(code)),
                *(int(counts[code]) for counts in (documents, clustered, first, survivors)),
            )
            for code in order[:amount]
        ]
        return listed, len(self._source_names)

    def count_copies(self, amount: int) -> tuple[list[Copies], int]:
        """Return the `amount` pairs of sources with the most pairs of documents, and the number of pairs of sources."""
        delays_of: dict[tuple[int, int], list[Floats]] = {}
        for left, right in self._edges():
            # The source with the smaller name comes first, so the delay changes its sign if the sources are swapped.
            codes = np.stack((self._sources[left], self._sources[right]))
            delays = self._seconds[right] - self._seconds[left]
            delays = np.where(codes[0] > codes[1], -delays, delays)
            delays = np.where(codes[0] == codes[1], np.abs(delays), delays)
            codes.sort(axis=0)

            kinds, kind_of_pair = np.unique(codes, axis=1, return_inverse=True)
            kind_of_pair = kind_of_pair.ravel()
            order = np.argsort(kind_of_pair, kind="stable")
            ends = np.cumsum(np.bincount(kind_of_pair))
            for kind, values in zip(kinds.T.tolist(), np.split(delays[order], ends[:-1]), strict=True):
                delays_of.setdefault((kind[0], kind[1]), []).append(values)

        copies = [self._copies(kind, np.concatenate(parts)) for kind, parts in sorted(delays_of.items())]
        copies.sort(key=lambda row: -row.pairs)
        return copies[:amount], len(copies)

    def _copies(self, kind: tuple[int, int], delays: Floats) -> Copies:
        one_first, other_first = delays[delays > 0], -delays[delays < 0]
        return Copies(
            one=self._source_name(kind[0]),
            other=self._source_name(kind[1]),
            pairs=len(delays),
            one_first=len(one_first),
            one_delay_seconds=float(np.median(one_first)) if len(one_first) else None,
            other_first=len(other_first),
            other_delay_seconds=float(np.median(other_first)) if len(other_first) else None,
            at_once=int((delays == 0).sum()),
        )

    def _edges(self) -> Iterator[tuple[Ints, Ints]]:
        """Yield the two documents of each pair, and each twin with the first document that has the same features."""
        for rows in self._pairs.blocks():
            yield rows["left"], rows["right"]
        head_of = self._duplicates.twins.head_of
        twins = np.flatnonzero((head_of >= 0) & (head_of != np.arange(len(head_of))))
        if len(twins):
            yield head_of[twins], twins

    def count_over_time(self, steps: int, amount: int) -> OverTime | None:
        """Count documents and copies over time, and list the `amount` most frequent combinations of sources.

        Returns None if no document has a date.
        """
        is_dated = ~np.isnan(self._seconds)
        if not is_dated.any():
            return None
        ordered = np.sort(self._seconds[is_dated])
        first, last = (float(np.percentile(ordered, q, method="inverted_cdf")) for q in _OUTER_PERCENTILES)
        last = max(last, first + _MIN_SECONDS_SHOWN)

        step_of = np.full(len(self._seconds), -1)
        step_of[is_dated] = _steps(self._seconds[is_dated], first, last, steps)
        documents = np.bincount(step_of[is_dated], minlength=steps)
        copies, originals = self._clusters.later_documents()
        is_dated_copy = is_dated[copies]
        copied = np.bincount(step_of[copies[is_dated_copy]], minlength=steps)
        begins = first + (last - first) * np.arange(steps) / steps

        origins = self._origins(copies[is_dated_copy], originals[is_dated_copy], step_of, steps)
        return OverTime(
            _minute_of(last),
            tuple(
                TimeStep(_minute_of(begin), int(all_documents), int(later))
                for begin, all_documents, later in zip(begins, documents, copied, strict=True)
            ),
            tuple(origins[:amount]),
            len(origins),
        )

    def _origins(self, copies: Ints, originals: Ints, step_of: Ints, steps: int) -> list[SourceOrigin]:
        """Return which source published copies of which source's documents, the most frequent combination first."""
        kinds, kind_of_copy = np.unique(
            np.stack((self._sources[originals], self._sources[copies])), axis=1, return_inverse=True
        )
        kind_of_copy = kind_of_copy.ravel()
        delays = self._seconds[copies] - self._seconds[originals]

        origins = []
        for number, (first_source, source) in enumerate(kinds.T.tolist()):
            chosen = kind_of_copy == number
            counts = np.bincount(step_of[copies[chosen]], minlength=steps)
            origins.append(
                SourceOrigin(
                    self._source_name(first_source),
                    self._source_name(source),
                    int(chosen.sum()),
                    float(np.median(delays[chosen])),
                    tuple(counts.tolist()),
                )
            )
        return sorted(origins, key=lambda origin: -origin.documents)

    def _source_name(self, code: int) -> str | None:
        return self._source_names[code] if code < len(self._source_names) else None


class _ClusterRows:
    """The members of all clusters, ordered by cluster id and then by document number."""

    def __init__(self, result: FoundDuplicates, seconds: Floats) -> None:
        clusters = result.duplicates.clusters
        order = np.lexsort((clusters.numbers, clusters.cluster_ids))
        self.documents: Ints = clusters.numbers[order]
        self.ids, self.group = np.unique(clusters.cluster_ids[order], return_inverse=True)
        self._starts = np.append(np.searchsorted(self.group, np.arange(len(self.ids))), len(order))

        # If a cluster keeps no member, its first member counts as the survivor.
        survives = clusters.survives[order]
        self.survivors: Ints = self.documents[self._starts[:-1]].copy()
        self.survivors[self.group[survives]] = self.documents[survives]
        self.is_survivor: Mask = self.documents == self.survivors[self.group]

        # The similarity of each member and its survivor, nan if the two are not a pair.
        self.similarity: Floats = np.ones(len(order))
        rows = np.flatnonzero(~self.is_survivor)
        self.similarity[rows] = result.duplicates.similarities(
            self.documents[rows], self.survivors[self.group[rows]]
        )

        self.of_document: Ints = np.full(len(seconds), -1)
        self.of_document[self.documents] = self.ids[self.group]
        self._seconds = seconds[self.documents]

    def rows_of(self, cluster_id: int) -> Ints:
        """Return the rows of the members of a cluster."""
        at = int(self.ids.searchsorted(cluster_id))
        return np.arange(self._starts[at], self._starts[at + 1])

    def bounds_of_dates(self) -> tuple[Floats, Floats]:
        """Return the first and the last date of each cluster, in seconds since 1970; nan without dates."""
        first, last = np.full(len(self.ids), np.nan), np.full(len(self.ids), np.nan)
        np.fmin.at(first, self.group, self._seconds)
        np.fmax.at(last, self.group, self._seconds)
        return first, last

    def _first_rows(self) -> Ints:
        """Return the row of the earliest document of each cluster that has dates.

        If several documents have the earliest date, the document with the lowest number is taken.
        """
        order = np.lexsort((self.documents, self._seconds, self.group))
        firsts: Ints = order[self._starts[:-1]]
        return firsts[~np.isnan(self._seconds[firsts])]

    def first_documents(self) -> Ints:
        """Return the document that was published first, for each cluster that has dates."""
        return self.documents[self._first_rows()]

    def later_documents(self) -> tuple[Ints, Ints]:
        """Return the documents that are not the first of their cluster, and for each the cluster's first document.

        Clusters without dates are left out.
        """
        firsts = self._first_rows()
        first_of_group = np.full(len(self.ids), -1)
        first_of_group[self.group[firsts]] = self.documents[firsts]
        originals = first_of_group[self.group]
        is_later = (originals >= 0) & (originals != self.documents)
        return self.documents[is_later], originals[is_later]


def _steps(values: Floats, low: float, high: float, steps: int) -> Ints:
    """Divide the range from `low` to `high` into equal steps, and return the step of each value.

    Values below `low` are in the first step, values above `high` in the last.
    """
    return np.clip((values - low) / (high - low) * steps, 0, steps - 1).astype(np.int64)


def _minute(date: np.datetime64) -> str:
    """Return a date as text, truncated to the minute."""
    return str(np.datetime_as_string(date, unit="m")).replace("T", " ")


def _minute_of(seconds: float) -> str:
    return _minute(np.datetime64(0, "s") + int(seconds) * _SECOND)
