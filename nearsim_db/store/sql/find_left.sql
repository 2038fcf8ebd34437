-- Whether anything is still to be done in one collection or in all lasting ones, but what was set aside: changes to
-- dispatch, generations to build (without documents they wait; others than the first only if they are left to the workers),
-- work that waits or is being done where it is not kept until after a build, tables to sweep. Relies on work_pkey.
WITH chosen AS (
    SELECT generation_id, state, collection_id, replaces, detached
    FROM nearsim.generation JOIN nearsim.profile USING (profile_id) JOIN nearsim.collection USING (collection_id)
    WHERE (collection_id = %(collection_id)s OR %(collection_id)s IS NULL AND NOT temporary)
        AND state IN ('building', 'catching_up', 'ready', 'live', 'retired')
        AND generation_id <> ALL (CAST(%(without)s AS integer[]))
)
SELECT EXISTS (
        SELECT FROM nearsim.change
        WHERE collection_id = %(collection_id)s OR %(collection_id)s IS NULL OR collection_id IS NULL)
    OR EXISTS (
        SELECT FROM chosen WHERE state = 'building' AND replaces IS NULL
            AND EXISTS (SELECT FROM nearsim.document WHERE document.collection_id = chosen.collection_id))
    OR EXISTS (SELECT FROM chosen WHERE state = 'building' AND detached OR state = 'catching_up')
    OR EXISTS (
        SELECT FROM chosen JOIN nearsim.work USING (generation_id) WHERE state <> 'building' AND set_aside_at IS NULL)
    OR EXISTS (
        SELECT FROM nearsim.attachment
        WHERE (collection_id = %(collection_id)s OR %(collection_id)s IS NULL)
            AND (swept_at < wanted_at) IS NOT FALSE AND NOT detaching AND trouble IS NULL)
