-- For projection, the metric is euclidean and the threshold is a distance d; the similarity at this distance is 1 / (1 + d).
CREATE FUNCTION nearsim.metric_of(recipe jsonb) RETURNS text
LANGUAGE sql IMMUTABLE PARALLEL SAFE SET search_path = pg_catalog, pg_temp
RETURN CASE recipe #>> '{sketch,family}'
    WHEN 'dart_minhash' THEN 'weighted_jaccard' WHEN 'hyperplane' THEN 'cosine' WHEN 'rare' THEN 'cosine' WHEN 'projection' THEN 'euclidean'
    WHEN 'winnow' THEN 'containment'
    ELSE 'jaccard' END;
COMMENT ON FUNCTION nearsim.metric_of(jsonb) IS
    'Internal (used by why and the view pairs): the metric of a recipe: jaccard, containment, weighted_jaccard, cosine or euclidean';
