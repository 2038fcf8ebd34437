"""The work queue of an index: from a changed row to its pairs and clusters, by any number of workers.

A changed row takes this way:

1. A trigger of `nearsim.document` appends its doc_id to `nearsim.change`.
2. `dispatch` turns changes into work: a row of `nearsim.work` for each generation and document, in the stage sign.
   A worker that dispatches puts the new work of generations that it knows under its lease at once.
3. `runner` takes work in batches. A batch is one row of the queue, with the documents of one stage that a worker has
   under its lease. Signatures are stored in a transaction that locks this row, and only those of documents that it
   still has. Pairs do not depend on the worker that stores them. If it fails, or the worker dies, each document
   becomes a row again, with an attempt counted: it is retried in smaller batches, alone at last, and set aside after
   the last attempt. The stage compare has one task, to queue all documents whose signature is missing or outdated.
4. `stages` has what is done with a batch. sign: read the texts, encode them, store signatures and band rows. Then the
   same batch is searched, in another transaction: band rows are committed before their documents search, so of two
   workers the later to commit sees the other's rows. search: look up buckets, verify, store pairs, extend clusters.
   What cannot be done by extension is queued for the stages anchor (whole buckets) and link (clusters).
"""
