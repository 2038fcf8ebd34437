-- What the schema is for, and what the columns of the older tables hold; the latter is in the metadata, too.
DO $$
BEGIN
    -- Only its owner may, who need not be the one who upgrades.
    IF (SELECT pg_has_role(nspowner, 'USAGE') FROM pg_namespace WHERE nspname = 'nearsim') THEN
        COMMENT ON SCHEMA nearsim IS
            'Near-duplicate documents: read the views, call what nearsim.functions lists, write nearsim.document';
    END IF;
END
$$;

COMMENT ON COLUMN nearsim.collection.collection_id IS
    'Number of the collection';
COMMENT ON COLUMN nearsim.collection.name IS
    'Its name, unique';
COMMENT ON COLUMN nearsim.collection.temporary IS
    'Whether it was made for one run of nearsim dedupe and goes with it';
COMMENT ON COLUMN nearsim.collection.created_at IS
    'When it was made';
COMMENT ON COLUMN nearsim.collection.purged_at IS
    'When texts were last purged from it; processes that remember texts forget them then';

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

COMMENT ON COLUMN nearsim.profile.profile_id IS
    'Number of the profile';
COMMENT ON COLUMN nearsim.profile.collection_id IS
    'The collection whose documents it compares';
COMMENT ON COLUMN nearsim.profile.name IS
    'Its name, unique in the collection';
COMMENT ON COLUMN nearsim.profile.created_at IS
    'When it was made';

COMMENT ON COLUMN nearsim.generation.generation_id IS
    'Number of the generation; its own tables end in it, as nearsim.band_7';
COMMENT ON COLUMN nearsim.generation.profile_id IS
    'The profile it is a build of';
COMMENT ON COLUMN nearsim.generation.state IS
    'building, catching_up, ready, live (answers), retired, paused or abandoned';
COMMENT ON COLUMN nearsim.generation.stage IS
    'How far its build has come: sign, bands, pairs, clusters, done';
COMMENT ON COLUMN nearsim.generation.verified_through IS
    'The doc_id up to which a build has verified pairs';
COMMENT ON COLUMN nearsim.generation.recipe IS
    'The whole recipe, every default spelled out';
COMMENT ON COLUMN nearsim.generation.fingerprint IS
    'SHA-256 of all that decides sketches, bands and pairs';
COMMENT ON COLUMN nearsim.generation.figures IS
    'What its build counted';
COMMENT ON COLUMN nearsim.generation.created_at IS
    'When it was made';
COMMENT ON COLUMN nearsim.generation.live_at IS
    'Since when it answers, or did';
COMMENT ON COLUMN nearsim.generation.expired_through IS
    'The date up to which documents have left its window';
COMMENT ON COLUMN nearsim.generation.bands IS
    'How many bands a sketch is cut into';
COMMENT ON COLUMN nearsim.generation.rows IS
    'How many values of the sketch make one band';

COMMENT ON COLUMN nearsim.signature.generation_id IS
    'The generation';
COMMENT ON COLUMN nearsim.signature.doc_id IS
    'The document; it may be gone, until its index rows are taken out';
COMMENT ON COLUMN nearsim.signature.revision IS
    'The revision of the document that was signed';
COMMENT ON COLUMN nearsim.signature.feature_count IS
    'How many distinct features it has; 0 where its text is empty or too short, and it is like nothing';
COMMENT ON COLUMN nearsim.signature.feature_digest IS
    'Digest of the fingerprint and the sorted features: equal for equal feature sets';
COMMENT ON COLUMN nearsim.signature.sketch IS
    'The summary of the features that bands are cut from and similarity is estimated with';
COMMENT ON COLUMN nearsim.signature.numbers_digest IS
    'Sum of the hashes of the runs of digits in the text, 0 for none: equal where the numbers are the same';
COMMENT ON COLUMN nearsim.signature.head_id IS
    'The first document with the same features, which alone has bands and pairs; often itself';

COMMENT ON COLUMN nearsim.band.bucket_hash IS
    'Hash of one band of the sketch, its top byte the number of the band';
COMMENT ON COLUMN nearsim.band.doc_id IS
    'The head whose band it is';
COMMENT ON COLUMN nearsim.band.generation_id IS
    'The generation';
COMMENT ON COLUMN nearsim.band.band_no IS
    'The number of the band: the top byte of bucket_hash';

COMMENT ON COLUMN nearsim.similar_pair.generation_id IS
    'The generation';
COMMENT ON COLUMN nearsim.similar_pair.left_id IS
    'The head with the smaller doc_id';
COMMENT ON COLUMN nearsim.similar_pair.right_id IS
    'The head with the larger doc_id';
COMMENT ON COLUMN nearsim.similar_pair.shared_bands IS
    'How many bands of the two sketches are equal';
COMMENT ON COLUMN nearsim.similar_pair.estimate IS
    'Similarity as estimated from the two sketches';
COMMENT ON COLUMN nearsim.similar_pair.similarity IS
    'Verified similarity, at or above the recipe''s threshold';
COMMENT ON COLUMN nearsim.similar_pair.intersection_size IS
    'How many features both have';
COMMENT ON COLUMN nearsim.similar_pair.union_size IS
    'How many features either has';
COMMENT ON COLUMN nearsim.similar_pair.verified_at IS
    'When the similarity was computed';

COMMENT ON COLUMN nearsim.cluster_member.generation_id IS
    'The generation';
COMMENT ON COLUMN nearsim.cluster_member.doc_id IS
    'The document';
COMMENT ON COLUMN nearsim.cluster_member.cluster_id IS
    'The cluster: the smallest doc_id that it was linked with';
COMMENT ON COLUMN nearsim.cluster_member.is_survivor IS
    'Whether it is the one of its cluster to keep';

COMMENT ON COLUMN nearsim.lease.lease_id IS
    'Number of the lease';
COMMENT ON COLUMN nearsim.lease.worker IS
    'The process that holds it, as host and number';
COMMENT ON COLUMN nearsim.lease.taken_at IS
    'When it began';
COMMENT ON COLUMN nearsim.lease.beat_at IS
    'When it was last heard of';

COMMENT ON COLUMN nearsim.work.generation_id IS
    'The generation it is to be done for';
COMMENT ON COLUMN nearsim.work.doc_id IS
    'The document; 0 stands for all of the index';
COMMENT ON COLUMN nearsim.work.stage IS
    'sign, search (for pairs), anchor (through a whole bucket), link (clusters) or compare (all documents)';
COMMENT ON COLUMN nearsim.work.queued_at IS
    'When it was queued';
COMMENT ON COLUMN nearsim.work.due_at IS
    'When it may begin';
COMMENT ON COLUMN nearsim.work.lease_id IS
    'Who is at it; NULL for nobody';
COMMENT ON COLUMN nearsim.work.again IS
    'Whether it was queued once more while somebody was at it';
COMMENT ON COLUMN nearsim.work.attempts IS
    'How often it has failed';
COMMENT ON COLUMN nearsim.work.reached IS
    'How far an anchor has gone through its buckets: the last doc_id';
COMMENT ON COLUMN nearsim.work.error IS
    'Why it failed last';
COMMENT ON COLUMN nearsim.work.set_aside_at IS
    'When it was given up until somebody looks';

COMMENT ON COLUMN nearsim.change.collection_id IS
    'The collection; NULL for all documents there are';
COMMENT ON COLUMN nearsim.change.doc_id IS
    'The document that was written';
COMMENT ON COLUMN nearsim.change.changed_at IS
    'When it was written';
COMMENT ON FUNCTION nearsim.keep_revision() IS
    'Trigger on document: moves revision and updated_at on, and notes what left a collection';
COMMENT ON FUNCTION nearsim.note_written() IS
    'Trigger on document: notes what was inserted or updated';
COMMENT ON FUNCTION nearsim.note_deleted() IS
    'Trigger on document: notes what was deleted';
COMMENT ON FUNCTION nearsim.note_truncated() IS
    'Trigger on document: notes that every index has to be compared with its documents';
