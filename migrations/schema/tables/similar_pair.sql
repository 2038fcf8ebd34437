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
    'Pairs of heads, with left_id < right_id; the twins of a head (signature.head_id) have the same pairs as the head';
COMMENT ON COLUMN nearsim.similar_pair.left_id IS 'The head with the smaller doc_id';
COMMENT ON COLUMN nearsim.similar_pair.right_id IS 'The head with the larger doc_id';
COMMENT ON COLUMN nearsim.similar_pair.similarity IS
    'Similarity, or 1 / (1 + d) for a distance d; an estimate unless match.verify of the recipe is exact. It is at or above the threshold, except for pairs that count because of their shared bands (match.verify = "bands", match.certain_shared_bands), because of a passage (by_passage), or not at all (in_review)';
COMMENT ON COLUMN nearsim.similar_pair.intersection_size IS 'Number of features in both documents; NULL if the metric does not count features';
COMMENT ON COLUMN nearsim.similar_pair.union_size IS 'Number of features in either document; NULL if the metric does not count features';
COMMENT ON COLUMN nearsim.similar_pair.verified_at IS 'When the similarity was computed';
COMMENT ON COLUMN nearsim.similar_pair.distance IS 'Distance; NULL if the metric is not a distance';
COMMENT ON COLUMN nearsim.similar_pair.in_review IS
    'Whether the pair is only stored for a person to look at, because its similarity is between match.review and the threshold';
COMMENT ON COLUMN nearsim.similar_pair.longest_passage IS
    'Number of words in the longest run of words that both texts have, not counting words that the recipe leaves out; NULL unless the metric is containment and the similarity is verified';
COMMENT ON COLUMN nearsim.similar_pair.by_passage IS
    'Whether the two are a pair only because they share a run of match.passage_words words, although their similarity is below the threshold; such a pair connects no cluster and is no reason to remove a document';
