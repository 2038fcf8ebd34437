-- What the planner knows of a join whose generation it does not know; the server looks at parents only when told to.
-- Numbers alone, so that nothing of a document's text is kept in the samples. A table that somebody else is at is left out.
ANALYZE (SKIP_LOCKED)
    {only} nearsim.signature (generation_id, doc_id, head_id),
    {only} nearsim.similar_pair (generation_id, left_id, right_id),
    {only} nearsim.cluster_member (generation_id, doc_id, cluster_id)
