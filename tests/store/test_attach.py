"""A collection that follows a table: the index is that of an ingested twin, and the application never notices."""

import random
from collections.abc import Callable, Iterator
from functools import partial

import psycopg
import pytest
from sqlalchemy import Engine

from nearsim_db import Document, Index, attach, follow
from nearsim_db.database import Database
from nearsim_db.errors import ConflictError, InputError, NearsimError, NotFoundError
from nearsim_db.notable import Notable
from nearsim_db.recipe import Recipe, override
from nearsim_db.store import documents, sources
from nearsim_db.store.relations import Columns
from nearsim_db.store.sources import Source
from nearsim_db.worker import Worker
from tests.workers import Application, application, ask

RECIPE = override(Recipe(), ["match.threshold=0.5", "sketch.k=32", "cluster.keep=longest"])
PLAIN = "CREATE TABLE story (id bigint PRIMARY KEY, headline text, body text, seen integer DEFAULT 0)"
PARTITIONED = """
CREATE TABLE story (id bigint PRIMARY KEY, headline text, body text, seen integer DEFAULT 0) PARTITION BY RANGE (id);
CREATE TABLE story_low PARTITION OF story FOR VALUES FROM (MINVALUE) TO (20);
CREATE TABLE story_high PARTITION OF story FOR VALUES FROM (20) TO (40)
"""
LATER_PARTITION = "CREATE TABLE story_rest PARTITION OF story DEFAULT"
TRIGGERS = (
    "SELECT coalesce(string_agg(format('%s %s %s', tgrelid::regclass, tgname, tgenabled), ', '), '') FROM pg_trigger "
    "WHERE NOT tgisinternal AND tgrelid::regclass::text NOT LIKE 'nearsim.%'"
)
CATALOG = """
SELECT format('%s %s %s %s', relacl, reloptions, relhastriggers AND EXISTS (SELECT FROM pg_trigger WHERE tgrelid = oid),
    (SELECT count(*) FROM pg_depend WHERE refobjid = oid))
FROM pg_class WHERE oid = CAST('story' AS regclass)
"""
COLUMNS = Columns("id", "body", title="headline")


@pytest.fixture
def where(database_url: str) -> str:
    """The database, in which names without a schema are those of the application, whatever its user is called."""
    with application(database_url) as connection:
        name = psycopg.sql.Identifier(connection.info.dbname)
        connection.execute(psycopg.sql.SQL("ALTER DATABASE {} SET search_path = public").format(name))
    return database_url


@pytest.fixture
def app(where: str) -> Iterator[Application]:
    """The application, with a table that has ten texts of two families."""
    with application(where) as connection:
        connection.execute(PLAIN.encode())
        for number in range(1, 11):
            write(connection, number, words(number % 2, number))
        yield connection


@pytest.fixture
def database(where: str) -> Iterator[Database]:
    """The same database to nearsim."""
    with Database.connect(where) as database:
        yield database


@pytest.fixture
def story(app: Application, database: Database) -> Index:
    """A collection that follows it, indexed."""
    return attached(database)


def attached(database: Database, collection: str | None = None, columns: Columns = COLUMNS) -> Index:
    """Follow the table and take it in."""
    following = attach.follow_table(database, "story", columns, collection)
    index = Index(database, following.collection)
    attach.take_in(index, "default", RECIPE)
    return index


def words(family: int, own: int) -> str:
    """A text that is similar to those of its family."""
    return " ".join(
        [*(f"family{family}word{at}" for at in range(12)), *(f"own{own}" for _ in range(own % 5))]
    )


def write(app: Application, number: int, text: str) -> None:
    """Insert a row."""
    app.execute(
        "INSERT INTO story (id, headline, body) VALUES (%s, %s, %s)", (number, f"title {number}", text)
    )


def pairs(index: Index) -> set[frozenset[str]]:
    """What the index answers."""
    return {frozenset((one.left, one.right)) for one in index.pairs()}


def clusters(index: Index) -> set[tuple[str, frozenset[str]]]:
    """What the index answers: survivors and members."""
    return {(one.survivor, frozenset(one.members)) for one in index.clusters()}


def twin(database: Database, app: Application) -> Index:
    """A collection into which the rows of the table were ingested."""
    rows = app.execute("SELECT id, headline, body FROM story ORDER BY id").fetchall()
    name = f"twin-{random.random()}"
    with Database.connect(database.engine.url.render_as_string(hide_password=False)) as other:
        index = Index(other, name)
        index.create_profile("default", RECIPE)
        index.add(Document(str(number), str(title), str(body)) for number, title, body in rows)
        index.build()
        return Index(database, name)


def assert_as_ingested(database: Database, app: Application, index: Index) -> None:
    """The index answers as that of a twin, and knows the same documents."""
    other = twin(database, app)
    assert pairs(index) == pairs(other)
    assert clusters(index) == clusters(other)
    assert len(pairs(index)) == len(list(index.pairs()))
    database.delete_collection(other.collection)


def scramble(app: Application, rng: random.Random) -> None:
    """Writes of all kinds, some in one transaction, some rolled back."""
    for _ in range(12):
        number, text = rng.randrange(60), words(rng.randrange(3), rng.randrange(9))
        command = rng.choice(
            [
                *3 * ["INSERT INTO story VALUES (%(id)s, 'new', %(text)s) ON CONFLICT DO NOTHING"],
                "INSERT INTO story VALUES (%(id)s, 'new', %(text)s) ON CONFLICT (id) DO UPDATE SET body = 'some'",
                *2 * ["UPDATE story SET body = %(text)s WHERE id = %(id)s"],
                "UPDATE story SET id = (SELECT max(id) + 1 FROM story) WHERE id = %(id)s",
                "UPDATE story SET seen = seen + 1",
                "UPDATE story SET body = body || ' and more', headline = 'x' WHERE id %% 7 = %(id)s %% 7",
                *2 * ["DELETE FROM story WHERE id = %(id)s"],
                "DELETE FROM story WHERE id %% 9 = %(id)s %% 9",
            ]
        )
        with app.transaction(force_rollback=rng.random() < 0.15):
            app.execute(command, {"id": number, "text": text})


@pytest.mark.parametrize("table", [PLAIN, PARTITIONED], ids=["plain", "partitioned"])
def test_as_if_ingested(where: str, database: Database, table: str) -> None:
    rng = random.Random(table)
    with application(where) as app:
        app.execute(table.encode())
        for number in range(10):
            write(app, number, words(number % 2, number))
        if table == PARTITIONED:
            index = attached(database)
            app.execute(LATER_PARTITION)
        else:
            index = attached(database)
            app.execute("ALTER TABLE story ADD COLUMN later jsonb, DROP COLUMN seen")
            app.execute("ALTER TABLE story ADD COLUMN seen integer NOT NULL DEFAULT 1")
        if table == PARTITIONED:
            app.execute("ALTER TABLE story_rest SET (fillfactor = 90)")
        for at in range(3):
            scramble(app, rng)
            if at == 1:
                app.execute("TRUNCATE story")
                scramble(app, rng)
            index.build()
            assert_as_ingested(database, app, index)
        if table == PARTITIONED:
            assert "story_rest" in str(ask(app, TRIGGERS))


def test_nothing_is_written_while_nothing_changes(story: Index, app: Application) -> None:
    app.execute("UPDATE story SET seen = seen + 1")
    assert ask(app, "SELECT count(*) FROM nearsim.change") == 0
    app.execute("UPDATE story SET body = body || ''")
    assert ask(app, "SELECT count(*) FROM nearsim.change") == 0
    before = ask(app, "SELECT max(revision) FROM nearsim.document")
    app.execute(
        "INSERT INTO nearsim.change (collection_id, external_id) SELECT collection_id, '3' FROM nearsim.collection"
    )
    swept = story.sweep()
    assert (swept.new, swept.changed, swept.gone) == (0, 0, 0)
    assert ask(app, "SELECT max(revision) FROM nearsim.document") == before


def test_texts_stay_where_they_are(story: Index, app: Application) -> None:
    assert ask(app, "SELECT count(*) FROM nearsim.document WHERE body IS NOT NULL") == 0
    assert story.get("3")["body"] == words(1, 3)
    assert "body_digest" not in story.get("3")
    assert ask(app, "SELECT nearsim.body_of(doc_id) FROM nearsim.document WHERE external_id = '3'") in (
        words(1, 3),
        None,
    )
    app.execute("GRANT SELECT ON story TO PUBLIC")
    assert ask(app, "SELECT nearsim.body_of(doc_id) FROM nearsim.document WHERE external_id = '3'") == words(
        1, 3
    )
    assert {match.external_id for match in story.similar("3")} == {"1", "5", "7", "9"}
    assert {match.external_id for match in story.similar_to_text(words(0, 2), "title 2")} == {
        "2",
        "4",
        "6",
        "8",
        "10",
    }


KINDS = {
    "smallint": ["-3", "7", "32767"],
    "bigint": ["-9223372036854775808", "7", "9223372036854775807"],
    "uuid": ["6f2a1c1e-0000-4000-8000-00000000000a", "00000000-0000-0000-0000-000000000000"],
    'text COLLATE "C"': ["a", "A", "ü'\"%s", " "],
    "varchar(40)": ["a", "07", "7"],
}


def test_kinds_of_ids(app: Application, database: Database) -> None:
    app.execute("DROP TABLE story")
    for kind, ids in KINDS.items():
        table = 'CREATE TABLE story ("The Id" {} UNIQUE, body text)'
        insert = "INSERT INTO story SELECT CAST(unnest(%s::text[]) AS {}), 'the same'"
        create = psycopg.sql.SQL(table).format(psycopg.sql.SQL(kind))  # type: ignore[arg-type]
        cast = psycopg.sql.SQL(kind.partition(" COLLATE")[0])  # type: ignore[arg-type]
        fill = psycopg.sql.SQL(insert).format(cast)
        app.execute(create)
        app.execute("INSERT INTO story VALUES (NULL, 'nobody')")
        app.execute(fill, (ids[1:],))
        index = attached(database, columns=Columns("The Id", "body"))
        app.execute(fill, (ids[:1],))
        app.execute("INSERT INTO story VALUES (NULL, 'nobody')")
        app.execute("UPDATE story SET body = 'nobody at all' WHERE \"The Id\" IS NULL")
        index.build()
        assert pairs(index) == all_pairs(ids)
        assert index.sweep().unusable == 2
        app.execute('DELETE FROM story WHERE CAST("The Id" AS text) = %s', (ids[0],))
        app.execute(
            "INSERT INTO nearsim.document (collection_id, external_id, body) SELECT collection_id, odd, 'the same' "
            "FROM nearsim.collection, unnest(ARRAY['no id', '007', '99999999999999999999']) AS odd"
        )
        index.build()
        index.sweep()
        assert pairs(index) == all_pairs(ids[1:])
        attach.detach(database, "story", keep=False)
        app.execute("DROP TABLE story")


def all_pairs(ids: list[str]) -> set[frozenset[str]]:
    """Each with each."""
    return {frozenset((one, other)) for one in ids for other in ids if one != other}


def test_ids_that_cannot_be_are_left_out(app: Application, database: Database) -> None:
    app.execute("ALTER TABLE story ALTER id TYPE text")
    index = attached(database)
    for odd in ("x" * 1025, "", "ü" * 513):
        app.execute("INSERT INTO story (id, body) VALUES (%s, 'odd')", (odd,))
        app.execute("UPDATE story SET body = 'odder' WHERE id = %s", (odd,))
    index.build()
    assert index.sweep().unusable == 3
    app.execute("UPDATE story SET id = 'fine' WHERE id = ''")
    index.build()
    assert index.get("fine")["body"] == "odder"
    assert_as_ingested_but(index, {"fine"})


def assert_as_ingested_but(index: Index, others: set[str]) -> None:
    """Nothing came that was not there, but for some."""
    with index.database.transaction() as connection:
        ids = {row[0] for row in connection.exec_driver_sql("SELECT external_id FROM nearsim.document")}
    assert ids == {*map(str, range(1, 11)), *others}


def replicated(app: Application, command: str) -> None:
    """A statement as replication applies it."""
    with app.transaction():
        app.execute("SET LOCAL session_replication_role = replica")
        app.execute(command.encode())


def test_what_replication_applies_is_followed(story: Index, app: Application, database: Database) -> None:
    replicated(
        app, "INSERT INTO story VALUES (11, 'x', 'family0word0 family0word1 family0word2 family0word3')"
    )
    replicated(app, "UPDATE story SET body = 'something else that is like nothing' WHERE id < 4")
    replicated(app, "DELETE FROM story WHERE id = 3")
    story.build()
    assert_as_ingested(database, app, story)
    replicated(app, "TRUNCATE story")
    story.build()
    assert pairs(story) == set()


def test_what_triggers_miss_is_swept(where: str, database: Database) -> None:
    with application(where) as app:
        app.execute(PARTITIONED.encode())
        for number in range(30):
            write(app, number, words(number % 2, number))
        index = attached(database)
        app.execute("TRUNCATE story_low")
        app.execute("CREATE TABLE story_more (LIKE story INCLUDING ALL)")
        app.execute("INSERT INTO story_more SELECT id + 40, headline, body FROM story")
        app.execute("ALTER TABLE story ATTACH PARTITION story_more FOR VALUES FROM (40) TO (90)")
        app.execute("ALTER TABLE story DISABLE TRIGGER ALL")
        app.execute("UPDATE story SET body = 'unseen ' || body WHERE id = 25")
        app.execute("ALTER TABLE story ENABLE TRIGGER ALL")
        swept = index.sweep()
        assert (swept.new, swept.changed, swept.gone) == (10, 1, 20)
        assert_as_ingested(database, app, index)
        write(app, 60, words(0, 1)) if ask(app, "SELECT count(*) = 0 FROM story WHERE id = 60") else None
        app.execute("ALTER TABLE story DETACH PARTITION story_more")
        index.sweep()
        assert_as_ingested(database, app, index)
        assert "story_more" not in str(ask(app, TRIGGERS))


def unseen(app: Application, command: str) -> None:
    """A statement that fires no trigger."""
    app.execute("ALTER TABLE story DISABLE TRIGGER ALL")
    app.execute(command.encode())
    app.execute("ALTER TABLE story ENABLE TRIGGER ALL")


def test_texts_that_are_not_what_they_were_are_found_when_they_are_read(
    story: Index, app: Application, database: Database, database_url: str
) -> None:
    """By a build, by a worker that signs, and by one that verifies: none of them waits for the sweep of the hour."""
    unseen(app, "UPDATE story SET body = 'changed where nobody looked' WHERE id IN (1, 2)")
    unseen(app, "DELETE FROM story WHERE id = 10")
    story.create_profile("other", RECIPE)
    for _ in range(2):
        story.build()
    other = Index(database, "story", "other")
    first = Index(database, "story", "default")
    reference = twin(database, app)
    assert pairs(other) == pairs(reference) == pairs(first)
    unseen(app, "UPDATE story SET body = 'changed again where nobody looked' WHERE id = 3")
    write(app, 20, words(1, 20))
    worker = Worker(database_url, tell=lambda notable: None)
    assert worker.drain() == 0
    assert pairs(first) == pairs(other) == pairs(twin(database, app))
    unseen(app, "UPDATE story SET body = 'back' WHERE id = 5")
    app.execute("UPDATE nearsim.document SET attributes = '{\"touched\": 1}' WHERE external_id = '5'")
    assert worker.drain() == 0
    unseen(app, "UPDATE story SET body = 'back again' WHERE id = 5")
    app.execute("UPDATE nearsim.document SET attributes = '{\"touched\": 2}' WHERE external_id = '5'")
    assert worker.drain() == 0
    assert pairs(first) == pairs(twin(database, app))


def test_an_interrupted_load_goes_on(
    app: Application, database: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    slice_of = sources.follow_slice
    left = [3]

    def interrupted(connection: object, source: Source, start: str, amount: int) -> tuple[int, int]:
        if not left:
            raise KeyboardInterrupt
        left.pop()
        found = slice_of(connection, source, start, amount)  # type: ignore[arg-type]
        app.execute("UPDATE story SET body = body || ' at last' WHERE id = 9")
        app.execute("DELETE FROM story WHERE id = 2")
        app.execute("INSERT INTO story VALUES (20, 'x', 'a text that comes between') ON CONFLICT DO NOTHING")
        return found

    with monkeypatch.context() as patched:
        patched.setattr(follow, "_ROWS_AT_ONCE", 2)
        patched.setattr(sources, "follow_slice", interrupted)
        left[:] = [1, 1, 1]
        with pytest.raises(KeyboardInterrupt):
            attached(database)
        assert 0 < int(str(ask(app, "SELECT count(*) FROM nearsim.document"))) < 10
    index = attached(database)
    assert_as_ingested(database, app, index)


def test_a_role_without_rights_writes_its_table(story: Index, app: Application, database: Database) -> None:
    app.execute("CREATE ROLE plain_writer")
    try:
        app.execute("GRANT SELECT, INSERT, UPDATE, DELETE, TRUNCATE ON story TO plain_writer")
        app.execute("SET ROLE plain_writer")
        write(app, 30, words(0, 30))
        app.execute("UPDATE story SET body = 'mine now' WHERE id = 4")
        app.execute("DELETE FROM story WHERE id = 5")
        with pytest.raises(psycopg.errors.InsufficientPrivilege):
            app.execute("SELECT * FROM nearsim.change")
        app.execute("RESET ROLE")
        story.build()
        assert_as_ingested(database, app, story)
    finally:
        app.execute("RESET ROLE; DROP OWNED BY plain_writer; DROP ROLE plain_writer")


def test_writers_wait_for_nobody(story: Index, app: Application, database_url: str) -> None:
    """Not even for one who has all documents and all notes locked."""
    with application(database_url) as other, other.transaction():
        other.execute("SELECT FROM nearsim.document FOR UPDATE; SELECT FROM nearsim.attachment FOR UPDATE")
        app.execute("SET lock_timeout = '50ms'")
        app.execute("UPDATE story SET body = 'written at once' WHERE id = 4")
        app.execute("DELETE FROM story WHERE id = 5")
        write(app, 31, "written, too")
        app.execute("TRUNCATE story")
    assert ask(app, "SELECT count(*) FROM nearsim.change") == 4


def test_a_renamed_column_refuses_no_write(
    story: Index, app: Application, database: Database, database_url: str
) -> None:
    warnings: list[str] = []
    app.add_notice_handler(lambda notice: warnings.append(notice.message_primary or ""))
    app.execute("ALTER TABLE story RENAME body TO content")
    app.execute("UPDATE story SET content = 'after it was renamed' WHERE id < 4")
    app.execute("DELETE FROM story WHERE id = 4")
    (warning,) = warnings
    assert "nearsim cannot follow this write to public.story" in warning and "body" in warning
    with pytest.raises(
        NotFoundError, match=r"'story' cannot follow table public\.story: its column 'body' is gone"
    ):
        story.build()
    told: list[Notable] = []
    assert Worker(database_url, tell=told.append).drain() == 0
    assert [one.event for one in told if one.level == "error"] == ["not_followed"]
    app.execute("ALTER TABLE story RENAME content TO body")
    story.build()
    assert_as_ingested(database, app, story)
    app.execute("ALTER TABLE story RENAME id TO number")
    for number in range(100, 105):
        app.execute("INSERT INTO story VALUES (%s, 'x', 'y')", (number,))
    app.execute("ALTER TABLE story RENAME number TO id")
    assert len(warnings) == 6
    story.build()
    assert_as_ingested(database, app, story)


def test_other_columns_from_now_on(story: Index, app: Application, database: Database) -> None:
    app.execute("ALTER TABLE story RENAME body TO content")
    app.execute("ALTER TABLE story RENAME headline TO head")
    index = attached(database, columns=Columns("id", "content", title="head"))
    assert ask(app, "SELECT count(*) FROM nearsim.collection") == 1
    app.execute("UPDATE story SET content = 'new' WHERE id = 3")
    app.execute("ALTER TABLE story RENAME content TO body")
    app.execute("ALTER TABLE story RENAME head TO headline")
    attached(database)
    assert_as_ingested(database, app, index)


def test_a_table_that_is_gone(story: Index, app: Application, database: Database, database_url: str) -> None:
    before = pairs(story)
    app.execute("DROP TABLE story")
    app.execute("INSERT INTO nearsim.change (collection_id) SELECT collection_id FROM nearsim.collection")
    with pytest.raises(NotFoundError, match="follows a table that is gone; run: nearsim detach story"):
        story.build()
    told: list[Notable] = []
    assert Worker(database_url, tell=told.append).drain() == 0
    assert [one.message for one in told if one.level == "error"] == [
        "collection 'story' follows a table that is gone; run: nearsim detach story"
    ]
    assert pairs(story) == before
    assert story.similar("3")
    with pytest.raises(InputError, match="nothing of them can be kept"):
        attach.detach(database, "story", keep=True)
    assert attach.detach(database, "story", keep=False) == 10
    assert ask(app, "SELECT count(*) FROM nearsim.collection") == 0


REFUSED = {
    "CREATE VIEW other AS SELECT * FROM story": "it is a view",
    "CREATE MATERIALIZED VIEW other AS SELECT * FROM story": "it is a materialised view",
    "CREATE TABLE other (id int, body text)": "nothing keeps the ids in column 'id' apart",
    "CREATE TABLE other (id int, at int, body text, PRIMARY KEY (id, at))": "nothing keeps the ids",
    "CREATE TABLE other (id int, body text); CREATE UNIQUE INDEX ON other (id) WHERE id > 3": "nothing keeps the ids",
    "CREATE TABLE other (id int, body text); CREATE UNIQUE INDEX ON other ((id + 1))": "nothing keeps the ids",
    "CREATE TABLE other (id int, body text, PRIMARY KEY (id, body)) PARTITION BY LIST (body)": "nothing keeps the ids",
    "CREATE TABLE other (id numeric PRIMARY KEY, body text)": "'id' is of type numeric; the id may be smallint",
    "CREATE TABLE other (id int PRIMARY KEY, body jsonb)": "'body' is of type jsonb; the text may be text",
    "CREATE TABLE other (id int PRIMARY KEY, text text)": "has no column 'body'; it has: id, text",
    "CREATE TABLE other (id int PRIMARY KEY, body text); CREATE TABLE child () INHERITS (other)": "inherit from it",
    "CREATE TABLE nearsim.other (id int PRIMARY KEY, body text)": "there is no table 'other'",
}


def test_tables_that_cannot_be_followed(app: Application, database: Database) -> None:
    for table, reason in REFUSED.items():
        app.execute(table.encode())
        with pytest.raises(NearsimError, match=reason):
            attach.follow_table(database, "other", Columns("id", "body"))
        app.execute("DROP SCHEMA public CASCADE; CREATE SCHEMA public; DROP TABLE IF EXISTS nearsim.other")
        app.execute(PLAIN.encode())
    assert ask(app, "SELECT count(*) FROM nearsim.collection") == 0


def test_what_else_is_refused(app: Application, database: Database) -> None:
    for table, reason in {
        "nearsim.document": "nearsim's own schema",
        "pg_catalog.pg_class": "it belongs to PostgreSQL",
        "nowhere.story": "there is no table 'nowhere.story'",
        "a b.c.d": "is not the name of a table",
    }.items():
        with pytest.raises(NearsimError, match=reason):
            attach.follow_table(database, table, Columns("oid", "relname"))
    with pytest.raises(InputError, match="'seen' is of type integer; the published_at may be timestamp"):
        attach.follow_table(database, "story", Columns("id", "body", published_at="seen"))
    Index(database, "full").add([Document("a", body="b")])
    with pytest.raises(ConflictError, match="'full' has documents of its own"):
        attach.follow_table(database, "story", COLUMNS, "full")
    attached(database)
    app.execute("CREATE TABLE other (id int PRIMARY KEY, body text)")
    with pytest.raises(ConflictError, match=r"follows public\.story by 'id' already"):
        attach.follow_table(database, "other", Columns("id", "body"), "story")
    with pytest.raises(ConflictError, match="has a profile 'default' of another recipe"):
        attach.take_in(Index(database, "story"), "default", Recipe())


def test_rights_that_are_missing(database_url: str, engine: Engine, app: Application) -> None:
    app.execute("CREATE ROLE keeper LOGIN IN ROLE nearsim_admin")
    try:
        url = engine.url.set(username="keeper").render_as_string(hide_password=False)
        with Database.connect(url) as database:
            with pytest.raises(InputError, match="only its owner can make triggers fire always"):
                attach.follow_table(database, "story", COLUMNS)
            app.execute("ALTER TABLE story OWNER TO keeper; ALTER TABLE story ENABLE ROW LEVEL SECURITY")
            attach.follow_table(database, "story", COLUMNS)
            attach.detach(database, "story", keep=False)
            app.execute("ALTER TABLE story FORCE ROW LEVEL SECURITY")
            with pytest.raises(InputError, match="row-level security hides rows"):
                attach.follow_table(database, "story", COLUMNS)
            app.execute("ALTER TABLE story DISABLE ROW LEVEL SECURITY; REVOKE SELECT ON story FROM keeper")
            with pytest.raises(InputError, match="may not read column 'id'; GRANT SELECT"):
                attach.follow_table(database, "story", COLUMNS)
    finally:
        app.execute("DROP OWNED BY keeper CASCADE; DROP ROLE keeper")


def test_names_as_sql_writes_them(app: Application, database: Database) -> None:
    app.execute(
        'CREATE SCHEMA "My News"; CREATE TABLE "My News"."Big.Story" ("Id" int PRIMARY KEY, "The ""Text""" text)'
    )
    app.execute('INSERT INTO "My News"."Big.Story" VALUES (1, %s), (2, %s)', (words(1, 1), words(1, 2)))
    following = attach.follow_table(
        database, '"My News"."Big.Story"', Columns("Id", '"The ""Text"""'), "news"
    )
    index = Index(database, following.collection)
    attach.take_in(index, "default", RECIPE)
    app.execute('INSERT INTO "My News"."Big.Story" VALUES (3, %s)', (words(1, 3),))
    app.execute('ALTER TABLE "My News"."Big.Story" RENAME TO plain')
    index.build()
    assert len(pairs(index)) == 3
    attach.detach(database, "news", keep=False)
    assert ask(app, TRIGGERS) == ""


def test_two_collections_of_one_table(story: Index, app: Application, database: Database) -> None:
    other = attached(database, "titles", Columns("id", "headline"))
    app.execute("UPDATE story SET body = headline, headline = body WHERE id % 2 = 0")
    for index in (story, other):
        index.build()
    assert_as_ingested(database, app, story)
    attach.detach(database, "titles", keep=False)
    assert "nearsim_1_rows" in str(ask(app, TRIGGERS))
    write(app, 50, words(0, 50))
    story.build()
    assert_as_ingested(database, app, story)


def test_documents_are_written_in_the_table_only(story: Index, app: Application) -> None:
    for refused in (
        partial(story.add, [Document("x", body="y")]),
        partial(story.add, [Document("x", body="y")], "skip"),
        partial(story.delete, ["3"]),
        partial(story.purge, ["3"]),
    ):
        with pytest.raises(ConflictError, match=r"story"):
            call(refused)
    app.execute("DELETE FROM story WHERE id = 3")
    assert story.purge(["3"]).deleted == ["3"]


def call(action: Callable[[], object]) -> None:
    """Do it."""
    action()


def test_detaching_leaves_nothing(app: Application, database: Database) -> None:
    before = ask(app, CATALOG)
    for leave in (
        lambda: attach.detach(database, "story", keep=False),
        lambda: attach.detach(database, "story", keep=True),
        lambda: database.delete_collection("story"),
    ):
        attached(database)
        assert ask(app, CATALOG) != before
        leave()
        assert ask(app, CATALOG) == before
        app.execute("DELETE FROM nearsim.collection WHERE name = 'story'")
    write(app, 40, "nobody follows")
    assert ask(app, "SELECT count(*) FROM nearsim.change WHERE doc_id IS NULL") == 0


def test_what_is_kept_is_not_signed_again(story: Index, app: Application, database: Database) -> None:
    signatures = (
        "SELECT array_agg((doc_id, revision, xmin::text)::text ORDER BY doc_id)::text FROM nearsim.signature"
    )
    signed, answered = ask(app, signatures), (pairs(story), clusters(story))
    assert attach.detach(database, "story", keep=True) == 10
    app.execute("DROP TABLE story")
    story.build()
    assert ask(app, signatures) == signed
    assert (pairs(story), clusters(story)) == answered
    assert story.get("3")["body"] == words(1, 3)
    story.add([Document("new", "title 2", words(0, 2))])
    assert {"2", "new"} in pairs(story)
    with pytest.raises(NotFoundError, match="follows no table"):
        attach.detach(database, "story", keep=False)


def test_an_interrupted_keep_goes_on(
    story: Index, app: Application, database: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    copy = sources.keep_texts
    left = [1, 1]

    def interrupted(connection: object, source: Source, after: int, amount: int) -> int | None:
        if not left:
            raise KeyboardInterrupt
        left.pop()
        return copy(connection, source, after, amount)  # type: ignore[arg-type]

    with monkeypatch.context() as patched:
        patched.setattr(follow, "_KEPT_AT_ONCE", 3)
        patched.setattr(sources, "keep_texts", interrupted)
        with pytest.raises(KeyboardInterrupt):
            attach.detach(database, "story", keep=True)
    assert ask(app, "SELECT count(*) FROM nearsim.document WHERE body IS NOT NULL") == 6
    story.build()
    reference = twin(database, app)
    assert pairs(story) == pairs(reference)
    attach.detach(database, "story", keep=True)
    story.build()
    assert pairs(story) == pairs(reference)
    assert ask(app, "SELECT count(*) FROM nearsim.attachment") == 0


def test_the_key_of_the_table_is_used(story: Index, app: Application, database: Database) -> None:
    app.execute(
        "INSERT INTO story SELECT n, 'x', 'text ' || n FROM generate_series(100, 3000) AS n; ANALYZE story"
    )
    story.sweep()
    app.execute("ANALYZE nearsim.document")
    with database.transaction() as connection:
        collection_id = connection.exec_driver_sql(
            "SELECT collection_id FROM nearsim.collection"
        ).scalar_one()
        source = sources.get_source(connection, collection_id)
        inner = connection.connection.driver_connection
        assert isinstance(inner, psycopg.Connection)
        for name, parameters in {
            "read_documents_elsewhere": {"doc_ids": list(range(1, 900)), "age": None},
            "read_documents_after_elsewhere": {"after": 0, "age": None, "amount": 500},
            "delete_gone": {"after": 0, "amount": 500},
            "keep_texts": {"after": 0, "amount": 500},
            "delete_unfound": {"ids": [str(number) for number in range(900)]},
        }.items():
            command = psycopg.sql.SQL("EXPLAIN ") + source.statement(name)
            plan = "\n".join(
                str(row[0]) for row in inner.execute(command, {"collection_id": collection_id, **parameters})
            )
            assert "story_pkey" in plan and "Seq Scan on story" not in plan, (name, plan)


def test_batches_in_slices(story: Index, database: Database, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(documents, "_ELSEWHERE_AT_ONCE", 3)
    story.create_profile("sliced", RECIPE)
    assert pairs(Index(database, "story", "sliced")) == pairs(Index(database, "story", "default"))
