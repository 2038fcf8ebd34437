ALTER TABLE nearsim.similar_pair
    ALTER COLUMN intersection_size SET NOT NULL,
    ALTER COLUMN union_size SET NOT NULL;
