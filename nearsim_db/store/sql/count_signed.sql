-- How many documents a generation has signed.
SELECT count(*) FROM {signature}
