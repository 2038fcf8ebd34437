"""Tables attached with a collection for each value of a field, such as the tenant."""

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from hashlib import md5

import pytest

from nearsim_db import Index
from nearsim_db.admin import attach
from nearsim_db.errors import ConflictError, FingerprintError, InputError, NotFoundError
from nearsim_db.indexing import build
from nearsim_db.indexing.attached_sweep import sweep
from nearsim_db.indexing.drop_generation import delete_collection
from nearsim_db.similarity.recipe import Recipe, override
from nearsim_db.store.attached import attachments
from nearsim_db.store.attached.tables import Columns
from nearsim_db.store.database import Database
from nearsim_db.worker.worker import Worker
from tests.builders.command_line import CommandLine
from tests.builders.followed_table import CATALOG, words
from tests.builders.workers import Application, application, ask, wait_until

TABLE = """
CREATE TABLE story (id bigint PRIMARY KEY, tenant text, body text, deleted_at timestamptz);
CREATE INDEX ON story (tenant, id)
"""
COLUMNS = Columns("id", "body", where="deleted_at IS NULL", collection_field="tenant")
TENANTS = ("acme", " outer ", "", None)  # one cannot be the name of a collection as it is, two name none
ODD = ("Ünïted 조합", "'; DROP TABLE story --\\", "100 %s {x}", "tab\there")
RECIPE = override(Recipe(), ["match.threshold=0.5", "sketch.k=32"])


@pytest.fixture
def app(where: str) -> Iterator[Application]:
    """An application with two rows of one family for each tenant."""
    with application(where) as connection:
        connection.execute(TABLE.encode())
        for number, tenant in enumerate(TENANTS * 2):
            write(connection, number, tenant)
        yield connection


def write(app: Application, number: int, tenant: str | None) -> None:
    app.execute("INSERT INTO story VALUES (%s, %s, %s)", (number, tenant, words(0, number)))


def attached(database: Database, columns: Columns = COLUMNS) -> Index:
    attach.attach_table(database, "story", columns)
    index = Index(database, "story")
    attach.ingest_table(index, "default", RECIPE)
    return index


def documents(app: Application) -> set[tuple[object, ...]]:
    """The collection and the id of each document."""
    found = app.execute(
        "SELECT name, external_id FROM nearsim.document JOIN nearsim.collection USING (collection_id)"
    )
    return set(found.fetchall())


def name(tenant: object) -> str:
    """The collection that rows of a tenant belong to."""
    if not tenant:
        return "story"
    value = str(tenant)
    usable = value.strip() == value and value.isprintable()
    return f"story:{value if usable else md5(value.encode()).hexdigest()}"


def expected(app: Application) -> set[tuple[object, ...]]:
    found = app.execute("SELECT tenant, id FROM story WHERE deleted_at IS NULL").fetchall()
    return {(name(tenant), str(number)) for tenant, number in found}


def pairs(database: Database) -> set[tuple[str, frozenset[str]]]:
    """The pairs of all collections."""
    return {
        (one.name, frozenset((pair.left, pair.right)))
        for one in database.collections()
        for pair in Index(database, one.name).pairs()
    }


def test_each_tenant_has_a_collection(app: Application, database: Database) -> None:
    for number, tenant in enumerate(ODD * 2, 8):
        write(app, number, tenant)
    index = attached(database)
    assert documents(app) == expected(app)
    assert len(database.collections()) == 7 and index.sweep().collections == 7
    every = {one for found in pairs(database) for one in found[1]}
    assert every == {str(number) for number in range(16)}
    # Rows without a tenant, empty or NULL, are compared with each other.
    assert len(pairs(database)) == 6 + 6
    assert ask(app, "SELECT count(*) FROM pg_trigger WHERE tgrelid = CAST('story' AS regclass)") == 2
    assert ask(app, "SELECT count(*) FROM nearsim.change WHERE doc_id IS NULL") == 0


@pytest.mark.each_major
@pytest.mark.slow("ten changes, each followed by a worker of its own")
def test_rows_come_and_move_and_go(app: Application, database: Database) -> None:
    attached(database)
    for change in (
        "INSERT INTO story SELECT 100 + at, 'new', body FROM story, generate_series(1, 2) AS at WHERE id = 0",
        "UPDATE story SET tenant = 'acme' WHERE id = 101",
        "UPDATE story SET tenant = NULL WHERE id = 0",
        "UPDATE story SET tenant = 'never seen', body = 'Another text altogether' WHERE tenant IS NULL",
        "UPDATE story SET tenant = 'moved', id = id + 1000 WHERE id IN (1, 2)",
        "UPDATE story SET deleted_at = now() WHERE id = 3",
        "UPDATE story SET deleted_at = NULL, tenant = 'acme' WHERE id = 3",
        "DELETE FROM story WHERE tenant = 'new'",
        "BEGIN; UPDATE story SET tenant = 'between' WHERE id = 4; UPDATE story SET tenant = 'z' WHERE id = 4; COMMIT",
        "TRUNCATE story",
    ):
        app.execute(change.encode())
        assert Worker(database.engine.url).drain() == 0
        assert documents(app) == expected(app), change
    assert "story:between" not in {one.name for one in database.collections()}


@pytest.mark.slow("several builds")
def test_what_triggers_missed_is_found_by_a_sweep(app: Application, database: Database) -> None:
    index = attached(database)
    app.execute("ALTER TABLE story DISABLE TRIGGER ALL; UPDATE story SET tenant = 'hidden' WHERE id < 2")
    app.execute("DELETE FROM story WHERE id = 5; ALTER TABLE story ENABLE TRIGGER ALL")
    found = index.sweep()
    assert (found.new, found.gone) == (2, 3)
    assert documents(app) == expected(app)
    delete_collection(database, "story:hidden")
    index.sweep()
    assert documents(app) == expected(app)


@pytest.mark.slow("eight writers")
def test_writers_of_one_new_tenant_make_one_collection(
    app: Application, database: Database, where: str
) -> None:
    attached(database)

    def insert(number: int) -> None:
        with application(where) as own:
            write(own, 100 + number, f"fresh {number % 2}")
        Worker(where).drain()

    with ThreadPoolExecutor(4) as pool:
        list(pool.map(insert, range(8)))
    assert Worker(where).drain() == 0
    assert documents(app) == expected(app)
    assert len(list(Index(database, "story:fresh 0").clusters())) == 1


def test_a_forged_trigger_makes_no_collection(app: Application, database: Database) -> None:
    attached(database)
    parent = ask(app, "SELECT collection_id FROM nearsim.collection WHERE name = 'story'")
    app.execute("CREATE TABLE forged (id bigint, tenant text)")
    app.execute(
        f"CREATE TRIGGER forged AFTER INSERT ON forged FOR EACH ROW EXECUTE FUNCTION "
        f"nearsim.capture_source('{parent}', 'id', 'tenant')".encode()
    )
    app.execute("INSERT INTO forged VALUES (0, 'forged')")
    assert Worker(database.engine.url).drain() == 0
    assert documents(app) == expected(app) and len(database.collections()) == 3


def test_a_sweep_of_the_table_is_one_of_all_collections(app: Application, database: Database) -> None:
    attached(database)
    with database.transaction() as connection:
        assert attachments.find_due_sweeps(connection) == []
        assert len({one.swept_at for one in attachments.list_attachments(connection, of_values=True)}) == 1


def test_a_worker_leaves_a_collection_whose_documents_are_still_written(
    app: Application, database: Database
) -> None:
    attach.attach_table(database, "story", COLUMNS)
    index, worker = Index(database, "story"), Worker(database.engine.url)
    index.create_profile("default", RECIPE)
    with worker._session(lasts=False) as session:

        def work() -> None:
            session.run_once()

        sweep(database.engine, index._collection_id(), meanwhile=work)
    assert documents(app) == expected(app)
    assert ask(app, "SELECT count(*) FROM nearsim.generation WHERE state <> 'building'") == 0
    worker.drain()
    assert {collection for collection, _ in pairs(database)} == {name(tenant) for tenant in TENANTS}


@pytest.mark.slow("several builds")
@pytest.mark.parametrize("keep", [True, False])
def test_detaching_leaves_no_triggers_behind(app: Application, database: Database, *, keep: bool) -> None:
    before = ask(app, CATALOG)
    attached(database)
    had = documents(app)
    assert len(attach.detach(database, "story", keep=keep).collections) == 3
    assert ask(app, CATALOG) == before
    assert documents(app) == (had if keep else set())
    assert ask(app, "SELECT count(*) FROM nearsim.document WHERE body IS NULL") == 0
    assert len(database.collections()) == (3 if keep else 0)


@pytest.mark.slow("several builds")
def test_attaching_again_changes_all_collections(app: Application, database: Database) -> None:
    attached(database)
    app.execute(
        "ALTER TABLE story ADD COLUMN visible boolean NOT NULL DEFAULT true; UPDATE story SET visible = id < 4"
    )
    attached(database, Columns("id", "body", where="visible", collection_field="tenant"))
    assert {number for _, number in documents(app)} == {str(number) for number in range(4)}
    (one,) = attach.list_attachments(database)
    assert one.columns.given() == {
        **{"id": "id", "text": "body", "where": "visible", "collection_field": "tenant"}
    }


def test_what_is_refused(app: Application, database: Database) -> None:
    app.execute("ALTER TABLE story ADD COLUMN other text, ADD COLUMN at timestamptz")
    for field, reason in (("other", "CREATE INDEX ON public.story"), ("at", "is of type timestamp")):
        with pytest.raises(InputError, match=reason):
            attached(database, Columns("id", "body", collection_field=field))
    attached(database)
    for call in (
        lambda: attached(database, Columns("id", "body")),
        lambda: attach.attach_table(database, "story", COLUMNS, "story:acme"),
        lambda: attach.detach(database, "story:acme", keep=True),
    ):
        with pytest.raises(ConflictError, match=r"--collection-field|one value"):
            call()
    app.execute("ALTER TABLE story RENAME COLUMN tenant TO customer")
    write(app, 100, "acme")
    with pytest.raises(NotFoundError, match=r"'tenant' does not exist.*nearsim table detach story"):
        Index(database, "story:acme").build()


def test_a_warning_names_its_collection_once(app: Application, database: Database) -> None:
    app.execute("DELETE FROM story")
    app.execute(
        "INSERT INTO story SELECT at, 'tenant ' || at % 2, 'only ' || at FROM generate_series(1, 100) AS at"
    )
    warned = [warning.partition(": ")[0] for warning in attached(database).warnings]
    assert sorted(warned) == [f"profile default of collection story:tenant {at}" for at in range(2)]


@pytest.mark.slow("hundreds of collections")
def test_hundreds_of_tenants(app: Application, database: Database) -> None:
    app.execute(
        "INSERT INTO story SELECT 1000 + at, 'tenant ' || at % 200, body FROM generate_series(1, 600) AS at, story "
        "WHERE story.id = 0"
    )
    index = attached(database)
    assert documents(app) == expected(app)
    assert index.sweep().new == 0
    app.execute("UPDATE story SET tenant = 'tenant ' || (id + 1) % 200 WHERE id > 1000")
    assert Worker(database.engine.url).drain() == 0
    assert documents(app) == expected(app)


ATTACH = (
    *("table", "attach"),
    "public.story",
    *("--id", "id", "--text", "body", "--where", "deleted_at IS NULL", "--collection-field", "tenant"),
)


def write_many(app: Application) -> None:
    """Thirty tenants with four rows of one family each."""
    for number in range(100, 220):
        write(app, number, f"tenant {number % 30}")


@pytest.mark.slow("kills a process")
def test_a_killed_attach_continues_with_the_other_collections(
    app: Application, database: Database, where: str
) -> None:
    nearsim = CommandLine({"NEARSIM_DATABASE_URL": where})
    write_many(app)
    with nearsim.started(*ATTACH) as process:
        wait_until(app, "SELECT EXISTS (SELECT FROM nearsim.generation WHERE state = 'live')")
        process.kill()
        process.wait()
    nearsim.succeed(*ATTACH)
    assert documents(app) == expected(app)
    assert ask(app, "SELECT count(*) FROM nearsim.generation WHERE state <> 'live'") == 0

    continued = pairs(database)
    nearsim.succeed(*ATTACH, "--collection", "whole")
    others = pairs(database) - continued
    assert {(collection.replace("whole", "story", 1), ids) for collection, ids in others} == continued


def test_an_index_of_few_rows_is_built_in_one_transaction(app: Application, database: Database) -> None:
    write_many(app)
    attached(database)
    # A build in stages records how long each took.
    assert ask(app, "SELECT count(*) FROM nearsim.generation WHERE figures ? 'seconds'") == 0
    assert len({collection for collection, _ in pairs(database)}) == 30 + 3


def test_an_index_of_many_rows_is_built_by_stages_after_the_small_ones(
    app: Application, database: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(build, "MAX_SMALL_BUILD_ATTACHED_DOCUMENTS", 3)
    attached(database)
    by_stages = ask(app, "SELECT array_agg(collection) FROM nearsim.generations WHERE figures ? 'seconds'")
    assert by_stages == ["story"]
    assert len(pairs(database)) == 1 + 1 + 6


def test_an_error_of_a_build_ends_the_pass_and_the_next_continues_it(
    app: Application, database: Database
) -> None:
    attach.attach_table(database, "story", COLUMNS)
    index = Index(database, "story")
    index.create_profile("default", RECIPE)
    sweep(database.engine, index._collection_id())
    fingerprint = ask(app, "SELECT min(fingerprint) FROM nearsim.generation")
    change = (
        b"UPDATE nearsim.generation SET fingerprint = %s "
        b"WHERE generation_id = (SELECT max(generation_id) FROM nearsim.generation)"
    )

    app.execute(change, ("00" * 16,))
    with pytest.raises(FingerprintError):
        index.sweep()
    app.execute(change, (fingerprint,))
    index.sweep()
    assert len(pairs(database)) == 1 + 1 + 6


def test_a_text_that_changed_unseen_before_the_build_is_indexed_as_it_is_now(
    app: Application, database: Database
) -> None:
    attach.attach_table(database, "story", COLUMNS)
    index = Index(database, "story")
    index.create_profile("default", RECIPE)
    sweep(database.engine, index._collection_id())
    app.execute(
        "ALTER TABLE story DISABLE TRIGGER ALL; UPDATE story SET body = 'changed unseen' WHERE id = 2"
    )
    app.execute("ALTER TABLE story ENABLE TRIGGER ALL")
    index.build()
    assert Worker(database.engine.url).drain() == 0
    assert index.stats()["indexed"] == index.stats()["documents"]
    assert "2" not in {one.right for one in index.pairs()} | {one.left for one in index.pairs()}
