-- Texts that are inserted only if they have no near-duplicates. The trigger lock_buckets takes the locks of a text's buckets.
-- The next transaction that takes one of these locks finds the text here, even if its document is not signed yet. A row is
-- visible to other transactions once the transaction that holds the locks has committed.
CREATE TABLE nearsim_index.checked_insertion (
    insertion_id bigint GENERATED ALWAYS AS IDENTITY CONSTRAINT checked_insertion_pkey PRIMARY KEY,
    collection_id integer NOT NULL CONSTRAINT checked_insertion_collection_fkey
        REFERENCES nearsim.collection ON DELETE CASCADE,
    generation_id integer,
    external_id text COLLATE "C",
    bucket_hashes bigint[] NOT NULL,
    -- The type is text because SQLAlchemy does not know xid8, and warns when models are compared with the database.
    transaction_id text NOT NULL DEFAULT CAST(pg_current_xact_id() AS text)
);
CREATE INDEX checked_insertion_generation ON nearsim_index.checked_insertion (collection_id, generation_id);
CREATE INDEX checked_insertion_buckets ON nearsim_index.checked_insertion USING gin (bucket_hashes);

COMMENT ON TABLE nearsim_index.checked_insertion IS
    'Insertions that followed a check for near-duplicates (on_duplicate, check_insert), kept until their documents are signed; until then the text of such a document may be newer than its signature';
COMMENT ON COLUMN nearsim_index.checked_insertion.insertion_id IS 'Number of the row';
COMMENT ON COLUMN nearsim_index.checked_insertion.collection_id IS 'The collection of the document';
COMMENT ON COLUMN nearsim_index.checked_insertion.generation_id IS 'The generation that was searched; NULL if the collection had no index';
COMMENT ON COLUMN nearsim_index.checked_insertion.external_id IS 'external_id of the document; NULL if the caller of check_insert did not pass it';
COMMENT ON COLUMN nearsim_index.checked_insertion.bucket_hashes IS 'Buckets of its text, whose locks the transaction holds';
COMMENT ON COLUMN nearsim_index.checked_insertion.transaction_id IS 'The transaction, as xid8';
