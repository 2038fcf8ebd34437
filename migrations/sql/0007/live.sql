-- What the live generations hold is told as if it was found now.
SET CONSTRAINTS nearsim.event_draft_tell IMMEDIATE;
INSERT INTO nearsim.event_draft (generation_id, kind, collection_id, profile_id)
SELECT generation_id, 'live', collection_id, profile_id
FROM nearsim.generation JOIN nearsim.profile USING (profile_id) JOIN nearsim.collection USING (collection_id)
WHERE state = 'live' AND NOT temporary;
SET CONSTRAINTS nearsim.event_draft_tell DEFERRED;
