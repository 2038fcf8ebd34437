-- Also captures documents that leave their collection or change their doc_id; the statement trigger captures all other
-- changes. A revision that was copied from another database may be ahead of the sequence, so the new revision is at least one
-- more than the old one. If the text of an attached table is copied into body unchanged, there is no new revision, because
-- everything computed from the text remains valid.
CREATE FUNCTION nearsim.set_revision() RETURNS trigger
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
BEGIN
    IF NEW.body_digest IS NULL AND OLD.body_digest = CAST(md5(coalesce(NEW.body, '')) AS uuid)
        AND (OLD.collection_id, OLD.doc_id, OLD.external_id, OLD.title, OLD.vector, OLD.source, OLD.url,
            OLD.published_at, OLD.attributes)
        IS NOT DISTINCT FROM (NEW.collection_id, NEW.doc_id, NEW.external_id, NEW.title, NEW.vector, NEW.source, NEW.url,
            NEW.published_at, NEW.attributes)
    THEN
        NEW.revision := OLD.revision;
        RETURN NEW;
    END IF;
    NEW.revision := greatest(nextval('nearsim.document_revision'), OLD.revision + 1);
    NEW.updated_at := now();
    IF (OLD.collection_id, OLD.doc_id) IS DISTINCT FROM (NEW.collection_id, NEW.doc_id) THEN
        INSERT INTO nearsim.change (collection_id, doc_id) VALUES (OLD.collection_id, OLD.doc_id);
    END IF;
    RETURN NEW;
END
$$;
COMMENT ON FUNCTION nearsim.set_revision() IS
    'Trigger on document: sets revision and updated_at, and captures documents that leave a collection';

CREATE TRIGGER document_set_revision BEFORE UPDATE ON nearsim.document
    FOR EACH ROW WHEN (OLD.* IS DISTINCT FROM NEW.*) EXECUTE FUNCTION nearsim.set_revision();
