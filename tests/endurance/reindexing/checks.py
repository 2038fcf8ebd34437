"""The comparison of the index that is left with the documents that the writers left, by the oracle of the soak."""

from collections.abc import Iterator, Mapping

import networkx
import psycopg

from tests.endurance.reindexing.scenario import COLLECTION, World, command
from tests.endurance.reindexing.writing import Text
from tests.endurance.soak.compare import wrong_bands, wrong_pairs, wrong_signatures
from tests.endurance.soak.oracle import Expected
from tests.endurance.soak.stored import Stored, read_documents, read_generation, read_generations

_LEFT = """
SELECT 'change', count(*) FROM nearsim.change HAVING count(*) > 0
UNION ALL SELECT stage, count(*) FROM nearsim.work GROUP BY stage
"""


def check(
    world: World, generation_id: int, written: Mapping[str, Text]
) -> tuple[dict[str, int], dict[str, list[str]]]:
    """Drain the queue and compare: figures, and what differs; empty if nothing does."""
    command(world.url, "worker", "--once", "--collection", COLLECTION, "--quiet")
    with psycopg.connect(world.url, autocommit=True) as connection:
        waiting = [f"{stage}: {count}" for stage, count in connection.execute(_LEFT)]
        documents = read_documents(connection)
        (generation,) = (one for one in read_generations(connection) if one.generation_id == generation_id)
        stored = read_generation(connection, generation)
    rows = {doc_id: one.row(one.values["body"]) for doc_id, one in documents.items()}
    expected = Expected(generation.recipe, generation.bands, generation.rows, rows)
    texts = {
        one.values["external_id"]: (one.values["title"], one.values["body"]) for one in documents.values()
    }
    found = {
        "work left": waiting,
        "documents not as written": sorted(
            name for name in written.keys() | texts if written.get(name) != texts.get(name)
        ),
        "signatures": list(
            wrong_signatures(expected, {doc_id: one.revision for doc_id, one in documents.items()}, stored)
        ),
        "band rows": list(wrong_bands(expected, stored)),
        "pairs": list(wrong_pairs(expected, stored)),
        "clusters": list(wrong_clusters(expected, stored)),
    }
    figures = {
        "documents": len(documents),
        "pairs": len(stored.pairs),
        "clusters": len({cluster for cluster, _ in stored.members.values()}),
    }
    return figures, {name: wrong for name, wrong in found.items() if wrong}


def wrong_clusters(expected: Expected, stored: Stored) -> Iterator[str]:
    """Yield components of pairs and twins that are not a cluster with its earliest document as survivor."""
    twins = [(head, doc_id) for doc_id, head in expected.heads.items() if head not in (None, doc_id)]
    graph = networkx.Graph([*stored.pairs, *twins])
    clusters: dict[int, tuple[int, bool]] = {}
    for members in networkx.connected_components(graph):
        survivor = min(members, key=lambda doc_id: (expected.documents[doc_id].date, doc_id))
        clusters |= {doc_id: (min(members), doc_id == survivor) for doc_id in members}
    for doc_id in clusters.keys() | stored.members.keys():
        if clusters.get(doc_id) != stored.members.get(doc_id):
            yield f"document {doc_id} is in {stored.members.get(doc_id)}, expected {clusters.get(doc_id)}"
