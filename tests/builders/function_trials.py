"""A call of every function of the schema that is not immutable, to test what readers and writers may see."""

from typing import LiteralString

# A call of each function that is not immutable, by its signature. Add a call here for each new function. The tests
# replace the braces by the reader's own objects, by another tenant's, or by ones that do not exist. {pairs_of_leaf} is
# the function that reads the pairs of a generation: its own, or pairs_of_shared.
TRIALS: dict[str, LiteralString] = {
    "answer_to(bigint)": "SELECT nearsim.answer_to({probe})",
    "ask(text,text,text,text,double precision,interval,integer,text,text)": "SELECT nearsim.ask("
    "'a text', collection => {collection})",
    "ask_apart(text,text,text,text,double precision,interval,integer,text,text)": "SELECT nearsim.ask_apart("
    "'a text', NULL, {collection}, NULL, NULL, '0 seconds', NULL, NULL, NULL)",
    "check_text(text,text,text,text,double precision,interval,integer,text)": "SELECT * FROM nearsim.check_text("
    "'a text', collection => {collection}, deadline => '0 seconds')",
    "attached_bodies(bigint[])": "SELECT * FROM nearsim.attached_bodies(ARRAY[{doc}])",
    "await_answer(bigint)": "SELECT nearsim.await_answer({probe})",
    "body_of(bigint)": "SELECT nearsim.body_of({doc})",
    "bodies_of(bigint[])": "SELECT * FROM nearsim.bodies_of(ARRAY[{doc}])",
    "buckets_of(bigint,text)": "SELECT * FROM nearsim.buckets_of({doc})",
    "candidates(text,text)": "SELECT * FROM nearsim.candidates({collection}) ORDER BY 1, 2",
    "clusters_at(double precision,text,text)": "SELECT * FROM nearsim.clusters_at(0.5, {collection})",
    "collection_named(text)": "SELECT nearsim.collection_named({collection})",
    "collection_of(bigint)": "SELECT nearsim.collection_of({doc})",
    "common_collection(bigint,bigint)": "SELECT nearsim.common_collection({doc}, {twin})",
    "compare_sketches(integer,bigint,bigint)": "SELECT * FROM nearsim.compare_sketches({generation}, {doc}, {twin})",
    "count_buckets(integer)": "SELECT * FROM nearsim.count_buckets({generation}) ORDER BY 1",
    "default_profile(integer)": "SELECT nearsim.default_profile({collection_id})",
    "dedupe(bigint[],double precision,text)": "SELECT * FROM nearsim.dedupe(ARRAY[{doc}, {twin}])",
    "document_named(text,text)": "SELECT nearsim.document_named({id})",
    "documents_named(text,text,text)": "SELECT * FROM nearsim.documents_named({id}, {twin_id}, NULL)",
    "find_request(text,text,text,text,double precision,integer,text,text)": "SELECT nearsim.find_request("
    "'a text', NULL, {collection}, NULL, NULL, NULL, NULL, NULL)",
    "foreign_code(regclass,boolean)": "SELECT nearsim.foreign_code('nearsim.document')",
    "review_counts(text,text,text,integer)": "SELECT * FROM nearsim.review_counts({collection})",
    "review_queue(text,text,text,text,double precision,double precision,text,timestamp with time zone,"
    "timestamp with time zone,text,boolean,integer)": "SELECT * FROM nearsim.review_queue({collection})",
    "roles_exist()": "SELECT nearsim.roles_exist()",
    "retention_of(jsonb)": "SELECT nearsim.retention_of(recipe) FROM nearsim.generation "
    "WHERE generation_id = {generation}",
    "shown_statistics(regclass)": "SELECT * FROM nearsim.shown_statistics('nearsim.document')",
    "heads_of(integer,bigint[])": "SELECT * FROM nearsim.heads_of({generation}, ARRAY[{doc}, {twin}]) ORDER BY 1",
    "in_direction(bigint,double precision,text,integer,boolean)": "SELECT * FROM nearsim.in_direction("
    "{doc}, 0, {profile}, NULL, true)",
    "is_isolated()": "SELECT nearsim.is_isolated()",
    "keys_of(integer,bigint)": "SELECT nearsim.keys_of({generation}, {doc})",
    "links_among(integer,bigint[],bigint[],double precision)": "SELECT * FROM nearsim.links_among({generation}, "
    "ARRAY[{doc}, {twin}], ARRAY[{doc}, {doc}], 0.1) ORDER BY 1, 2",
    "may_transfer_ownership(text)": "SELECT nearsim.may_transfer_ownership(current_user)",
    "bucket_members(integer,bigint[],integer)": "SELECT nearsim.bucket_members({generation}, "
    "nearsim.keys_of({generation}, {doc}), 64)",
    "bucket_neighbours(integer,bigint,double precision,integer)": "SELECT * "
    "FROM nearsim.bucket_neighbours({generation}, {doc}, 0, 1)",
    "numbers_of(bigint,jsonb)": 'SELECT nearsim.numbers_of({doc}, \'{{"fields": ["title", "body"]}}\')',
    "pairs_between(integer,bigint[])": "SELECT * FROM nearsim.pairs_between({generation}, ARRAY[{doc}, {like}])",
    "pairs_of(integer,bigint,double precision,integer)": "SELECT * FROM nearsim.pairs_of({generation}, {doc}, 0, 0) "
    "ORDER BY 1",
    "reason_of(pair_evidence,double precision,boolean)": "SELECT nearsim.reason_of("
    "(SELECT nearsim.why_by_doc_id({doc}, {like})), 0.5, true)",
    "similar_in_buckets(integer,integer,bigint,double precision,double precision,integer,integer)": "SELECT * "
    "FROM nearsim.similar_in_buckets({generation}, {collection_id}, {doc}, 0, 0, 1, NULL) ORDER BY 1",
    "may_see_collection(integer)": "SELECT nearsim.may_see_collection({collection_id})",
    "may_see_generation(integer)": "SELECT nearsim.may_see_generation({generation})",
    "live_generation(integer,text,bigint)": "SELECT * FROM nearsim.live_generation({collection_id})",
    "live_generations_of(integer,text[],bigint)": "SELECT * FROM nearsim.live_generations_of({collection_id}, NULL)",
    "report_unindexed(integer,bigint,boolean)": "SELECT nearsim.report_unindexed({generation}, {doc}, true)",
    "similar_by_profiles_by_doc_id(bigint,text[],integer)": "SELECT * "
    "FROM nearsim.similar_by_profiles_by_doc_id({doc})",
    "similar_by_profiles(text,text[],text,integer)": "SELECT * FROM nearsim.similar_by_profiles({id})",
    "similar_to_by_doc_id(bigint,double precision,integer,text,integer)": "SELECT * "
    "FROM nearsim.similar_to_by_doc_id({doc})",
    "nearest_by_doc_id(bigint,integer,double precision,text)": "SELECT * FROM nearsim.nearest_by_doc_id({doc})",
    "nearest(text,integer,double precision,text,text)": "SELECT * FROM nearsim.nearest({id})",
    "similar_to(text,double precision,integer,text,text,integer)": "SELECT * FROM nearsim.similar_to({id})",
    "source_texts(attachment,text[])": "SELECT nearsim.source_texts("
    "jsonb_populate_record(CAST(NULL AS nearsim_index.attachment), jsonb_build_object('relation', 'nearsim.document', "
    "'id_column', 'external_id', 'text_column', 'body')), ARRAY[{id}])",
    "similar_to_text(bigint,integer)": "SELECT * FROM nearsim.similar_to_text({probe})",
    "similar_to_text(text,jsonb,text,text,text,double precision,interval,integer)": "CALL nearsim.similar_to_text("
    "'a text', collection => {collection}, deadline => '0 seconds')",
    "combined_clusters(text,text[])": "SELECT * FROM nearsim.combined_clusters({collection}, ARRAY[{profile}])",
    "commit_request()": "CALL nearsim.commit_request()",
    "contained_in_by_doc_id(bigint,double precision,text,integer)": "SELECT * "
    "FROM nearsim.contained_in_by_doc_id({doc})",
    "contained_in(text,double precision,text,text,integer)": "SELECT * FROM nearsim.contained_in({id})",
    "contains_by_doc_id(bigint,double precision,text,integer)": "SELECT * FROM nearsim.contains_by_doc_id({doc})",
    "contains(text,double precision,text,text,integer)": "SELECT * FROM nearsim.contains({id})",
    "document_state(integer,bigint)": "SELECT nearsim.document_state({generation}, {doc})",
    "granted_generation_ids()": "SELECT nearsim.granted_generation_ids()",
    "evidence_of_shared(integer,bigint,bigint,text,jsonb,smallint,smallint,double precision,text)": "SELECT * "
    "FROM {evidence_of_leaf}({generation}, {doc}, {like}, 'default', (SELECT recipe FROM nearsim.generation LIMIT 1), "
    "CAST(4 AS smallint), CAST(4 AS smallint), 0.5, 'jaccard')",
    "pairs_of_shared(integer,bigint,integer,double precision,integer,smallint,jsonb,integer)": "SELECT * "
    "FROM {pairs_of_leaf}({generation}, {doc}, {collection_id}, 0, 1, CAST(4 AS smallint), "
    "(SELECT recipe FROM nearsim.generation LIMIT 1), NULL)",
    "visible_among(bigint[])": "SELECT * FROM nearsim.visible_among(ARRAY[{doc}, {twin}])",
    "pairs_of_step(integer,double precision,integer)": "SELECT * FROM nearsim.pairs_of_step({generation}, 0.5, 10)",
    "review_end(text,text,text,double precision,double precision)": "SELECT nearsim.review_end({collection})",
    "why_by_doc_id(bigint,bigint,text)": "SELECT * FROM nearsim.why_by_doc_id({doc}, {like})",
    "why(text,text,text,text)": "SELECT * FROM nearsim.why({id}, {twin_id})",
    "why_not_by_doc_id(bigint,bigint,text)": "SELECT * FROM nearsim.why_not_by_doc_id({doc}, {like})",
    "why_not(text,text,text,text)": "SELECT * FROM nearsim.why_not({id}, {twin_id})",
    "word_diff_by_doc_id(bigint,bigint)": "SELECT * FROM nearsim.word_diff_by_doc_id({doc}, {like})",
    "word_diff(text,text,text)": "SELECT * FROM nearsim.word_diff({id}, {twin_id})",
}
# Calls that only writers may make.
WRITING: dict[str, LiteralString] = {
    "check_insert(text,text,text,text,double precision,interval,integer,text)": "SELECT * FROM nearsim.check_insert("
    "'a text', collection => {collection}, deadline => '0 seconds')",
    "lock_asked(bigint)": "SELECT nearsim.lock_asked({probe})",
    "refuse_outdated(bigint)": "SELECT nearsim.refuse_outdated({probe})",
    "store_verdicts(text[],bigint[],bigint[],text,text)": (
        "SELECT nearsim.store_verdicts(ARRAY['pinned'], ARRAY[{doc}], ARRAY[{like}], 'why', 'by')"
    ),
    "pin_survivor_by_doc_id(bigint,text,text)": "SELECT nearsim.pin_survivor_by_doc_id({doc}, 'why', 'by')",
    "pin_survivor(text,text,text,text)": "SELECT nearsim.pin_survivor({id}, 'why', 'by')",
    "unpin_survivor_by_doc_id(bigint,text,text)": "SELECT nearsim.unpin_survivor_by_doc_id(doc_id, 'why', 'by') "
    "FROM nearsim.pin_survivor_by_doc_id({doc}, 'why', 'by')",
    "unpin_survivor(text,text,text,text)": "SELECT nearsim.unpin_survivor({id}, 'why', 'by') "
    "FROM nearsim.pin_survivor({id}, 'why', 'by')",
    "pin_pair_by_doc_id(bigint,bigint,text,text)": "SELECT nearsim.pin_pair_by_doc_id({doc}, {like}, 'why', 'by')",
    "pin_pair(text,text,text,text,text)": "SELECT nearsim.pin_pair({id}, {twin_id}, 'why', 'by')",
    "named_choice(survivor_pin)": "SELECT nearsim.named_choice(chosen) FROM nearsim.survivor_pin AS chosen",
    "named_verdict(verdict)": "SELECT nearsim.named_verdict(made) FROM nearsim.verdict AS made",
    "undo_current_verdicts(bigint[],bigint[],text,text)": (
        "SELECT nearsim.undo_current_verdicts(ARRAY[{doc}], ARRAY[{like}], 'why', 'by')"
    ),
    "undo_verdict_by_doc_id(bigint,bigint,text,text)": (
        "SELECT nearsim.undo_verdict_by_doc_id({doc}, {like}, 'why', 'by')"
    ),
    "undo_verdict(text,text,text,text,text)": "SELECT nearsim.undo_verdict({id}, {twin_id}, 'why', 'by')",
    "veto_pair_by_doc_id(bigint,bigint,text,text)": "SELECT nearsim.veto_pair_by_doc_id({doc}, {like}, 'why', 'by')",
    "veto_pair(text,text,text,text,text)": "SELECT nearsim.veto_pair({id}, {twin_id}, 'why', 'by')",
}
# Functions that take a number from a sequence: gaps in the numbers show that other tenants took some.
DRAWING = {signature for signature in TRIALS if signature.startswith(("ask(", "similar_to_text(text"))}
