"""Look-ups with nearsim: index a file in a new collection, and look up texts in it, with verification.

For the other job, the benchmark runs the command `nearsim dedupe` itself.
"""

import uuid

from benchmarks.peers.job import RECIPE, read_job
from nearsim_db import Index
from nearsim_db.readers import Source
from nearsim_db.similarity.recipe import load

_MATCHES = 20


def main() -> None:
    """Index a file in PostgreSQL, and look up texts with at most 20 matches each."""
    job = read_job()
    name = f"lookups-{uuid.uuid4().hex[:8]}"
    with Index.connect(job.server, collection=name) as index:
        index.create_profile("default", load(RECIPE))
        index.ingest(Source([job.input]))
        job.time_lookups(lambda text: index.similar_to_text(text, limit=_MATCHES))


if __name__ == "__main__":
    main()
