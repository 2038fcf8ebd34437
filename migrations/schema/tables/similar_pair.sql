-- The order of the columns leaves no padding between them.
CREATE TABLE nearsim.similar_pair (
    left_id bigint NOT NULL,
    right_id bigint NOT NULL,
    generation_id integer NOT NULL,
    estimate real NOT NULL,
    similarity double precision NOT NULL,
    intersection_size integer,
    union_size integer,
    verified_at timestamptz NOT NULL DEFAULT now(),
    distance double precision,
    shared_bands smallint NOT NULL,
    in_review boolean NOT NULL DEFAULT false,
    by_passage boolean NOT NULL DEFAULT false,
    longest_passage integer,
    CONSTRAINT similar_pair_ordered CHECK (left_id < right_id),
    CONSTRAINT similar_pair_counts CHECK ((intersection_size IS NULL) = (union_size IS NULL)
        AND intersection_size BETWEEN 0 AND union_size AND union_size > 0),
    CONSTRAINT similar_pair_distance_possible CHECK (distance >= 0)
) PARTITION BY RANGE (generation_id);

COMMENT ON TABLE nearsim.similar_pair IS
    'Pairs of heads, left_id < right_id; twins of a head (signature.head_id) have the same pairs';
COMMENT ON COLUMN nearsim.similar_pair.left_id IS 'The head with the smaller doc_id';
COMMENT ON COLUMN nearsim.similar_pair.right_id IS 'The head with the larger doc_id';
COMMENT ON COLUMN nearsim.similar_pair.similarity IS
    'Similarity, 1 / (1 + d) for a distance d; the estimate unless match.verify of the recipe is exact. At or above the threshold, except for pairs by their shared bands (match.verify = "bands", match.certain_shared_bands), by_passage and in_review';
COMMENT ON COLUMN nearsim.similar_pair.intersection_size IS 'Number of features in both; NULL if the metric does not count features';
COMMENT ON COLUMN nearsim.similar_pair.union_size IS 'Number of features in either; NULL if the metric does not count features';
COMMENT ON COLUMN nearsim.similar_pair.verified_at IS 'When the similarity was computed';
COMMENT ON COLUMN nearsim.similar_pair.distance IS 'Distance; NULL if the metric is not a distance';
COMMENT ON COLUMN nearsim.similar_pair.in_review IS
    'Whether the similarity is below the threshold (match.review): to be looked at by a person, and no pair otherwise';
COMMENT ON COLUMN nearsim.similar_pair.longest_passage IS
    'Words of the longest run of equal words in both, without words that the recipe leaves out; NULL unless the metric is containment and the similarity verified';
COMMENT ON COLUMN nearsim.similar_pair.by_passage IS
    'Whether the similarity is below the threshold, and the two are a pair for a run of match.passage_words equal words: in no cluster, and no reason to remove one of them';
