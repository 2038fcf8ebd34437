"""Deduplication of files, and of rows in memory, without a database.

The way of a record from its file to the output:

1. `reading` reads the files in batches, counts and rejects records, and notes the place of each record in its file.
2. `records` encodes a batch in a pool of threads while the next batches are read. One thread writes sketches and
   features to temporary files. A digest and a few numbers of each record stay in memory.
3. `pairs` treats records with equal digests as twins, and the first of them as their head. It sorts the band keys of
   the heads, links heads that share a bucket, and verifies the linked pairs by their features, in the same pool of
   threads. `comparison` decides which pairs count.
4. `clusters` clusters the pairs, and chooses the records that are kept.
5. `output` reads the files again. It writes the kept records without changing them (`kept_records`, or `folders` for a
   file for each input), and the lists of pairs and clusters (`lists`).

`files` runs these steps for files, and `rows` runs them for rows in memory. `warnings` tells users what to check in the
result. `cut` removes repeated passages, which `repeated_passages` finds, instead of whole records; it reads and writes
in the same way, but it neither encodes nor compares whole texts.
"""
