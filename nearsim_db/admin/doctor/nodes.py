"""Checks of the nodes of a Citus cluster that hold band rows."""

from collections.abc import Iterator, Sequence

from nearsim_db.admin.doctor.findings import Finding
from nearsim_db.errors import count_of
from nearsim_db.store.citus import placement
from nearsim_db.store.citus.placement import NodeState
from nearsim_db.store.driver import Connection

_MEBIBYTE = 1024**2


def check(connection: Connection) -> Iterator[Finding]:
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
