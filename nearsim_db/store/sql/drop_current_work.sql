-- Work whose document is signed as it is now is done already, by whoever wrote it or by the build.
DELETE FROM nearsim.work USING nearsim.document AS document, {signature} AS signature
WHERE work.generation_id = {generation_id} AND work.stage = 'sign'
    AND document.doc_id = work.doc_id AND document.collection_id = %(collection_id)s
    AND signature.doc_id = work.doc_id AND signature.revision = document.revision
