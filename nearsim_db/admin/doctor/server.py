"""Checks of the server: version, settings, standby, and the nodes of a Citus cluster that hold band rows."""

from collections.abc import Iterator, Sequence

from nearsim_db.admin.doctor.findings import Finding
from nearsim_db.errors import count_of
from nearsim_db.store.citus import placement
from nearsim_db.store.citus.placement import NodeState
from nearsim_db.store.driver import Connection, server_settings
from nearsim_db.store.driver.engine import NEWEST_MAJOR, OLDEST_MAJOR, check_server

_MEBIBYTE = 1024**2
# Settings whose defaults are too small for bulk loads and one large join: the least in bytes, and what to set.
_SIZES = {
    "work_mem": (32 * 1024**2, "64MB"),
    "shared_buffers": (256 * 1024**2, "an eighth of the memory, at most 1GB"),
    "max_wal_size": (2 * 1024**3, "4GB"),
}


def check_version(connection: Connection) -> Iterator[Finding]:
    """Report the server's version. Raises DatabaseError if it is too old."""
    major = check_server(connection)
    version = server_settings.server_version(connection)
    supported = f"nearsim supports {OLDEST_MAJOR} to {NEWEST_MAJOR}"
    yield Finding("database", "ok", f"PostgreSQL {version}; {supported}")
    if major > NEWEST_MAJOR:
        yield Finding("server version", "warning", f"PostgreSQL {major} is newer than the versions tested")


def check_standby(connection: Connection) -> Iterator[Finding]:
    """Report that the server is a standby, and what does not work or is not checked there."""
    if server_settings.is_standby(connection):
        finding = (
            "this server is a standby: commands that write, workers and nearsim reindex diff need its primary"
        )
        yield Finding("standby", "ok", f"{finding}; whether builds and workers run there is not checked")


def check_settings(connection: Connection, *, embedded: bool) -> Iterator[Finding]:
    """Check settings that make builds faster, which a standby has none of; the embedded server's are nearsim's own."""
    are_used = not (embedded or server_settings.is_standby(connection))
    for setting in server_settings.read_settings(connection, ["jit", *_SIZES]):
        if setting.name == "jit":
            yield Finding("jit", "ok", f"{setting.shown} in nearsim's connections")
            continue
        least, better = _SIZES[setting.name]
        if not are_used or setting.size is None or setting.size >= least:
            yield Finding(setting.name, "ok", setting.shown)
        else:
            where = (
                f"ALTER ROLE CURRENT_USER SET {setting.name} = '{better}'"
                if setting.by_session
                else f"ALTER SYSTEM SET {setting.name}, or ask the server's administrator"
            )
            yield Finding(setting.name, "warning", setting.shown, f"builds are faster with {better}: {where}")


def check_nodes(connection: Connection) -> Iterator[Finding]:
    """Report each node, if band rows are distributed."""
    if not placement.is_distributed(connection):
        return
    nodes = placement.measure_nodes(connection)
    refusal = placement.find_refusal(connection) if any(one.obstacle for one in nodes) else ""
    missing = placement.list_missing_members(connection)
    for one in nodes:
        name = f"{one.host}:{one.port}"
        if one.obstacle:
            yield _unreachable(name, refusal if name in refusal else one.obstacle)
        else:
            yield _check_node(name, one)
            yield from _check_members(name, missing.get(name, []))


def _unreachable(name: str, reason: str) -> Finding:
    advice = (
        "start it, or see its log; where it asks for a password, the coordinator needs that of this user in "
        "pg_dist_authinfo (docs/scale-out.md#passwords); until then nothing is indexed or looked up"
    )
    return Finding("node", "problem", f"{name} does not answer: {reason}", advice)


def _check_members(name: str, missing: Sequence[str]) -> Iterator[Finding]:
    if missing:
        finding = f"{name} lacks roles or memberships of the coordinator: what these users do fails there"
        yield Finding("node roles", "warning", finding, f"as a superuser on that node: {'; '.join(missing)}")


def _check_node(name: str, node: NodeState) -> Finding:
    finding = (
        f"{name}: {count_of(node.shards, 'shard')}, {node.bytes / _MEBIBYTE:,.0f} MB, "
        f"about {count_of(node.rows, 'band row')}"
    )
    if node.prepared_transactions < node.connections:
        advice = "set max_prepared_transactions to at least max_connections, and restart it"
        allowed = count_of(node.prepared_transactions, "prepared transaction")
        wrong = f"{finding}; commits over several nodes fail beyond its limit of {allowed}"
        return Finding("node", "problem", wrong, advice)
    if node.wal_level != "logical":
        advice = (
            "set wal_level = logical, and restart it; or move shards with shard_transfer_mode 'block_writes'"
        )
        wrong = f"{finding}; with wal_level {node.wal_level} its shards cannot move while they are written to"
        return Finding("node", "warning", wrong, advice)
    return Finding("node", "ok", finding)
