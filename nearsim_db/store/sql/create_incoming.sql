-- What one session is about to write: a batch of documents, and the ids it has met in the file so far.
CREATE TEMP TABLE IF NOT EXISTS incoming (
    line bigint, external_id text COLLATE "C", title text, body text, source text, url text,
    published_at timestamptz, attributes jsonb, vector real[]) ON COMMIT DELETE ROWS;
CREATE TEMP TABLE IF NOT EXISTS met (external_id text COLLATE "C" PRIMARY KEY, line bigint)
