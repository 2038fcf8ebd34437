-- Whether a collection has, or ever had, a veto. Relies on verdict_collection.
SELECT EXISTS (SELECT FROM nearsim.verdict WHERE collection_id = %(collection_id)s AND verdict = 'vetoed')
