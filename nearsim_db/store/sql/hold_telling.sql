-- Nobody else tells of a generation, or changes its state, until this transaction ends. Relies on generation_pkey.
SELECT FROM nearsim.generation WHERE generation_id = {generation_id} FOR NO KEY UPDATE
