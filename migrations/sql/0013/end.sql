-- Before, all is told in the transaction by which a generation goes live.
SELECT nearsim.tell_slice(generation_id, 9223372036854775807)
FROM nearsim.generation WHERE told_left_id IS NOT NULL ORDER BY generation_id;
DROP TRIGGER generation_turn ON nearsim.generation;
DROP FUNCTION nearsim.turn(), nearsim.tell_slice(integer, bigint);
ALTER TABLE nearsim.generation DROP COLUMN told_left_id, DROP COLUMN told_right_id;

DELETE FROM nearsim.work WHERE stage = 'tell';
ALTER TABLE nearsim.work
    DROP CONSTRAINT work_stage_known,
    ADD CONSTRAINT work_stage_known CHECK (stage IN ('sign', 'search', 'anchor', 'link', 'compare'));
COMMENT ON COLUMN nearsim.work.stage IS
    'sign, search (for pairs), anchor (through a whole bucket), link (clusters) or compare (all documents)';
COMMENT ON COLUMN nearsim.backlog.stage IS
    'change (noted, no work yet), compare (all documents), sign, search, anchor (a whole bucket), link (clusters)';
