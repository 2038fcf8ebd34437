-- Texts that are elsewhere cannot be had without this, and nothing of ours may stay on the tables of others.
DO $$
BEGIN
    IF EXISTS (SELECT FROM nearsim.attachment) THEN
        RAISE EXCEPTION 'there are collections that follow a table of an application'
            USING HINT = 'Let go of each with: nearsim detach COLLECTION [--keep]';
    END IF;
END
$$;
DROP FUNCTION nearsim.note_source();
DROP TABLE nearsim.attachment;
DELETE FROM nearsim.change WHERE collection_id IS NOT NULL AND doc_id IS NULL;
ALTER TABLE nearsim.change
    DROP CONSTRAINT change_one_or_everything,
    DROP COLUMN external_id,
    ADD CONSTRAINT change_one_or_everything CHECK ((collection_id IS NULL) = (doc_id IS NULL));
DROP FUNCTION nearsim.as_bigint(text), nearsim.as_uuid(text);

CREATE OR REPLACE FUNCTION nearsim.body_of(doc_id bigint) RETURNS text
LANGUAGE sql STABLE STRICT SET search_path = pg_catalog, pg_temp
BEGIN ATOMIC
    SELECT document.body FROM nearsim.document WHERE document.doc_id = body_of.doc_id;
END;

CREATE OR REPLACE FUNCTION nearsim.keep_revision() RETURNS trigger
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
BEGIN
    NEW.revision := nextval('nearsim.document_revision');
    NEW.updated_at := now();
    IF (OLD.collection_id, OLD.doc_id) IS DISTINCT FROM (NEW.collection_id, NEW.doc_id) THEN
        INSERT INTO nearsim.change (collection_id, doc_id) VALUES (OLD.collection_id, OLD.doc_id);
    END IF;
    RETURN NEW;
END
$$;
ALTER TABLE nearsim.document DROP COLUMN body_digest, DROP COLUMN body_length;
