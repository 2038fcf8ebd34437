-- Switch to another generation, in one call that is a transaction.
SELECT state, retired_id FROM nearsim.let_answer(%(generation_id)s, CAST(%(before)s AS text[]), %(wait)s)
