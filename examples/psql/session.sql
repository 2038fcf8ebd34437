-- A session over the collection demo: psql "$(nearsim server url)" --file examples/psql/session.sql
-- Another index: psql ... --set collection=news --set profile=headline --file examples/psql/session.sql
\set ON_ERROR_STOP on
\if :{?collection} \else \set collection demo \endif
\if :{?profile} \else \set profile default \endif

\echo The index
SELECT threshold, bands, rows, bucket_limit FROM nearsim.live_generations
WHERE collection = :'collection' AND profile = :'profile';

\echo The largest clusters
SELECT cluster_id, documents, sources, survivor_external_id, survivor_title
FROM nearsim.clusters WHERE collection = :'collection' AND profile = :'profile'
ORDER BY documents DESC, cluster_id LIMIT 5;

\echo Copies of the largest cluster, with the document to keep
SELECT external_id, source, published_at, survivor_external_id
FROM nearsim.duplicates WHERE collection = :'collection' AND profile = :'profile'
    AND cluster_id = (
        SELECT cluster_id FROM nearsim.clusters WHERE collection = :'collection' AND profile = :'profile'
        ORDER BY documents DESC, cluster_id LIMIT 1)
ORDER BY published_at, external_id;

\echo Who published the largest cluster first, and how much later the others did
SELECT first_source, first_external_id, source, external_id, delay
FROM nearsim.first_publications WHERE collection = :'collection' AND profile = :'profile'
    AND cluster_id = (
        SELECT cluster_id FROM nearsim.clusters WHERE collection = :'collection' AND profile = :'profile'
        ORDER BY documents DESC, cluster_id LIMIT 1)
ORDER BY delay, doc_id;

\echo The most similar pair that is no exact copy
SELECT left_external_id, right_external_id, similarity, intersection_size, union_size, numbers_differ
FROM nearsim.pairs WHERE collection = :'collection' AND profile = :'profile' AND are_heads
ORDER BY similarity DESC, left_id, right_id LIMIT 1
\gset

\echo :left_external_id and :right_external_id: the evidence
SELECT similarity, estimate, intersection_size, union_size, shared_bands, numbers_only_left, numbers_only_right,
    same_cluster
FROM nearsim.why(
    :'left_external_id', :'right_external_id', collection => :'collection', profile => :'profile');

\echo Documents like :left_external_id
SELECT external_id, similarity, shared_bands, numbers_differ
FROM nearsim.similar_to(
    :'left_external_id', collection => :'collection', profile => :'profile', max_matches => 5)
ORDER BY similarity DESC, external_id;

\echo The latest ten documents without copies
SELECT external_id, title, published_at
FROM nearsim.documents WHERE collection = :'collection' AND profile = :'profile' AND is_survivor IS NOT FALSE
ORDER BY published_at DESC NULLS LAST, doc_id LIMIT 10;
