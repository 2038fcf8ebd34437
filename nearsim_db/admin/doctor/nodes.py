"""Checks of the nodes of a Citus cluster that hold band rows."""

from collections.abc import Iterator

from nearsim_db.admin.doctor.findings import Finding
from nearsim_db.errors import count_of
from nearsim_db.store.citus import placement
from nearsim_db.store.citus.placement import NodeState
from nearsim_db.store.driver import Connection

_MEBIBYTE = 1024**2


def check(connection: Connection) -> Iterator[Finding]:
    """Report each node, if band rows are distributed."""
    if placement.is_distributed(connection):
        yield from (_check_node(one) for one in placement.measure_nodes(connection))


def _check_node(node: NodeState) -> Finding:
    name = f"{node.host}:{node.port}"
    if node.obstacle:
        advice = "start it, or see its log; until then nothing is indexed or looked up"
        return Finding("node", "problem", f"{name} does not answer: {node.obstacle}", advice)
    finding = (
        f"{name}: {count_of(node.shards, 'shard')}, {node.bytes / _MEBIBYTE:,.0f} MB, "
        f"about {count_of(node.rows, 'band row')}"
    )
    if node.prepared_transactions < node.connections:
        advice = "set max_prepared_transactions to at least max_connections, and restart it"
        allowed = count_of(node.prepared_transactions, "prepared transaction")
        return Finding(
            "node",
            "problem",
            f"{finding}; commits over several nodes fail beyond its limit of {allowed}",
            advice,
        )
    return Finding("node", "ok", finding)
