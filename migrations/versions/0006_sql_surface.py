"""Views and functions: everything that an analyst or an application asks, without Python.

Revision ID: 0006
Revises: 0005
"""

from pathlib import Path

from alembic import op

revision = "0006"
down_revision = "0005"
branch_labels = None
depends_on = None

STATEMENTS = Path(__file__).parents[1] / "sql" / revision

CREATED: tuple[str, ...] = (
    "comments",
    "live_generations",
    "documents",
    "pairs",
    "clusters",
    "duplicates",
    "buckets",
    "profiles",
    "generations",
    "backlog",
    "verdicts",
    "functions",
    "match_probability",
    "curve",
    "estimate",
    "words_of_64_bits",
    "random_word",
    "band_hashes",
    "band_keys",
    "document_named",
    "serving",
    "bottom_k",
    "sketches",
    "buckets_of",
    "pairs_of",
    "met_by",
    "similar_to",
    "numbers",
    "evidence",
    "why",
    "why_not",
    "links_among",
    "dedupe",
)

DROP_VIEWS = """
DROP VIEW nearsim.functions, nearsim.verdicts, nearsim.backlog, nearsim.generations, nearsim.profiles, nearsim.buckets,
    nearsim.duplicates, nearsim.clusters, nearsim.pairs, nearsim.documents, nearsim.live_generations;
DROP FUNCTION nearsim.count_buckets(integer);
"""

DROP_FUNCTIONS = """
DROP FUNCTION nearsim.dedupe(bigint[], double precision, text);
DROP FUNCTION nearsim.visible_among(bigint[]);
DROP FUNCTION nearsim.links_among(integer, bigint[], bigint[], double precision);
DROP FUNCTION nearsim.pairs_between(integer, bigint[]);
DROP FUNCTION nearsim.heads_of(integer, bigint[]);
DROP FUNCTION nearsim.why_not(text, text, text, text);
DROP FUNCTION nearsim.why_not(bigint, bigint, text);
DROP FUNCTION nearsim.reason_of(nearsim.pair_evidence, double precision, boolean);
DROP TYPE nearsim.pair_absence;
DROP FUNCTION nearsim.why(text, text, text, text);
DROP FUNCTION nearsim.why(bigint, bigint, text);
DROP FUNCTION nearsim.common_collection(bigint, bigint);
DROP FUNCTION nearsim.side_of(integer, bigint);
DROP TYPE nearsim.pair_evidence;
DROP FUNCTION nearsim.compare_sketches(integer, bigint, bigint);
DROP FUNCTION nearsim.standing_in(integer, bigint);
DROP FUNCTION nearsim.numbers_missing(text[], text[]);
DROP FUNCTION nearsim.numbers_of(bigint, jsonb);
DROP FUNCTION nearsim.body_of(bigint);
DROP FUNCTION nearsim.similar_to(text, double precision, integer, text, text);
DROP FUNCTION nearsim.similar_to(bigint, double precision, integer, text);
DROP TYPE nearsim.similar_document;
DROP FUNCTION nearsim.met_by(integer, bigint, double precision, integer);
DROP FUNCTION nearsim.pairs_of(integer, bigint, double precision, integer);
DROP FUNCTION nearsim.buckets_of(bigint, text);
DROP FUNCTION nearsim.keys_of(integer, bigint);
DROP FUNCTION nearsim.shared_bands(jsonb, integer, integer, bytea, bytea);
DROP FUNCTION nearsim.estimate_under(jsonb, bytea, bytea);
DROP FUNCTION nearsim.keys_under(jsonb, integer, integer, bytea);
DROP FUNCTION nearsim.estimate_smallest(bigint[], bigint[]);
DROP FUNCTION nearsim.smallest_keys(bigint[], integer, bigint);
DROP FUNCTION nearsim.serving(integer, text);
DROP FUNCTION nearsim.collection_of(bigint);
DROP FUNCTION nearsim.document_named(text, text);
DROP FUNCTION nearsim.band_keys(bytea, integer, integer, bigint, integer, text, boolean);
DROP FUNCTION nearsim.positions(bytea, integer, boolean);
DROP FUNCTION nearsim.join_bands(bigint[], integer, integer);
DROP FUNCTION nearsim.xor_bands(bigint[], integer, integer, bigint);
DROP FUNCTION nearsim.mix_bands(bigint[], integer, integer, bigint);
DROP FUNCTION nearsim.fmix64(bigint[]);
DROP FUNCTION nearsim.random_word(bigint, text, integer);
DROP FUNCTION nearsim.unsigned(bigint);
DROP FUNCTION nearsim.signed(numeric);
DROP FUNCTION nearsim.estimate(bytea, bytea, integer);
DROP FUNCTION nearsim.curve(integer, integer, integer);
DROP FUNCTION nearsim.match_probability(double precision, integer, integer, integer);
"""


def upgrade() -> None:
    """Create what is in the files, in this order."""
    for name in CREATED:
        op.execute((STATEMENTS / f"{name}.sql").read_text("utf-8"))


def downgrade() -> None:
    """Drop it."""
    op.execute(DROP_FUNCTIONS)
    op.execute(DROP_VIEWS)
