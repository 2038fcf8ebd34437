CREATE TYPE nearsim.combined_document AS (
    doc_id bigint,
    external_id text,
    title text,
    profiles text[],
    similarities jsonb,
    highest_similarity double precision,
    lowest_similarity double precision,
    verdict text,
    verified boolean
);

COMMENT ON TYPE nearsim.combined_document IS
    'Row of similar_by_profiles: a document that is a pair with the requested document under some profiles';
COMMENT ON COLUMN nearsim.combined_document.doc_id IS 'doc_id of the other document';
COMMENT ON COLUMN nearsim.combined_document.external_id IS 'external_id of the other document';
COMMENT ON COLUMN nearsim.combined_document.title IS 'Title of the other document; NULL if it has none';
COMMENT ON COLUMN nearsim.combined_document.profiles IS 'Names of the profiles under which the two are a pair, sorted';
COMMENT ON COLUMN nearsim.combined_document.similarities IS 'Similarity under each profile, by profile name';
COMMENT ON COLUMN nearsim.combined_document.highest_similarity IS 'The highest of these similarities';
COMMENT ON COLUMN nearsim.combined_document.lowest_similarity IS 'The lowest of these similarities';
COMMENT ON COLUMN nearsim.combined_document.verified IS
    'Whether all of these similarities are verified; false if any is an estimate';
