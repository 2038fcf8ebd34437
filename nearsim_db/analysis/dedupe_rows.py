"""The pairs and clusters of `dedupe` as JSON lines, each record with its id and place."""

from collections.abc import Iterator

import numpy as np

from nearsim_db.analysis.encoded_records import EncodedRecords
from nearsim_db.analysis.file_pairs import Clusters, HeadPairs, Twins
from nearsim_db.readers.output import json_line
from nearsim_db.readers.places import RecordPlaces
from nearsim_db.similarity.profile import Profile

_ESTIMATE_DIGITS = 6  # more than any sketch resolves; of 32-bit floats, as an index stores them

Figures = dict[str, object]


def pair_lines(
    profile: Profile, pairs: HeadPairs, twins: Twins, records: EncodedRecords, places: RecordPlaces
) -> Iterator[bytes]:
    """Yield all pairs, copies included: the earlier record left."""
    order = np.argsort(twins.head_of, kind="stable")
    bounds = np.searchsorted(twins.head_of[order], np.arange(len(twins.head_of) + 1))
    scores = pairs.scores

    def documents(head: int) -> list[int]:
        found: list[int] = order[bounds[head] : bounds[head + 1]].tolist()
        return found

    for row, (left, right) in enumerate(pairs.edges.tolist()):
        figures: Figures = {
            "similarity": float(scores.similarity[row]),
            "intersection": None if scores.intersection is None else int(scores.intersection[row]),
            "union": None if scores.union is None else int(scores.union[row]),
            "estimate": round(float(str(np.float32(pairs.estimate[row]))), _ESTIMATE_DIGITS),
            "shared_bands": int(pairs.shared_bands[row]),
            "verified": profile.recipe.match.verify == "exact",
        }
        if scores.distance is not None:
            figures["distance"] = float(scores.distance[row])
        for one in documents(left):
            for other in documents(right):
                yield _pair_line(min(one, other), max(one, other), figures, places)
    for head in np.flatnonzero(twins.sizes() > 1).tolist():
        count = int(records.counts[head]) if scores.intersection is not None else None
        same: Figures = {"similarity": 1.0, "intersection": count, "union": count, "estimate": 1.0}
        same |= {"shared_bands": profile.bands, "verified": True}
        if scores.distance is not None:
            same["distance"] = 0.0
        own = documents(head)
        for at, one in enumerate(own):
            for other in own[at + 1 :]:
                yield _pair_line(one, other, same, places)


def _pair_line(left: int, right: int, figures: Figures, places: RecordPlaces) -> bytes:
    left_place, left_id, left_title = places.find(left)
    right_place, right_id, right_title = places.find(right)
    titles = {"left_title": left_title, "right_title": right_title}
    ends = {"left_place": left_place, "right_place": right_place}
    return json_line({"left": left_id, "right": right_id, **figures, **titles, **ends})


def cluster_lines(clusters: Clusters, places: RecordPlaces) -> Iterator[bytes]:
    """Yield the clusters, the largest first, each identified by the number of its first record from 1."""
    order = np.argsort(clusters.cluster_ids, kind="stable")
    begins = np.flatnonzero(np.diff(clusters.cluster_ids[order], prepend=-1))
    ends = np.append(begins[1:], len(order))
    for at in np.argsort(begins - ends, kind="stable").tolist():
        rows = order[begins[at] : ends[at]]
        members = [places.find(number) for number in clusters.numbers[rows].tolist()]
        kept = int(np.flatnonzero(clusters.survives[rows])[0])
        survivor, external_id, title = members[kept]
        yield json_line(
            {
                "cluster": int(clusters.cluster_ids[rows[0]]) + 1,
                "survivor": external_id,
                "members": [one for _, one, _ in members],
                "title": title,
                "survivor_place": survivor,
                "places": [one for one, _, _ in members],
            }
        )
