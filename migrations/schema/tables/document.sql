-- All documents take their revisions from one sequence, so that a reused doc_id never has a revision that it had before.
CREATE SEQUENCE nearsim.document_revision;

CREATE TABLE nearsim.document (
    doc_id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    collection_id integer NOT NULL CONSTRAINT document_collection_fkey
        REFERENCES nearsim.collection ON DELETE CASCADE,
    external_id text COLLATE "C" NOT NULL,
    title text,
    body text,
    vector real[],
    source text,
    url text,
    published_at timestamptz,
    attributes jsonb NOT NULL DEFAULT '{}',
    revision bigint NOT NULL DEFAULT nextval('nearsim.document_revision'),
    created_at timestamptz NOT NULL DEFAULT now(),
    updated_at timestamptz NOT NULL DEFAULT now(),
    body_digest uuid,
    body_length integer,
    CONSTRAINT document_external_id_key UNIQUE (collection_id, external_id),
    CONSTRAINT document_external_id_length CHECK (octet_length(external_id) BETWEEN 1 AND 1024),
    -- In nearsim.work, 0 means a whole generation; in lookups, it means a text that is not indexed.
    CONSTRAINT document_doc_id_positive CHECK (doc_id > 0),
    CONSTRAINT document_body_stored_or_attached CHECK (body IS NULL OR body_digest IS NULL),
    -- JSON parsers have a maximum depth.
    CONSTRAINT document_attributes_at_most_100_levels CHECK (NOT jsonb_path_exists(attributes, 'strict $.**{101}'))
)
-- Rows of up to half a page are not compressed: compression would take longer than all other work of storing them.
WITH (toast_tuple_target = 4080);
CREATE INDEX document_collection_doc ON nearsim.document (collection_id, doc_id);
CREATE INDEX document_age ON nearsim.document (collection_id, (coalesce(published_at, created_at)));

COMMENT ON TABLE nearsim.document IS
    'Documents, each with the external_id that its owner chose; any application may write here, and nearsim indexes the changes';
COMMENT ON COLUMN nearsim.document.doc_id IS 'Number of the document, above 0; documents created later have larger numbers';
COMMENT ON COLUMN nearsim.document.collection_id IS 'The collection';
COMMENT ON COLUMN nearsim.document.external_id IS
    'The owner''s id of the document, unique in the collection; at most 1,024 bytes';
COMMENT ON COLUMN nearsim.document.title IS 'Title';
COMMENT ON COLUMN nearsim.document.body IS 'Text';
COMMENT ON COLUMN nearsim.document.vector IS 'Vector supplied by the owner, for profiles that compare vectors';
COMMENT ON COLUMN nearsim.document.source IS 'Source, such as an agency or a site';
COMMENT ON COLUMN nearsim.document.url IS 'URL';
COMMENT ON COLUMN nearsim.document.published_at IS 'When it was published; if NULL, created_at is used';
COMMENT ON COLUMN nearsim.document.attributes IS 'Any further data of the owner, nested at most 100 levels deep';
COMMENT ON COLUMN nearsim.document.revision IS 'Increases with every change; set by a trigger';
COMMENT ON COLUMN nearsim.document.created_at IS 'When it was first stored';
COMMENT ON COLUMN nearsim.document.updated_at IS 'When it was last changed; set by a trigger';
COMMENT ON COLUMN nearsim.document.body_digest IS
    'MD5 of the text in the attached table, of an empty text if it is NULL there; NULL if the text is in body';
COMMENT ON COLUMN nearsim.document.body_length IS
    'Length in characters of the text in the attached table; NULL if the text is in body';
