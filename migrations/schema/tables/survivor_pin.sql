-- Documents that a person chose to keep. A row belongs to a document, not to an index, and outlives both, so it has no foreign
-- keys to them.
CREATE TABLE nearsim.survivor_pin (
    pin_id bigint GENERATED ALWAYS AS IDENTITY CONSTRAINT survivor_pin_pkey PRIMARY KEY,
    collection_id integer NOT NULL CONSTRAINT survivor_pin_collection_fkey
        REFERENCES nearsim.collection ON DELETE CASCADE,
    doc_id bigint NOT NULL,
    by text NOT NULL,
    why text NOT NULL,
    at timestamptz NOT NULL DEFAULT now(),
    undone_by text,
    undone_why text,
    undone_at timestamptz,
    -- The foreign key of nearsim.review refers to this.
    CONSTRAINT survivor_pin_document_key UNIQUE (doc_id, pin_id, collection_id),
    CONSTRAINT survivor_pin_explained CHECK (btrim(why) <> '' AND btrim(by) <> ''),
    CONSTRAINT survivor_pin_undone_whole CHECK
        ((undone_at IS NULL) = (undone_by IS NULL) AND (undone_at IS NULL) = (undone_why IS NULL))
);

COMMENT ON TABLE nearsim.survivor_pin IS
    'Documents that a person chose to keep. If several documents of a cluster were chosen, the newest choice counts; it takes precedence over the keep policy';
COMMENT ON COLUMN nearsim.survivor_pin.pin_id IS 'Number of the choice, ascending with time';
COMMENT ON COLUMN nearsim.survivor_pin.collection_id IS 'The collection of the document';
COMMENT ON COLUMN nearsim.survivor_pin.doc_id IS 'The document to keep';
COMMENT ON COLUMN nearsim.survivor_pin.at IS 'When it was chosen';
COMMENT ON COLUMN nearsim.survivor_pin.undone_by IS 'Who undid it; NULL while it is in force';
COMMENT ON COLUMN nearsim.survivor_pin.undone_why IS 'Why it was undone; NULL while it is in force';
COMMENT ON COLUMN nearsim.survivor_pin.undone_at IS 'When it was undone; NULL while it is in force';
