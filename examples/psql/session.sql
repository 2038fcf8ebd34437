-- A session over the collection demo: psql "$(nearsim db url)" --file examples/psql/session.sql
-- Another collection: psql ... --set collection=news --file examples/psql/session.sql
\set ON_ERROR_STOP on
\if :{?collection} \else \set collection demo \endif

\echo Indexes
SELECT profile, threshold, bands, rows, bucket_limit FROM nearsim.live_generations WHERE collection = :'collection';

\echo The largest clusters
SELECT cluster_id, documents, sources, survivor_external_id, survivor_title
FROM nearsim.clusters WHERE collection = :'collection'
ORDER BY documents DESC, cluster_id LIMIT 5;

\echo Copies of the largest cluster, with the document to keep
SELECT external_id, source, published_at, survivor_external_id
FROM nearsim.duplicates WHERE collection = :'collection'
    AND cluster_id = (
        SELECT cluster_id FROM nearsim.clusters WHERE collection = :'collection'
        ORDER BY documents DESC, cluster_id LIMIT 1)
ORDER BY published_at, external_id;

\echo The most similar pair that is no exact copy
SELECT left_external_id, right_external_id, similarity, intersection_size, union_size, numbers_differ
FROM nearsim.pairs WHERE collection = :'collection' AND are_heads
ORDER BY similarity DESC, left_id, right_id LIMIT 1
\gset

\echo :left_external_id and :right_external_id: the evidence
SELECT similarity, estimate, intersection_size, union_size, shared_bands, numbers_only_left, numbers_only_right,
    same_cluster
FROM nearsim.why(:'left_external_id', :'right_external_id', collection => :'collection');

\echo Documents like :left_external_id
SELECT external_id, similarity, shared_bands, numbers_differ
FROM nearsim.similar_to(:'left_external_id', collection => :'collection', max_matches => 5)
ORDER BY similarity DESC, external_id;

\echo The latest ten documents without copies
SELECT external_id, title, published_at
FROM nearsim.documents WHERE collection = :'collection' AND is_survivor IS NOT FALSE
ORDER BY published_at DESC NULLS LAST, doc_id LIMIT 10;
