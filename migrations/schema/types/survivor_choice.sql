CREATE TYPE nearsim.survivor_choice AS (
    pin_id bigint,
    collection_id integer,
    doc_id bigint,
    by text,
    why text,
    at timestamptz,
    undone_by text,
    undone_why text,
    undone_at timestamptz,
    collection text,
    external_id text,
    title text
);

COMMENT ON TYPE nearsim.survivor_choice IS
    'Row of pin_survivor and unpin_survivor: the choice with its collection and its document';
COMMENT ON COLUMN nearsim.survivor_choice.external_id IS 'external_id of the document to keep';
COMMENT ON COLUMN nearsim.survivor_choice.title IS 'Title of the document to keep; NULL if it has none';
