-- The triggers go with their functions.
DROP VIEW nearsim.events;
DROP FUNCTION nearsim.note_pairs_gone(), nearsim.note_pairs_come(), nearsim.note_twins_gone(), nearsim.note_twins_come(),
    nearsim.note_members_before(), nearsim.note_members_new(), nearsim.note_turn(), nearsim.note_turns(), nearsim.tell()
    CASCADE;
DROP FUNCTION nearsim.tell_pairs(integer, integer, integer, bigint),
    nearsim.tell_clusters(integer, integer, integer, bigint), nearsim.tell_generation(integer, integer, integer),
    nearsim.watch_generation(integer), nearsim.watch_tables(text);
DROP TABLE nearsim.event_draft, nearsim.event;
