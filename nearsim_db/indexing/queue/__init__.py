"""The work queue of an index: from a changed row to its pairs and clusters, by any number of workers.

A changed row takes this way:

1. A trigger of `nearsim.document` appends its doc_id to `nearsim.change`.
2. `dispatch` turns changes into work: a row of `nearsim.work` for each generation and document, in the stage sign.
   A worker that dispatches puts the new work of generations that it knows under its lease at once.
3. `runner` takes work in batches. A batch is one row of the queue, with the documents of one stage that a worker has
   under its lease. Signatures are stored in a transaction that locks this row, and only for documents that the row
   still has. Pairs do not depend on the worker that stores them. If a batch fails, or its worker dies, each document
   becomes a row again, with an attempt counted: it is retried in smaller batches, at last alone, and set aside after
   the last attempt. The stage compare has one task, to queue all documents whose signature is missing or outdated.
4. `stages` does a batch. sign: read the texts, encode them, store signatures and band rows. Then the same batch is
   searched, in another transaction: band rows are committed before their documents search, so the later of two workers
   to commit sees the other's rows. search: look up buckets, verify, store pairs, extend clusters. If extending clusters
   is not enough, documents are queued for the stages anchor (whole buckets) and link (clusters).
"""
