-- Revisions of all documents come from one sequence: a doc_id that is used again never meets its old revision.
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
    -- 0 stands for a whole generation, and for what is not in the index.
    CONSTRAINT document_doc_id_positive CHECK (doc_id > 0),
    CONSTRAINT document_body_here_or_there CHECK (body IS NULL OR body_digest IS NULL)
);
CREATE INDEX document_collection_doc ON nearsim.document (collection_id, doc_id);
CREATE INDEX document_age ON nearsim.document (collection_id, (coalesce(published_at, created_at)));

COMMENT ON TABLE nearsim.document IS
    'Texts with their owners own external_id; any application may write here, nearsim build takes it in';
COMMENT ON COLUMN nearsim.document.doc_id IS
    'The index''s own number of the document, above 0; it is its place in time';
COMMENT ON COLUMN nearsim.document.collection_id IS
    'The collection it belongs to';
COMMENT ON COLUMN nearsim.document.external_id IS
    'The owner''s name of it, unique in the collection; at most 1,024 bytes';
COMMENT ON COLUMN nearsim.document.title IS
    'Its title';
COMMENT ON COLUMN nearsim.document.body IS
    'Its text';
COMMENT ON COLUMN nearsim.document.vector IS
    'Numbers that its owner computed, for profiles that compare vectors';
COMMENT ON COLUMN nearsim.document.source IS
    'Where it comes from, such as an agency or a site';
COMMENT ON COLUMN nearsim.document.url IS
    'Its address';
COMMENT ON COLUMN nearsim.document.published_at IS
    'When it was published; where it is NULL, created_at counts';
COMMENT ON COLUMN nearsim.document.attributes IS
    'Whatever else its owner wants to keep with it';
COMMENT ON COLUMN nearsim.document.revision IS
    'Grows with every change; kept by a trigger';
COMMENT ON COLUMN nearsim.document.created_at IS
    'When it was first stored';
COMMENT ON COLUMN nearsim.document.updated_at IS
    'When it was last changed; kept by a trigger';
COMMENT ON COLUMN nearsim.document.body_digest IS
    'Where the collection follows a table: md5 of the text that is there (of an empty one, where that is NULL)';
COMMENT ON COLUMN nearsim.document.body_length IS
    'Where the collection follows a table: how many characters the text there has';
