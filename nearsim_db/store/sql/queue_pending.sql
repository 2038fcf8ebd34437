-- Queue what the index does not reflect: documents without a signature of their revision, and signatures without one.
-- Documents older than an age count as absent.
INSERT INTO nearsim.work AS stored (generation_id, doc_id, stage)
SELECT {generation_id}, coalesce(document.doc_id, signature.doc_id), 'sign'
FROM (
    SELECT doc_id, revision FROM nearsim.document
    WHERE collection_id = %(collection_id)s
        AND coalesce(published_at, created_at)
            >= coalesce(now() - make_interval(secs => CAST(%(age)s AS double precision)), '-infinity')
) AS document
FULL JOIN {signature} AS signature USING (doc_id)
WHERE document.revision IS DISTINCT FROM signature.revision
ORDER BY 2
ON CONFLICT (generation_id, stage, doc_id) DO UPDATE SET
    again = stored.lease_id IS NOT NULL, attempts = 0, error = NULL, set_aside_at = NULL, due_at = now(),
    queued_at = CASE WHEN stored.lease_id IS NULL THEN now() ELSE stored.queued_at END
WHERE stored.lease_id IS NOT NULL OR stored.attempts > 0
