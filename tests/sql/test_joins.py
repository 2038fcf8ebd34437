"""An application's list page joins the views by index, whatever the statistics say."""

from collections.abc import Iterator

import psycopg
import pytest
from psycopg import sql

from nearsim_db.records import GenerationId
from nearsim_db.store.citus.placement import is_distributed
from nearsim_db.store.driver import Connection
from nearsim_db.store.driver.engine import open_engine
from nearsim_db.store.driver.statements import FIRST_OWN, PARENTS, Leaves, statement
from nearsim_db.store.generations import partitions
from nearsim_db.store.generations.tables import GenerationTables
from tests.builders.logins import login, user_of
from tests.builders.plan_log import explained, plain_session, read_by_table
from tests.examples.conftest import EXAMPLES
from tests.servers.databases import Server

pytestmark = pytest.mark.each_major

DOCUMENTS = 40_000
LARGE = Leaves(GenerationId(FIRST_OWN + 1))
# Collection 1 has all but a few documents: the average of the collections says little about it.
CONTENTS = """
INSERT INTO nearsim.collection (collection_id, name) OVERRIDING SYSTEM VALUE
SELECT n, CASE n WHEN 1 THEN 'story' ELSE 'other ' || n END FROM generate_series(1, 200) AS n;
INSERT INTO nearsim.profile (profile_id, collection_id, name) OVERRIDING SYSTEM VALUE
SELECT n, n, 'default' FROM generate_series(1, 200) AS n;
INSERT INTO nearsim.generation (generation_id, profile_id, recipe, fingerprint, state, bands, rows)
OVERRIDING SYSTEM VALUE
SELECT CASE n WHEN 1 THEN {generation_id} ELSE n END, n, '{{"match": {{"threshold": 0.5}}}}', 'f', 'live', 32, 4
FROM generate_series(1, 200) AS n;
INSERT INTO nearsim.document (doc_id, collection_id, external_id, title) OVERRIDING SYSTEM VALUE
SELECT n, 1, n, 'Title' FROM generate_series(1, {documents}) AS n
UNION ALL
SELECT {documents} + 10 * c + n, c, n, 'Title' FROM generate_series(2, 200) AS c, generate_series(0, 9) AS n;
INSERT INTO {signature} (doc_id, revision, feature_count, feature_digest, sketch, numbers_digest, head_id)
SELECT doc_id, revision, 1, gen_random_uuid(), '\\x00', 0, doc_id FROM nearsim.document WHERE collection_id = 1;
INSERT INTO {cluster_member} (generation_id, doc_id, cluster_id, is_survivor)
SELECT {generation_id}, n, n - n % 20, n % 20 = 0 FROM generate_series(20, {documents}) AS n;
CREATE SCHEMA news
    CREATE TABLE story (story_id integer PRIMARY KEY, headline text, day date)
    CREATE INDEX ON story (day DESC, story_id);
INSERT INTO news.story SELECT n, 'Title', DATE '2026-01-01' + n % 301 FROM generate_series(1, {documents}) AS n
"""


def fill(url: str) -> None:
    """A large collection beside small ones, and an application's table with its rows; not analyzed."""
    engine = open_engine(url)
    with engine.connect(autocommit=True) as connection:
        leaves = Leaves(LARGE.generation_id, is_distributed(connection))
        connection.execute(
            "SET session_replication_role = replica"
        )  # as loaded by a build: no changes to capture
        GenerationTables(connection, leaves).create()
        parts = {parent: LARGE.table(parent) for parent in PARENTS}
        numbers = {"generation_id": sql.Literal(LARGE.generation_id), "documents": sql.Literal(DOCUMENTS)}
        connection.execute(sql.SQL(CONTENTS).format(**parts, **numbers))
        connection.execute("RESET session_replication_role")
        for name in ("index_signatures", "copy_signatures"):
            connection.execute(statement(name, leaves))
        GenerationTables(connection, leaves).attach()
    engine.dispose()


@pytest.fixture
def application(server: Server) -> Iterator[Connection]:
    """A session of an application."""
    with plain_session(server, fill) as connection:
        yield connection


PAGE = (EXAMPLES / "psql" / "list_page.sql").read_text("utf-8").rstrip().rstrip(";")
PAGES = {
    "duplicates": (PAGE, 19),
    "documents": (
        PAGE.replace("nearsim.duplicates", "nearsim.documents").replace("copy_of", "state"),
        20,
    ),
}


def rows_read(connection: Connection, page: str) -> float:
    """How many rows of tables of the index the page reads."""
    counts = read_by_table(explained(connection, page))
    return sum(counts.get(table, 0) for table in ("document", "signed_document", *map(LARGE.name, PARENTS)))


def in_subquery(page: str) -> str:
    """The page with the view in a subquery of its own, as docs/how-to/join.md has it."""
    for old, new in (
        ("LEFT JOIN nearsim", "LEFT JOIN LATERAL (SELECT * FROM nearsim"),
        (" AS duplicate\n    ON duplicate.", "\n    WHERE "),
        ("AND duplicate.", "AND "),
        ("= story.external_id\n", "= story.external_id OFFSET 0) AS duplicate ON true\n"),
    ):
        page = page.replace(old, new)
    return page


def assert_reads_few(connection: Connection, *, joined: bool) -> None:
    for view, (page, matches) in PAGES.items():
        query = page if joined else in_subquery(page)
        rows = connection.execute(query.encode()).fetchall()
        assert len([row for row in rows if row[2] is not None]) == matches, view
        assert rows_read(connection, query) <= 20 * 8, view


def test_a_list_page_reads_few_documents_of_forty_thousand(application: Connection) -> None:
    assert_reads_few(application, joined=False)  # without statistics
    application.execute("ANALYZE")
    assert_reads_few(application, joined=True)
    partitions.analyze_parents(application)
    assert_reads_few(application, joined=True)
    application.execute(
        "INSERT INTO news.story SELECT n, 'New', '2026-12-31' FROM generate_series(40001, 80000) AS n"
    )
    application.execute("ALTER TABLE nearsim.document DISABLE TRIGGER USER")
    application.execute(
        "INSERT INTO nearsim.document (doc_id, collection_id, external_id) OVERRIDING SYSTEM VALUE "
        "SELECT 100000 + n, 1, n FROM generate_series(40001, 80000) AS n"
    )
    assert rows_read(application, PAGE) <= 20 * 8  # statistics are of half the documents


GRANTS = """
SELECT nearsim.set_isolation(true);
GRANT USAGE ON SCHEMA news TO {reader};
GRANT SELECT ON news.story TO {reader};
INSERT INTO nearsim_index.collection_access (collection_id, role_name) VALUES (1, {name});
ANALYZE
"""


def test_a_list_page_of_an_isolated_reader_reads_few_documents(server: Server) -> None:
    with server.database(fill) as url, login(url, "nearsim_reader") as reader:
        with psycopg.connect(url) as admin:
            name = user_of(reader)
            admin.execute(sql.SQL(GRANTS).format(reader=sql.Identifier(name), name=sql.Literal(name)))
        engine = open_engine(reader)
        with engine.connect(autocommit=True) as connection:
            assert_reads_few(connection, joined=False)
        engine.dispose()
