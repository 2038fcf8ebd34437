-- Metrics other than Jaccard count no features, and some measure a distance. A generation that is being built has leaves
-- that are not attached yet: what is done to the parent does not reach them.
DO $$
DECLARE
    name regclass;
BEGIN
    FOR name IN
        SELECT oid FROM pg_class
        WHERE relnamespace = CAST('nearsim' AS regnamespace) AND (relname = 'similar_pair'
            OR relname ~ '^similar_pair_[0-9]+$' AND relkind = 'r' AND NOT relispartition)
        ORDER BY oid
    LOOP
        EXECUTE format($command$
            ALTER TABLE %s
                ALTER COLUMN intersection_size DROP NOT NULL,
                ALTER COLUMN union_size DROP NOT NULL,
                ADD COLUMN distance double precision,
                DROP CONSTRAINT similar_pair_counts,
                ADD CONSTRAINT similar_pair_counts CHECK ((intersection_size IS NULL) = (union_size IS NULL)
                    AND intersection_size BETWEEN 0 AND union_size AND union_size > 0) NOT VALID,
                ADD CONSTRAINT similar_pair_distance_possible CHECK (distance >= 0) NOT VALID
            $command$, name);
    END LOOP;
END
$$;
COMMENT ON COLUMN nearsim.similar_pair.similarity IS
    'Verified similarity, which reaches the recipe''s threshold; of a distance d it is 1 / (1 + d)';
COMMENT ON COLUMN nearsim.similar_pair.intersection_size IS
    'How many features both have; NULL where the metric counts none';
COMMENT ON COLUMN nearsim.similar_pair.union_size IS
    'How many features either has; NULL where the metric counts none';
COMMENT ON COLUMN nearsim.similar_pair.distance IS
    'Verified distance; NULL where the metric measures none';

ALTER TABLE nearsim.probe_match
    ALTER COLUMN intersection_size DROP NOT NULL,
    ALTER COLUMN union_size DROP NOT NULL,
    ADD COLUMN distance double precision;
COMMENT ON COLUMN nearsim.probe_match.similarity IS
    'Verified similarity; of a distance d it is 1 / (1 + d)';
COMMENT ON COLUMN nearsim.probe_match.intersection_size IS
    'How many distinct features the two texts share; NULL where the metric counts none';
COMMENT ON COLUMN nearsim.probe_match.union_size IS
    'How many distinct features they have together; NULL where the metric counts none';
COMMENT ON COLUMN nearsim.probe_match.distance IS
    'Verified distance; NULL where the metric measures none';

COMMENT ON COLUMN nearsim.live_generations.threshold IS
    'Similarity from which two documents are a pair; for projection the largest distance';
COMMENT ON COLUMN nearsim.profiles.threshold IS
    'Similarity from which two documents are a pair; for projection the largest distance';
