"""Write the documents of a collection without their copies to a file.

write_unique.py OUTPUT [COLLECTION [PROFILE]]

The suffix of OUTPUT is the format: .jsonl, .json, .csv, .tsv (also .gz, .zst) or .parquet. The database is
NEARSIM_DATABASE_URL, else the embedded server.
"""

import sys

from nearsim_db import Index


def main(output: str, collection: str = "demo", profile: str | None = None) -> None:
    """Write the documents to keep, then print how many there are and how many are left out."""
    with Index.connect(collection=collection, profile=profile) as index:
        kept = index.export(output, keep="survivors", columns=["id", "title", "text"])
        documents = index.stats()["documents"]
        print(f"{output}: {kept} documents, {documents - kept} copies left out")
        for warning in index.warnings:
            print(warning, file=sys.stderr)


if __name__ == "__main__":
    main(*sys.argv[1:4])
