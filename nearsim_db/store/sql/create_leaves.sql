-- A generation's own tables, standalone until they are loaded: attaching them later does not lock the parents for long.
-- The CHECK on generation_id spares ATTACH its scan. They get the owner of their parents, and readers what they may read.
CREATE TABLE IF NOT EXISTS {signature} (
    LIKE nearsim.signature INCLUDING DEFAULTS INCLUDING CONSTRAINTS INCLUDING STORAGE,
    CHECK (generation_id = {generation_id}));
ALTER TABLE {signature} ALTER COLUMN generation_id SET DEFAULT {generation_id};
CREATE TABLE IF NOT EXISTS {band} (
    LIKE nearsim.band INCLUDING DEFAULTS INCLUDING GENERATED,
    CHECK (generation_id = {generation_id}));
ALTER TABLE {band} ALTER COLUMN generation_id SET DEFAULT {generation_id};
CREATE TABLE IF NOT EXISTS {similar_pair} (
    LIKE nearsim.similar_pair INCLUDING DEFAULTS INCLUDING CONSTRAINTS,
    PRIMARY KEY (left_id, right_id),
    CHECK (generation_id = {generation_id}));
ALTER TABLE {similar_pair} ALTER COLUMN generation_id SET DEFAULT {generation_id};
CREATE TABLE IF NOT EXISTS {cluster_member} (
    LIKE nearsim.cluster_member INCLUDING DEFAULTS,
    PRIMARY KEY (doc_id),
    UNIQUE (cluster_id, is_survivor, doc_id),
    CHECK (generation_id = {generation_id}));
ALTER TABLE {cluster_member} ALTER COLUMN generation_id SET DEFAULT {generation_id};
SELECT nearsim.adopt_leaves({generation_id})
