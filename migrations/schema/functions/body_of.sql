CREATE FUNCTION nearsim.body_of(doc_id bigint) RETURNS text
LANGUAGE plpgsql STABLE STRICT SET search_path = pg_catalog, pg_temp AS $$
DECLARE
    stored record;
BEGIN
    SELECT document.body, document.body_digest INTO stored
    FROM nearsim.document WHERE document.doc_id = body_of.doc_id;
    IF stored.body_digest IS NULL THEN
        RETURN stored.body;
    END IF;
    RETURN (SELECT attached.body FROM nearsim.attached_bodies(ARRAY[doc_id]) AS attached);
END
$$;
COMMENT ON FUNCTION nearsim.body_of(bigint) IS
    'The text of a document, from nearsim.document or from the attached table. bodies_of() reads many texts of an attached table in a fraction of the time';

-- Texts of attached tables are read in parts of about four million characters and at most 4,000 documents. Each part checks
-- the attached table once.
CREATE FUNCTION nearsim.bodies_of(doc_ids bigint[]) RETURNS TABLE (doc_id bigint, body text)
LANGUAGE plpgsql STABLE STRICT ROWS 1000 SET search_path = pg_catalog, pg_temp AS $$
DECLARE
    part bigint[];
BEGIN
    RETURN QUERY
        SELECT document.doc_id, document.body FROM nearsim.document
        WHERE document.doc_id = ANY(doc_ids) AND document.body_digest IS NULL;
    FOR part IN
        SELECT array_agg(listed.doc_id) FROM (
            SELECT document.doc_id,
                sum(1000 + coalesce(document.body_length, 0)) OVER (ORDER BY document.doc_id) / 4000000 AS place
            FROM nearsim.document WHERE document.doc_id = ANY(doc_ids) AND document.body_digest IS NOT NULL
        ) AS listed
        GROUP BY place ORDER BY place
    LOOP
        RETURN QUERY SELECT * FROM nearsim.attached_bodies(part);
    END LOOP;
END
$$;
COMMENT ON FUNCTION nearsim.bodies_of(bigint[]) IS
    'The texts of documents, from nearsim.document or from attached tables: one row for each document, in no particular order. Documents that do not exist are left out';
