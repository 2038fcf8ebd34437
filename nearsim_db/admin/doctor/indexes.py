"""The doctor's checks of indexes and of the workers that maintain them: builds, queue, reindexes, heartbeats."""

from collections.abc import Iterator, Sequence

from nearsim_db.admin.doctor.installation import Finding
from nearsim_db.indexing import profiles
from nearsim_db.messages import count_of, suggested_command
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

_MAX_WAITING_SECONDS = 60.0
_MAX_COLLECTIONS_PER_CHECK = 20
_MAX_SAMPLED_INDEXES = 20


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
    """Report collections with an unfinished build, or with documents that are not indexed yet."""
    by_worker = (
        "a running worker does it unless it serves another collection"
        if leases.count_responsive(connection)
        else "start a worker: nearsim worker"
    )
    collections = collection_rows.list_unfinished(connection)

    findings = []
    for collection in collections[:_MAX_COLLECTIONS_PER_CHECK]:
        unfinished = _list_unfinished(connection, collection)
        # A session that builds the collection or writes to it has taken this lock.
        if unfinished and is_lock_taken(connection, Lock.BUILD, collection.collection_id):
            busy = f"collection {collection.name} is being built or written to"
            findings.append(Finding("builds", "ok", busy))
        elif unfinished:
            remedy = f"{by_worker}; or: {suggested_command('build', collection.name)}"
            finding = f"collection {collection.name}: {', '.join(unfinished)}"
            findings.append(Finding("builds", "warning", finding, remedy))
    yield from findings or [Finding("builds", "ok", "none unfinished")]
    yield from _count_unexamined("builds", collections, by_worker)


def _count_unexamined(check: str, collections: Sequence[Collection], advice: str) -> Iterator[Finding]:
    """Report the number of further collections, which a check does not examine one by one."""
    if (unexamined := len(collections) - _MAX_COLLECTIONS_PER_CHECK) > 0:
        yield Finding(check, "warning", f"{count_of(unexamined, 'more collection')} like these", advice)


def _list_unfinished(connection: Connection, collection: Collection) -> list[str]:
    """Return phrases about what is still to be indexed in a collection."""
    generations = generation_rows.list_generations(connection, collection.collection_id)
    live = [
        generation
        for generation in generations
        if generation.state == "live" and not profiles.is_refused(generation)
    ]
    queued = sum(generation.tables(connection).work.count()[0] for generation in live)
    unfinished = [
        f"profile {generation.profile} is not built"
        for generation in generations
        if generation.is_first_build
    ]
    return [*unfinished, f"{count_of(queued, 'document')} to be indexed"] if queued else unfinished


def _check_profiles(connection: Connection) -> Iterator[Finding]:
    unindexed = collection_rows.list_unindexed(connection)
    for collection in unindexed[:_MAX_COLLECTIONS_PER_CHECK]:
        finding = f"collection {collection.name} has documents but no profile"
        advice = f"create one: {suggested_command('build', collection.name)}"
        yield Finding("profiles", "warning", finding, advice)
    yield from _count_unexamined(
        "profiles", unindexed, "create one for each: nearsim build --collection NAME"
    )


def _check_shingles(connection: Connection) -> Iterator[Finding]:
    """Check the length of shingles in the newest indexes.

    Indexes of attached tables are skipped, because this user might not have the right to read the rows.
    """
    findings = []
    for generation_id in generation_rows.find_newest_live(connection, _MAX_SAMPLED_INDEXES):
        generation = generation_rows.get_generation(connection, generation_id)
        is_attached = attachments.find_attachment(connection, generation.collection_id) is not None
        if is_attached or profiles.is_refused(generation):
            continue

        profile = restore_for_reading(
            generation.recipe, generation.fingerprint, generation.bands, generation.rows
        )
        # NumPy encodes a few hundred texts in less time than numba takes to start.
        if (short := profiles.warn_of_index(connection, generation, profile, "numpy")) is not None:
            finding = f"profile {generation.profile} of collection {generation.collection}: {short}"
            longer = generation.advice("reindex start", "--set", "shingle.k=K")
            findings.append(Finding("shingles", "warning", finding, longer))
    yield from findings or [Finding("shingles", "ok", "none too short for the documents")]


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
    findings = [
        Finding("attached tables", "problem", f"not indexed: {problem}")
        for problem in obstacles.list_problems(connection).values()
    ]
    findings += [
        Finding("attached tables", "problem", str(lost), lost.remedy)
        for lost in attachments.count_lost_texts(connection)
    ]

    for attachment in attached:
        if attachment.mark_trouble is not None:
            # Further lines of an error of the server quote the row.
            failure = attachment.mark_trouble.partition("\n")[0]
            finding = f"collection {attachment.collection}: the last pass of marks failed: {failure}"
            findings.append(
                Finding(
                    "attached tables", "warning", finding, "correct the column; a worker then tries again"
                )
            )
        if attachment.detaching:
            table = attachment.table or "a dropped table"
            finding = f"collection {attachment.collection} is being detached from {table}"
            detach = attachments.detach_command(attachment.collection)
            findings.append(Finding("attached tables", "warning", finding, detach))
    if attached and not findings:
        findings.append(Finding("attached tables", "ok", f"{len(attached)} followed"))
    yield from findings


def _check_set_aside(connection: Connection) -> Finding:
    set_aside = backlog.read_backlog(connection, None).set_aside
    if not set_aside:
        return Finding("set aside", "ok", "no documents")
    advice = "nearsim work list --failed shows why; then: nearsim work retry, or discard"
    return Finding("set aside", "warning", f"{count_of(set_aside, 'document')} could not be indexed", advice)


def _check_reindexes(connection: Connection) -> Iterator[Finding]:
    warnings = [
        (
            f"the build of {_describe(generation)} was left behind",
            generation_states.remedy(generation, attended=False),
        )
        for generation in generation_states.find_unattended(connection)
    ]
    warnings += [
        (
            f"{_describe(generation)} ({generation.state}) cannot be written to by this version",
            profiles.remedy(generation),
        )
        for generation in profiles.list_refused(connection)
    ]
    by_worker = "a worker drops it when no session reads it, or:"
    warnings += [
        (
            f"{_describe(generation)} is still to be dropped",
            f"{by_worker} {generation.advice('reindex drop')}",
        )
        for generation in generation_rows.list_generations(connection, only="dropping")
    ]

    for finding, advice in warnings:
        yield Finding("reindexes", "warning", finding, advice)
    if not warnings:
        yield Finding("reindexes", "ok", "none left behind")


def _describe(generation: Generation) -> str:
    return (
        f"generation {generation.generation_id} of profile {generation.profile} of collection "
        f"{generation.collection}"
    )


def _check_workers(connection: Connection) -> Iterator[Finding]:
    """Report workers without a heartbeat, and whether the responsive workers keep up with the queue."""
    refused = [generation.generation_id for generation in profiles.list_refused(connection)]
    queued = backlog.read_backlog(connection, None, refused)
    is_late = queued.oldest_seconds >= _MAX_WAITING_SECONDS
    counts = {"change": queued.changes, "document": sum(queued.by_stage.values())}
    shown = " and ".join(count_of(number, noun) for noun, number in counts.items() if number)
    age = f", the oldest for {queued.oldest_seconds:.0f} s" if is_late else ""
    waiting = f"{shown} waiting{age}" if shown else ""

    workers = leases.list_workers(connection)
    for worker in workers:
        if not worker.is_responsive:
            finding = f"{worker.worker} has sent no heartbeat for {worker.silent_seconds:.0f} s"
            advice = (
                "it is stopped or in a long batch: see its log, or end it; other workers take its work after "
                f"{leases.SILENCE_SECONDS:.0f} s without a heartbeat"
            )
            yield Finding("workers", "warning", f"{finding}; {waiting}" if waiting else finding, advice)

    responsive = [worker.worker for worker in workers if worker.is_responsive]
    running = f"{len(responsive)} running: {', '.join(responsive)}"
    if responsive and waiting and is_late:
        advice = "see its log and: nearsim work list; start more workers, also for other collections than it serves"
        yield Finding("workers", "warning", f"{running}; {waiting}", advice)
    elif responsive:
        yield Finding("workers", "ok", running)
    elif not workers and waiting and not generation_rows.is_fresh(connection):
        finding = f"{waiting}, but no worker is running"
        yield Finding("workers", "warning", finding, "nearsim worker, or nearsim build")
    elif not workers:
        yield Finding("workers", "ok", "none running")
