"""The work queue of an index, by which any number of workers turn changed rows into pairs and clusters.

A changed row goes through these steps:

1. A trigger of `nearsim.document` appends its doc_id to `nearsim.change`.
2. `dispatch` turns changes into work: a row of `nearsim.work` for each generation and document, in the stage sign.
   A worker that dispatches takes the new work of the generations that it serves under its lease at once.
3. `runner` takes work in batches. A batch is one row of the queue, with documents of one stage that a worker has under
   its lease. Signatures are stored in a transaction that locks this row, and only for documents that are still in the
   row. Pairs do not depend on the worker that stores them. If a batch fails or its worker dies, an attempt is counted
   and each document becomes a row again. It is retried in smaller batches, finally alone, and set aside after the last
   attempt. The stage compare has only one task, which queues all documents whose signature is missing or outdated.
4. `stages` has the work of each stage. sign: read the texts, encode them, store signatures and band rows. The same
   batch is then searched in another transaction: band rows are committed before their documents search, so when two
   workers sign similar documents, the one that commits later sees the rows of the other. search: look up buckets,
   verify candidates, store pairs, extend clusters. Documents that became anchors of large buckets are queued for the
   stage anchor, and documents whose clusters cannot simply be extended for the stage link.
"""
