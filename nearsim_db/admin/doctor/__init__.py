"""The doctor: checks of the installation, the server, the schema and the indexes, each with advice."""

from collections.abc import Callable, Iterator

from nearsim_db.admin.doctor import indexes, installation, server
from nearsim_db.admin.doctor.installation import Finding, Verdict
from nearsim_db.errors import DatabaseError, NearsimError
from nearsim_db.store.driver import Connection
from nearsim_db.store.driver.driver_errors import translate_errors
from nearsim_db.store.driver.engine import open_engine
from nearsim_db.store.settings import Settings, database_url, from_environment

__all__ = ["Finding", "Verdict", "examine", "examine_schema"]


def examine() -> list[Finding]:
    """Run all checks; starts the embedded server if it is configured."""
    settings = from_environment()
    return [
        *installation.check_versions(),
        installation.check_backend(settings),
        *installation.check_embedded_server(settings),
        *_check_database(settings, _check_connected),
    ]


def examine_schema() -> list[Finding]:
    """Check the schema only; starts the embedded server if it is configured."""
    return list(_check_database(from_environment(), _check_schema))


def _check_database(
    settings: Settings, check: Callable[[Connection, bool], Iterator[Finding]]
) -> Iterator[Finding]:
    try:
        engine = open_engine(database_url())
    except NearsimError as error:
        yield Finding("database", "problem", str(error))
        return

    try:
        with translate_errors(), engine.connect() as connection:
            yield from check(connection, settings.database_url is None)
    except DatabaseError as error:
        yield Finding("database", "problem", str(error))
    finally:
        engine.dispose()


def _check_connected(connection: Connection, embedded: bool) -> Iterator[Finding]:
    yield from server.check_version(connection)
    yield from server.check_standby(connection)
    yield from server.check_settings(connection, embedded=embedded)

    # Later checks read tables, which requires rights and a schema that this version supports.
    rights = server.check_rights(connection)
    yield rights
    if rights.verdict == "problem":
        return
    revision = server.check_revision(connection, embedded=embedded)
    yield revision
    if revision.verdict == "problem" or not server.is_installed(connection):
        return

    yield from server.check_roles(connection)
    yield from server.check_nodes(connection)
    if server.sees_all_collections(connection):
        yield from indexes.check(connection)
    yield server.check_objects(connection)


def _check_schema(connection: Connection, embedded: bool) -> Iterator[Finding]:
    revision = server.check_revision(connection, embedded=embedded)
    yield revision
    if revision.verdict != "problem" and server.is_installed(connection):
        yield server.check_objects(connection)
