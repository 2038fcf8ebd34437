"""The same collection on a single server and on a Citus cluster, and the answers of both."""

import random
from typing import Any, LiteralString

from nearsim_db import Document, Index
from nearsim_db.records import Progress, silent
from nearsim_db.similarity.recipe import Recipe, override
from nearsim_db.store.driver.statements import Leaves
from nearsim_db.store.generations import generation_rows

SETTINGS = ["shingle.k=1", "match.threshold=0.4", "bands.count=20", "bands.rows=3"]
QUESTIONS: dict[str, LiteralString] = {
    "pairs": "SELECT left_id, right_id, similarity, estimate, shared_bands FROM nearsim.pairs",
    "clusters": (
        "SELECT doc_id, cluster_id, is_survivor FROM nearsim.cluster_member "
        "JOIN nearsim.generation USING (generation_id) WHERE state = 'live'"
    ),
    "buckets": "SELECT bucket_hash, members, anchors, left_out FROM nearsim.buckets",
    "candidates": "SELECT * FROM nearsim.candidates()",
    "similar": (
        "SELECT document.doc_id, found.* FROM nearsim.document "
        "CROSS JOIN LATERAL nearsim.similar_to(document.external_id, min_similarity => 0.1) AS found"
    ),
    "why_not": (
        "SELECT document.doc_id, found.is_pair, found.shared_bands, found.estimate, found.probability, found.reason "
        "FROM nearsim.document CROSS JOIN LATERAL nearsim.why_not('d50', document.external_id) AS found "
        "WHERE external_id <> 'd50'"
    ),
}


def documents(amount: int, seed: int, first: int = 0) -> list[Document]:
    """Texts in families of edited copies. Most texts share a footer, so its buckets exceed a small bucket limit."""
    rng = random.Random(seed)
    words = [f"word{number}" for number in range(400)]
    footer = [f"footer{number}" for number in range(20)]
    bases = [rng.choices(words, k=20) for _ in range(amount // 5)]
    made = []
    for number in range(first, first + amount):
        text = list(rng.choice(bases))
        for _ in range(rng.choice((0, 0, 2, 5))):
            text[rng.randrange(len(text))] = rng.choice(words)
        body = " ".join(text + footer if rng.random() < 0.7 else text)
        made.append(Document(f"d{number}", title=f"title {number}", body=body))
    return made


def index_at(url: str, bucket_limit: int = 64, progress: Progress = silent) -> Index:
    """An index with an empty collection and one profile."""
    index = Index.connect(url, progress=progress)
    index.create_profile("default", override(Recipe(), [*SETTINGS, f"match.bucket_limit={bucket_limit}"]))
    return index


def answers(index: Index) -> dict[str, list[tuple[Any, ...]]]:
    """The rows that answer each question, sorted."""
    with index.database.transaction() as connection:
        return {
            name: sorted(connection.execute(query).fetchall(), key=repr) for name, query in QUESTIONS.items()
        }


def newest_leaves(index: Index) -> Leaves:
    """The tables of the newest generation."""
    with index.database.transaction() as connection:
        return generation_rows.list_generations(connection)[-1].leaves
