-- Nobody else changes the states of a profile's generations until this transaction ends. In one order, so that two who do
-- this wait for each other instead of both.
SELECT generation_id FROM nearsim.generation WHERE profile_id = %(profile_id)s ORDER BY generation_id FOR NO KEY UPDATE
