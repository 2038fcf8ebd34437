DROP FUNCTION nearsim.combined_clusters(text, text[]);
DROP FUNCTION nearsim.similar_by_profiles(text, text[], text);
DROP FUNCTION nearsim.similar_by_profiles(bigint, text[]);
DROP TYPE nearsim.combined_document;
DROP FUNCTION nearsim.serving_together(integer, text[]);
DROP VIEW nearsim.combined_pairs;
