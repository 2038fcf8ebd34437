-- From now on a table is not followed.
UPDATE nearsim.attachment SET detaching = true WHERE collection_id = %(collection_id)s
