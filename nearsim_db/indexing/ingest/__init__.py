"""Add documents to a collection, in one of three ways.

- `bulk` writes records in batches. While a collection has no index yet, it also signs them as it writes them.
- `checked` writes records one by one, and looks each up before, or takes part in the transaction of an application.
- `DryRun` of `bulk` only counts.

`account` has what all of them count.

A first ingest goes on with the build of the index (`indexing/build.py`): it signs what is not signed yet, loads the
band rows of all documents, finds candidates in shared buckets, verifies them by their features, which were kept in a
file while the documents were signed (`indexing/feature_spool.py`), and clusters the pairs. Then the index is live.
Later ingests go through the work queue (`indexing/queue/`).
"""
