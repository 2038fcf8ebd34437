"""Adding documents: three ways to write records to a collection, and what follows.

- `bulk`: in batches. While a collection has no index yet, the documents are also signed as they are written.
- `checked`: one by one, each looked up before it is added, or in the transaction of an application.
- a dry run: only counted.

`account` is what all of them count.

A first ingest goes on with the build of the index (`indexing/build.py`): it signs what is not signed yet, loads the
band rows of all documents, finds the pairs of documents that share buckets, verifies them by their features, which were
kept in a file while the documents were signed (`indexing/feature_spool.py`), and clusters them. Then the index is live.
Later ingests go through the work queue (`indexing/queue/`).
"""
