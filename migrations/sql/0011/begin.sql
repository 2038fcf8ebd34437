-- Metrics other than Jaccard count no features.
ALTER TABLE nearsim.similar_pair
    ALTER COLUMN intersection_size DROP NOT NULL,
    ALTER COLUMN union_size DROP NOT NULL;
