-- Comments for columns that have no comment in the file of their relation: the comment of the column with the same name in
-- another relation or, without such a column, the general meaning of the name.
DO $$
DECLARE
    commented record;
BEGIN
    FOR commented IN
        SELECT pair.relation, copy.attname AS name, col_description(original.attrelid, original.attnum) AS comment
        FROM (VALUES
            ('nearsim.stored_pairs', 'nearsim.pairs'),
            ('nearsim.review_pairs', 'nearsim.pairs'),
            ('nearsim.default_pairs', 'nearsim.pairs'),
            ('nearsim.default_clusters', 'nearsim.clusters'),
            ('nearsim.default_duplicates', 'nearsim.duplicates'),
            ('nearsim.verdicts', 'nearsim.verdict'),
            ('nearsim.pair_verdict', 'nearsim.verdict'),
            ('nearsim.survivor_choice', 'nearsim.survivor_pin'),
            ('nearsim_index.queued_work', 'nearsim.work'),
            ('nearsim_index.visible_changes', 'nearsim.change'),
            ('nearsim_index.pair_ends', 'nearsim.similar_pair'),
            ('nearsim_index.signed', 'nearsim.signature'),
            ('nearsim_index.signed_document', 'nearsim.signature')
        ) AS pair (relation, origin)
        JOIN pg_catalog.pg_attribute AS copy ON copy.attrelid = CAST(pair.relation AS regclass) AND copy.attnum > 0
        JOIN pg_catalog.pg_attribute AS original
            ON original.attrelid = CAST(pair.origin AS regclass) AND original.attname = copy.attname
        WHERE col_description(copy.attrelid, copy.attnum) IS NULL
            AND col_description(original.attrelid, original.attnum) IS NOT NULL
    LOOP
        EXECUTE format('COMMENT ON COLUMN %s.%I IS %L', commented.relation, commented.name, commented.comment);
    END LOOP;
    FOR commented IN
        SELECT CAST(pg_class.oid AS regclass) AS relation, meaning.name, meaning.comment
        FROM (VALUES
            ('are_twins', 'Whether both documents have the same features'),
            ('attempts', 'Number of failed attempts'),
            ('by', 'Author, as stated by the caller; by default the database user'),
            ('collection', 'Name of the collection'),
            ('collection_id', 'Number of the collection'),
            ('detached', 'Whether workers continue its build'),
            ('due_at', 'Earliest time at which a worker may start it'),
            ('estimate', 'Similarity estimated from the two sketches'),
            ('fingerprint', 'SHA-256 of everything that determines sketches, bands and pairs'),
            ('generation_id', 'The generation'),
            ('lease_id', 'Number of the lease'),
            ('left_external_id', 'external_id of the left document'),
            ('left_id', 'doc_id of the left document, the smaller of the two'),
            ('left_title', 'Title of the left document; NULL if it has none'),
            ('min_shared_bands', 'Number of bands that candidates must share; 1 if the recipe has an amplification instead'),
            ('numbers_differ', 'Whether the runs of digits in the two texts differ, such as figures or dates'),
            ('profile', 'Name of the profile'),
            ('profile_id', 'Number of the profile'),
            ('queued_at', 'When it was queued'),
            ('recipe', 'The complete recipe, including defaults'),
            ('retired_at', 'When it was retired; NULL if it is live or was never live'),
            ('right_external_id', 'external_id of the right document'),
            ('right_id', 'doc_id of the right document, the larger of the two'),
            ('right_title', 'Title of the right document; NULL if it has none'),
            ('shared_bands', 'Number of bands in which the two sketches are equal'),
            ('survivor_external_id', 'external_id of the document to keep; NULL if the recipe keeps none'),
            ('survivor_id', 'doc_id of the document to keep; NULL if the recipe keeps none'),
            ('survivor_source', 'Source of the document to keep; NULL if it has none'),
            ('survivor_title', 'Title of the document to keep; NULL if it has none'),
            ('threshold', 'Minimum similarity of a pair; for projection the maximum distance'),
            ('undone_at', 'When it was undone or replaced; NULL while it is in force'),
            ('undone_by', 'Who undid or replaced it; NULL while it is in force'),
            ('undone_why', 'Why it was undone or replaced; NULL while it is in force'),
            ('verdict', 'pinned or vetoed by a person; NULL if neither'),
            ('verdict_id', 'Number of the verdict, ascending with time'),
            ('why', 'Reason')
        ) AS meaning (name, comment)
        JOIN pg_catalog.pg_attribute ON attname = meaning.name AND attnum > 0 AND NOT attisdropped
        JOIN pg_catalog.pg_class ON pg_class.oid = attrelid
        WHERE relnamespace IN (CAST('nearsim' AS regnamespace), CAST('nearsim_index' AS regnamespace))
            AND relkind IN ('r', 'p', 'v', 'c') AND NOT relispartition AND col_description(attrelid, attnum) IS NULL
    LOOP
        EXECUTE format('COMMENT ON COLUMN %s.%I IS %L', commented.relation, commented.name, commented.comment);
    END LOOP;
END
$$;
