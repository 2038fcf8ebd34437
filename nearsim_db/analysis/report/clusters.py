"""Selection of the clusters that a report lists."""

import heapq
from collections import Counter
from collections.abc import Sequence

from nearsim_db.analysis.report.contents import Clusters, ListedCluster
from nearsim_db.analysis.report.findings import suspicion
from nearsim_db.store import reports
from nearsim_db.store.driver import Connection
from nearsim_db.store.driver.statements import Leaves
from nearsim_db.store.reports import ClusterFacts

LISTED_MEMBERS = 12
SUSPICIOUS_FROM = 10

_Scored = tuple[float, ClusterFacts]


def read(connection: Connection, leaves: Leaves, threshold: float, top: int) -> Clusters:
    """Count clusters by size, and list the `top` largest and the `top` most suspicious with their first members.

    A cluster is suspicious from a score of 10 of 100. Clusters are streamed; only the listed ones are held in memory.
    """
    sizes: Counter[int] = Counter()
    largest = _Best(top)
    suspicious = _Best(top)
    all_suspicious = 0
    for facts in reports.stream_cluster_facts(connection, leaves):
        sizes[facts.members] += 1
        score = suspicion(facts, threshold)
        largest.offer(facts.members, score, facts)
        if score >= SUSPICIOUS_FROM:
            all_suspicious += 1
            suspicious.offer(score, score, facts)
    chosen = [*largest.sorted(), *suspicious.sorted()]
    ids = sorted({facts.cluster_id for _, facts in chosen})
    members = reports.read_cluster_details(connection, leaves, ids, LISTED_MEMBERS) if ids else {}
    return Clusters(
        sizes.total(),
        sum(size * clusters for size, clusters in sizes.items()),
        tuple(sorted(sizes.items())),
        _listed(largest.sorted(), members),
        _listed(suspicious.sorted(), members),
        all_suspicious,
    )


class _Best:
    """The clusters with the highest measure; ties go to the lower cluster id."""

    def __init__(self, amount: int) -> None:
        self._amount = amount
        self._heap: list[tuple[float, int, _Scored]] = []

    def offer(self, measure: float, score: float, facts: ClusterFacts) -> None:
        """Keep a cluster if it ranks among the best so far."""
        entry = (measure, -facts.cluster_id, (score, facts))
        if len(self._heap) < self._amount:
            heapq.heappush(self._heap, entry)
        else:
            heapq.heappushpop(self._heap, entry)

    def sorted(self) -> list[_Scored]:
        """Return the kept clusters, best first."""
        return [scored for _, _, scored in sorted(self._heap, reverse=True)]


def _listed(chosen: Sequence[_Scored], members: dict[int, list[reports.Member]]) -> tuple[ListedCluster, ...]:
    return tuple(
        ListedCluster(facts, round(score, 1), tuple(members.get(facts.cluster_id, ())))
        for score, facts in chosen
    )
