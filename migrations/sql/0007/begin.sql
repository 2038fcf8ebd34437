-- Generations that are there are watched from now on.
SELECT nearsim.watch_tables('');
SELECT nearsim.watch_generation(generation_id) FROM nearsim.generation
WHERE pg_catalog.to_regclass('nearsim.similar_pair_' || generation_id) IS NOT NULL;
