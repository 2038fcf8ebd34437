-- The loaded tables become partitions; their CHECKs spare the scan. From now on they note what is done to them, for events.
ALTER TABLE nearsim.signature ATTACH PARTITION {signature} FOR VALUES IN ({generation_id});
ALTER TABLE nearsim.band ATTACH PARTITION {band} FOR VALUES IN ({generation_id});
ALTER TABLE nearsim.similar_pair ATTACH PARTITION {similar_pair} FOR VALUES IN ({generation_id});
ALTER TABLE nearsim.cluster_member ATTACH PARTITION {cluster_member} FOR VALUES IN ({generation_id});
SELECT nearsim.watch_generation({generation_id})
