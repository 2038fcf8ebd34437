"""Add documents to a collection, in one of three ways.

- `bulk` writes records in batches. If the collection has no index yet, it also signs the documents while writing them.
- `checked` writes records one by one. It looks each document up first, or writes in an application's transaction.
- `DryRun` in `bulk` only counts.

`account` has the counts of all three.

A first ingest continues with the build of the index (`indexing/build.py`): the build signs documents that have no
signature yet, loads the band rows of all documents, finds candidates in shared buckets, and verifies them by their
features, which were kept in a file when the documents were signed (`indexing/feature_spool.py`). It then forms clusters
from the pairs, and the index is live. The documents of later ingests go through the work queue (`indexing/queue/`).
"""
