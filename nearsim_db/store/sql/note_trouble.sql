-- Why a table cannot be followed; what is missed until it can is swept then.
UPDATE nearsim.attachment SET trouble = %(trouble)s, troubled_at = clock_timestamp(), wanted_at = clock_timestamp()
WHERE collection_id = %(collection_id)s
