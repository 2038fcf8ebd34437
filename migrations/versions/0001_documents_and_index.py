"""Documents, recipes and their builds, and the partitioned index.

Revision ID: 0001
Revises:
"""

from alembic import op

revision = "0001"
down_revision = None
branch_labels = None
depends_on = None

UPGRADE = """
CREATE TABLE nearsim.collection (
    collection_id integer GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    name text NOT NULL CONSTRAINT collection_name_key UNIQUE,
    temporary boolean NOT NULL DEFAULT false,
    created_at timestamptz NOT NULL DEFAULT now(),
    CONSTRAINT collection_name_given CHECK (name <> '')
);

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
    CONSTRAINT document_external_id_key UNIQUE (collection_id, external_id),
    CONSTRAINT document_external_id_length CHECK (octet_length(external_id) BETWEEN 1 AND 1024)
);
CREATE INDEX document_collection_doc ON nearsim.document (collection_id, doc_id);

CREATE FUNCTION nearsim.keep_revision() RETURNS trigger
LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp AS $$
BEGIN
    NEW.revision := nextval('nearsim.document_revision');
    NEW.updated_at := now();
    RETURN NEW;
END
$$;
CREATE TRIGGER document_keep_revision BEFORE UPDATE ON nearsim.document
    FOR EACH ROW WHEN (OLD.* IS DISTINCT FROM NEW.*) EXECUTE FUNCTION nearsim.keep_revision();

CREATE TABLE nearsim.profile (
    profile_id integer GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    collection_id integer NOT NULL CONSTRAINT profile_collection_fkey
        REFERENCES nearsim.collection ON DELETE CASCADE,
    name text NOT NULL,
    created_at timestamptz NOT NULL DEFAULT now(),
    CONSTRAINT profile_name_key UNIQUE (collection_id, name),
    CONSTRAINT profile_name_given CHECK (name <> '')
);

CREATE TABLE nearsim.generation (
    generation_id integer GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    profile_id integer NOT NULL CONSTRAINT generation_profile_fkey
        REFERENCES nearsim.profile ON DELETE CASCADE,
    state text NOT NULL DEFAULT 'building',
    stage text NOT NULL DEFAULT 'sign',
    verified_through bigint NOT NULL DEFAULT 0,
    recipe jsonb NOT NULL,
    fingerprint text NOT NULL,
    figures jsonb NOT NULL DEFAULT '{}',
    created_at timestamptz NOT NULL DEFAULT now(),
    live_at timestamptz,
    CONSTRAINT generation_state_known CHECK
        (state IN ('building', 'catching_up', 'ready', 'live', 'retired', 'paused', 'abandoned')),
    CONSTRAINT generation_stage_known CHECK (stage IN ('sign', 'bands', 'pairs', 'clusters', 'done'))
);
CREATE UNIQUE INDEX generation_one_live ON nearsim.generation (profile_id) WHERE state = 'live';

CREATE TABLE nearsim.signature (
    generation_id integer NOT NULL,
    doc_id bigint NOT NULL,
    revision bigint NOT NULL,
    feature_count integer NOT NULL,
    feature_digest uuid,
    sketch bytea,
    numbers_digest bigint NOT NULL,
    head_id bigint,
    CONSTRAINT signature_features_or_none CHECK
        ((feature_count > 0) = (feature_digest IS NOT NULL)
         AND (feature_count > 0) = (sketch IS NOT NULL)
         AND (feature_count > 0) = (head_id IS NOT NULL)),
    CONSTRAINT signature_head_first CHECK (head_id <= doc_id)
) PARTITION BY LIST (generation_id);
ALTER TABLE nearsim.signature ALTER COLUMN sketch SET STORAGE EXTERNAL;

CREATE TABLE nearsim.band (
    bucket_hash bigint NOT NULL,
    doc_id bigint NOT NULL,
    generation_id integer NOT NULL,
    band_no smallint GENERATED ALWAYS AS ((bucket_hash >> 56) & 255) STORED
) PARTITION BY LIST (generation_id);

CREATE TABLE nearsim.similar_pair (
    generation_id integer NOT NULL,
    left_id bigint NOT NULL,
    right_id bigint NOT NULL,
    shared_bands smallint NOT NULL,
    estimate real NOT NULL,
    similarity double precision NOT NULL,
    intersection_size integer NOT NULL,
    union_size integer NOT NULL,
    verified_at timestamptz NOT NULL DEFAULT now(),
    CONSTRAINT similar_pair_ordered CHECK (left_id < right_id),
    CONSTRAINT similar_pair_counts CHECK
        (intersection_size BETWEEN 0 AND union_size AND union_size > 0)
) PARTITION BY LIST (generation_id);

CREATE TABLE nearsim.cluster_member (
    generation_id integer NOT NULL,
    doc_id bigint NOT NULL,
    cluster_id bigint NOT NULL,
    is_survivor boolean NOT NULL
) PARTITION BY LIST (generation_id);

CREATE TABLE nearsim.work (
    generation_id integer NOT NULL CONSTRAINT work_generation_fkey
        REFERENCES nearsim.generation ON DELETE CASCADE,
    doc_id bigint NOT NULL,
    stage text NOT NULL,
    CONSTRAINT work_pkey PRIMARY KEY (generation_id, stage, doc_id),
    CONSTRAINT work_stage_known CHECK (stage IN ('sign', 'search', 'link'))
);

COMMENT ON TABLE nearsim.collection IS
    'A named set of documents that are compared with each other: a tenant, a feed, a corpus';
COMMENT ON TABLE nearsim.document IS
    'Texts with their owners own external_id; any application may write here, nearsim build takes it in';
COMMENT ON TABLE nearsim.profile IS
    'A named recipe for one collection';
COMMENT ON TABLE nearsim.generation IS
    'One build of a profile, with its whole recipe and the fingerprint of what makes its sketches';
COMMENT ON TABLE nearsim.signature IS
    'A document in a generation: its features counted and digested, its sketch, the head of its twins';
COMMENT ON TABLE nearsim.band IS
    'A band of a head: documents with the same bucket_hash may be similar; band_no is its top byte';
COMMENT ON TABLE nearsim.similar_pair IS
    'Verified pairs of heads, left_id < right_id; the twins of a head (signature.head_id) are paired alike';
COMMENT ON TABLE nearsim.cluster_member IS
    'Documents tied together by pairs, twins included, and which one of each cluster survives';
COMMENT ON TABLE nearsim.work IS
    'What a generation has still to sign, to search or to link; doc_id 0 stands for all of it';
"""

# The schema itself stays: it holds Alembic's version table.
DOWNGRADE = """
DROP TABLE nearsim.work, nearsim.cluster_member, nearsim.similar_pair, nearsim.band, nearsim.signature CASCADE;
DROP TABLE nearsim.generation, nearsim.profile, nearsim.document, nearsim.collection;
DROP FUNCTION nearsim.keep_revision();
DROP SEQUENCE nearsim.document_revision;
"""


def upgrade() -> None:
    """Create everything."""
    op.execute(UPGRADE)


def downgrade() -> None:
    """Drop everything, data included."""
    op.execute(DOWNGRADE)
