"""De-duplication of files, and of rows in memory, without a database.

The path of a record, from its file to the output:

1. `reading` reads the files in batches, counts and rejects records, and notes where each is in its file.
2. `records` encodes batches in a pool of threads, while the next ones are read. One thread writes their sketches and
   features to temporary files; a digest and a few numbers of each record stay in memory.
3. `pairs` takes records of equal digests as twins, sorts the band keys of the first of each, links those that share a
   bucket, and verifies the links on their features, in the same pool of threads. `comparison` says which pairs count.
4. `clusters` connects the pairs, and chooses the records that are kept.
5. `output` reads the files again and writes the records that are kept, as they are (`copies`; a file for each input:
   `folders`), and the lists of pairs and clusters (`lists`).

`files` does these steps for files, `rows` for rows in memory; `warnings` has what users should know of the outcome.
`cut` removes repeated passages instead of records, which `repeated_passages` finds: it reads and writes alike, and
neither encodes nor compares whole texts.
"""
