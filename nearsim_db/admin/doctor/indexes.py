"""Checks of the indexes and of the workers that keep them: builds, queue, reindexes, heartbeats."""

from collections.abc import Iterator, Sequence

from nearsim_db.admin.doctor.installation import Finding
from nearsim_db.errors import count_of, suggested_command
from nearsim_db.indexing import profiles
from nearsim_db.similarity.profile import restore_for_reading
from nearsim_db.store.access import collection_rows
from nearsim_db.store.access.collection_rows import Collection
from nearsim_db.store.attached import attachments, obstacles
from nearsim_db.store.driver import Connection
from nearsim_db.store.driver.locks import Lock, is_lock_taken
from nearsim_db.store.driver.server_settings import is_standby
from nearsim_db.store.generations import generation_rows, generation_states
from nearsim_db.store.generations.generation_rows import Generation
from nearsim_db.store.work import backlog, leases

_LONG_SECONDS = 60.0
_MOST_SHOWN = 20  # of findings of one kind, where each is of another collection
_MOST_SAMPLED = 20  # indexes whose texts are read


def check(connection: Connection) -> Iterator[Finding]:
    """Run all checks of the indexes."""
    yield from _check_builds(connection)
    yield from _check_profiles(connection)
    yield from _check_shingles(connection)
    if not is_standby(connection):
        yield from _check_workers(connection)
    yield from _check_triggers(connection)
    yield from _check_attached(connection)
    yield _check_set_aside(connection)
    yield from _check_reindexes(connection)


def _check_builds(connection: Connection) -> Iterator[Finding]:
    by_worker = (
        "a running worker does it unless it serves another collection"
        if leases.count_responsive(connection)
        else "start a worker: nearsim worker"
    )
    unfinished = collection_rows.list_unfinished(connection)
    found = []
    for collection in unfinished[:_MOST_SHOWN]:
        left = _unfinished(connection, collection)
        if left and is_lock_taken(connection, Lock.BUILD, collection.collection_id):
            busy = f"collection {collection.name} is being built or written to"
            found.append(Finding("builds", "ok", busy))
        elif left:
            remedy = f"{by_worker}; or: {suggested_command('build', collection.name)}"
            finding = f"collection {collection.name}: {', '.join(left)}"
            found.append(Finding("builds", "warning", finding, remedy))
    yield from found or [Finding("builds", "ok", "none unfinished")]
    yield from _more("builds", unfinished, by_worker)


def _more(check: str, collections: Sequence[Collection], advice: str) -> Iterator[Finding]:
    """Report the number of collections that are not shown."""
    if (left := len(collections) - _MOST_SHOWN) > 0:
        yield Finding(check, "warning", f"{count_of(left, 'more collection')} like these", advice)


def _unfinished(connection: Connection, collection: Collection) -> list[str]:
    existing = generation_rows.list_generations(connection, collection.collection_id)
    live = [one for one in existing if one.state == "live" and not profiles.is_refused(one)]
    queued = sum(one.tables(connection).work.count()[0] for one in live)
    unfinished = [f"profile {one.profile} is not built" for one in existing if one.is_first_build]
    return [*unfinished, f"{count_of(queued, 'document')} to be indexed"] if queued else unfinished


def _check_profiles(connection: Connection) -> Iterator[Finding]:
    unindexed = collection_rows.list_unindexed(connection)
    for one in unindexed[:_MOST_SHOWN]:
        finding = f"collection {one.name} has documents but no profile"
        yield Finding("profiles", "warning", finding, f"create one: {suggested_command('build', one.name)}")
    yield from _more("profiles", unindexed, "create one for each: nearsim build --collection NAME")


def _check_shingles(connection: Connection) -> Iterator[Finding]:
    """Check the length of shingles in the newest indexes, except for attached tables, whose rows this user might not
    read.
    """
    found = []
    newest = generation_rows.find_newest_live(connection, _MOST_SAMPLED)
    for one in [generation_rows.get_generation(connection, id) for id in newest]:
        is_attached = attachments.find_attachment(connection, one.collection_id) is not None
        if is_attached or profiles.is_refused(one):
            continue
        profile = restore_for_reading(one.recipe, one.fingerprint, one.bands, one.rows)
        # A few hundred texts take NumPy less time than numba takes to start.
        if (short := profiles.warn_of_index(connection, one, profile, "numpy")) is not None:
            finding = f"profile {one.profile} of collection {one.collection}: {short}"
            longer = one.advice("reindex start", "--set", "shingle.k=K")
            found.append(Finding("shingles", "warning", finding, longer))
    yield from found or [Finding("shingles", "ok", "none too short for the documents")]


def _check_triggers(connection: Connection) -> Iterator[Finding]:
    if idle := backlog.list_idle_triggers(connection):
        finding = f"nearsim.document has {', '.join(idle)} disabled or missing: changes are not indexed"
        advice = (
            "ALTER TABLE nearsim.document ENABLE TRIGGER USER; then, for each collection: "
            "nearsim verify-index --all --repair"
        )
        yield Finding("triggers", "problem", finding, advice)


def _check_attached(connection: Connection) -> Iterator[Finding]:
    attached = attachments.list_attachments(connection)
    found = [
        Finding("attached tables", "problem", f"not indexed: {problem}")
        for problem in obstacles.list_problems(connection).values()
    ]
    found += [
        Finding("attached tables", "problem", str(lost), lost.remedy)
        for lost in attachments.count_lost_texts(connection)
    ]
    for one in attached:
        if one.detaching:
            finding = f"collection {one.collection} is being detached from {one.table or 'a dropped table'}"
            detach = attachments.detach_command(one.collection)
            found.append(Finding("attached tables", "warning", finding, detach))
    if attached:
        yield from found or [Finding("attached tables", "ok", f"{len(attached)} followed")]
    else:
        yield from found


def _check_set_aside(connection: Connection) -> Finding:
    set_aside = backlog.read_backlog(connection, None).set_aside
    if not set_aside:
        return Finding("set aside", "ok", "no documents")
    advice = "nearsim work list --failed shows why; then: nearsim work retry, or discard"
    return Finding("set aside", "warning", f"{count_of(set_aside, 'document')} could not be indexed", advice)


def _check_reindexes(connection: Connection) -> Iterator[Finding]:
    found = [
        (f"the build of {_describe(one)} was left behind", generation_states.remedy(one, attended=False))
        for one in generation_states.find_unattended(connection)
    ]
    found += [
        (f"{_describe(one)} ({one.state}) cannot be written to by this version", profiles.remedy(one))
        for one in profiles.list_refused(connection)
    ]
    by_worker = "a worker drops it when no session reads it, or:"
    found += [
        (f"{_describe(one)} is still to be dropped", f"{by_worker} {one.advice('reindex drop')}")
        for one in generation_rows.list_generations(connection, only="dropping")
    ]
    for finding, advice in found:
        yield Finding("reindexes", "warning", finding, advice)
    if not found:
        yield Finding("reindexes", "ok", "none left behind")


def _describe(one: Generation) -> str:
    return f"generation {one.generation_id} of profile {one.profile} of collection {one.collection}"


def _check_workers(connection: Connection) -> Iterator[Finding]:
    """Report the workers: those without a heartbeat, and whether the responsive ones keep up."""
    refused = [one.generation_id for one in profiles.list_refused(connection)]
    queued = backlog.read_backlog(connection, None, refused)
    is_late = queued.oldest_seconds >= _LONG_SECONDS
    counts = {"change": queued.changes, "document": sum(queued.by_stage.values())}
    shown = " and ".join(count_of(number, noun) for noun, number in counts.items() if number)
    age = f", the oldest for {queued.oldest_seconds:.0f} s" if is_late else ""
    waiting = f"{shown} waiting{age}" if shown else ""
    holders = leases.list_workers(connection)
    for one in holders:
        if not one.is_responsive:
            finding = f"{one.worker} has sent no heartbeat for {one.silent_seconds:.0f} s"
            advice = (
                "it is stopped or in a long batch: see its log, or end it; other workers take its work after "
                f"{leases.SILENCE_SECONDS:.0f} s without a heartbeat"
            )
            yield Finding("workers", "warning", f"{finding}; {waiting}" if waiting else finding, advice)
    responsive = [one.worker for one in holders if one.is_responsive]
    running = f"{len(responsive)} running: {', '.join(responsive)}"
    if responsive and waiting and is_late:
        advice = "see its log and: nearsim work list; start more workers, also for other collections than it serves"
        yield Finding("workers", "warning", f"{running}; {waiting}", advice)
    elif responsive:
        yield Finding("workers", "ok", running)
    elif not holders and waiting and not generation_rows.is_fresh(connection):
        finding = f"{waiting}, but no worker is running"
        yield Finding("workers", "warning", finding, "nearsim worker, or nearsim build")
    elif not holders:
        yield Finding("workers", "ok", "none running")
