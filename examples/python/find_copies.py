"""Index a file of JSON lines and print each copy with the document to keep.

find_copies.py FILE [COLLECTION [PROFILE]]

The database is NEARSIM_DATABASE_URL, else the embedded server. Records have `id`, `title`, `text`, and optionally
`source` and `published_at`.
"""

import json
import sys
from collections.abc import Iterator
from datetime import datetime
from pathlib import Path

from nearsim_db import Document, Index


def read(path: Path) -> Iterator[Document]:
    """Yield the documents of a file of JSON lines."""
    with path.open(encoding="utf-8") as lines:
        for record in map(json.loads, lines):
            published = record.get("published_at")
            yield Document(
                record["id"],
                record.get("title"),
                record["text"],
                source=record.get("source"),
                published_at=datetime.fromisoformat(published) if published else None,
            )


def main(path: Path, collection: str = "demo", profile: str | None = None) -> None:
    """Add the documents, then print the copies of each cluster."""
    with Index.connect(collection=collection, profile=profile) as index:
        summary = index.add(read(path))
        print(f"read {summary.read}, rejected {summary.rejected}")
        for cluster in index.clusters():
            if cluster.survivor is None:
                continue  # the recipe keeps no document of a cluster
            similar = {match.external_id: match for match in index.similar(cluster.survivor)}
            for copy in cluster.members:
                if copy != cluster.survivor:
                    match = similar.get(copy)
                    how = f"{match.similarity:.3f}" if match else "through another copy"
                    print(f"drop {copy}, keep {cluster.survivor} ({how})")


if __name__ == "__main__":
    main(Path(sys.argv[1]), *sys.argv[2:4])
