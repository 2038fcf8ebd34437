"""The placement of band rows: on this server, or on the nodes of the Citus cluster whose coordinator it is."""

import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from importlib.resources import files

import psycopg
from psycopg import sql

from nearsim_db.errors import DatabaseError
from nearsim_db.records import CitusUse, GenerationId
from nearsim_db.store.driver import Connection
from nearsim_db.store.driver.statements import SCHEMA, Leaves, run, statement
from nearsim_db.store.schema import baseline

# Shards for each node, unless citus.shard_count is set. The cluster can later grow to this many times its nodes, but
# each shard makes lookups slower.
_SHARDS_PER_NODE = 4


@dataclass(frozen=True, slots=True)
class Node:
    """A node of the cluster on which shards may be placed."""

    host: str
    port: int
    is_active: bool


@dataclass(frozen=True, slots=True)
class NodeState:
    """The band rows and settings of a node."""

    host: str
    port: int
    obstacle: str  # why the node does not answer, in which case all numbers are 0; empty if it answers
    shards: int = 0  # number of shards of band rows
    bytes: int = 0  # size of the shards, including indexes
    rows: int = 0  # number of band rows as of the last ANALYZE
    prepared_transactions: int = 0  # the setting max_prepared_transactions
    connections: int = 0  # the setting max_connections
    wal_level: str = ""


@dataclass(frozen=True, slots=True)
class ShardState:
    """The state of a shard in the catalog of its node."""

    name: str
    node: str  # host:port
    is_there: bool  # whether the table of the shard exists
    is_logged: bool = False
    indexes: Sequence[str] = ()  # the columns of each usable index
    unusable: Sequence[str] = ()  # the columns of each unusable index


def read_shards(connection: Connection, table: str = f"{SCHEMA}.band") -> list[ShardState]:
    """Return the state of each shard of a table. Raises DatabaseError if a node does not answer."""

    def make(shard_id: int, node: str, answers: bool, result: str) -> ShardState:
        name = f"{table.partition('.')[2]}_{shard_id}"
        if not answers:
            raise DatabaseError(f"the shard {name} on {node} cannot be read: {result}")
        return ShardState(name, node, True, **json.loads(result)) if result else ShardState(name, node, False)

    return run(connection, "read_shards", table=table).all(make)


def restore_shards(connection: Connection, leaves: Leaves) -> None:
    """Create the missing shards of a generation's band table, without rows. Raises DatabaseError if this fails.

    Shards of the table that small generations share also get their index.
    """
    if leaves.are_shared:
        failures = run(connection, "restore_shared_shards").rows()
    else:
        failures = run(connection, "restore_shards", leaves, leaf=leaves.qualified("band")).rows()
    for node, reason in failures:
        raise DatabaseError(f"a missing shard of {leaves.name('band')} on {node} cannot be created: {reason}")


def use_connections(connection: Connection) -> None:
    """Allow long statements of this transaction to run on several shards of a node at the same time."""
    run(connection, "use_connections")


def await_writers(connection: Connection) -> None:
    """Wait until the transactions that are now writing to the shared band table have ended on the nodes.

    Raises DatabaseError if a shard cannot be locked.
    """
    for shard_id, reason in run(connection, "await_band_writers").rows():
        raise DatabaseError(f"the shard {shard_id} of band rows cannot be locked: {reason}")


def measure_nodes(connection: Connection) -> list[NodeState]:
    """Return the state of each node of the cluster."""

    def make(host: str, port: int, answers: bool, result: str) -> NodeState:
        return NodeState(host, port, "", **json.loads(result)) if answers else NodeState(host, port, result)

    return run(connection, "measure_nodes").all(make)


def list_missing_members(connection: Connection) -> dict[str, list[str]]:
    """Return, for each node (host:port), the commands that create the roles and memberships missing there."""
    local = run(connection, "list_members").value()
    needed = [command for is_needed, command in local if is_needed]

    missing = {}
    rows = run(connection, "ask_nodes", command=statement("list_members").as_string()).rows()
    for host, port, answers, result in rows:
        existing = {command for _, command in json.loads(result or "[]")} if answers else set(needed)
        missing[f"{host}:{port}"] = [command for command in needed if command not in existing]
    return missing


def find_refusal(connection: Connection) -> str:
    """Return why a node refuses the current user, with the node's name; empty if all nodes accept the user."""
    backend = connection.backend
    try:
        with backend.transaction():
            backend.execute(statement("reach_nodes"))
    except psycopg.OperationalError as error:
        return error.diag.message_primary or str(error)
    return ""


def is_distributed(connection: Connection) -> bool:
    """Whether the band rows of new generations are on the nodes of a cluster."""
    return bool(run(connection, "is_distributed").value())


def list_nodes(connection: Connection) -> list[Node]:
    """Return the nodes of the cluster on which shards may be placed; none without Citus."""
    if run(connection, "find_citus").value() is None:
        return []
    return run(connection, "list_nodes").all(Node)


def has_shards(connection: Connection, table: str = f"{SCHEMA}.band") -> bool:
    """Whether a table exists and is distributed over the nodes."""
    if run(connection, "find_citus").value() is None:
        return False
    return bool(run(connection, "has_shards", table=table).value())


def distribute_leaf(connection: Connection, leaves: Leaves) -> None:
    """Distribute a generation's empty band table over the nodes, in the transaction that created it."""
    close_policy(connection, leaves.table("band"))
    run(connection, "distribute_band_leaf", leaf=leaves.qualified("band"))


def close_policy(connection: Connection, table: sql.Identifier) -> None:
    """Replace the policy on a table of band rows by a policy that lets nobody read under isolation.

    Citus does not support the subquery of the usual policy.
    """
    for name in ("drop_band_policy", "create_closed_policy"):
        run(connection, statement(name, table=table))


def distribute(connection: Connection, wanted: CitusUse, report: Callable[[str], None]) -> bool:
    """Distribute band rows over the nodes of the cluster if this is wanted; return whether they are distributed.

    `auto` distributes them if this server is a coordinator with nodes. Band rows of a restored dump are distributed
    over the nodes of this cluster, or kept on this server. Raises DatabaseError for `yes` if they cannot be
    distributed, and for `no` if they are distributed already.
    """
    was_distributed = is_distributed(connection)
    # A database that was restored from the dump of a cluster has the cluster's settings, but no shards.
    is_restored = was_distributed and not has_shards(connection)
    if was_distributed and not is_restored:
        if wanted == "no":
            raise DatabaseError(
                "the band rows are already on the nodes of a Citus cluster; leave out --citus no"
            )
        return True

    obstacle = "it is not wanted" if wanted == "no" else _obstacle(connection)
    if obstacle and wanted == "yes":
        raise DatabaseError(f"the band rows cannot be distributed: {obstacle}")

    if is_restored:
        report(f"band rows restored from a Citus cluster are {'kept here' if obstacle else 'distributed'}")
    if not obstacle:
        _distribute(connection)
    elif is_restored:
        _keep_here(connection)
    return not obstacle


def _obstacle(connection: Connection) -> str:
    """Return why the band rows cannot be distributed; empty if they can be."""
    nodes = list_nodes(connection)
    if not nodes:
        return (
            "this database has no Citus with nodes: CREATE EXTENSION citus, then SELECT citus_add_node(...)"
        )

    if not run(connection, "is_coordinator").value():
        return "this server is a node of the cluster; use its coordinator"
    if local := run(connection, "list_local_generations").values():
        names = ", ".join(map(str, local))
        return (
            f"generations {names} have band rows on this server; drop their profiles, or use a new database"
        )
    if run(connection, "find_isolation").value():
        return "collections are kept apart (nearsim access isolation), which needs policies that Citus does not have"
    return ""


_PARENT_AND_SHARED = (sql.Identifier(SCHEMA, "band"), Leaves(GenerationId(1)).table("band"))


def _distribute(connection: Connection) -> None:
    # The nodes need only the table and its owner.
    run(connection, "keep_from_nodes")
    for node, reason in run(connection, "join_owners_on_nodes").rows():
        raise DatabaseError(f"{node} refuses this user's membership of nearsim_admin: {reason}")

    # Replace the policies and functions that Citus cannot run.
    for table in _PARENT_AND_SHARED:
        close_policy(connection, table)
    for file in files("nearsim_db.store").joinpath("citus/functions").iterdir():
        connection.execute(file.read_bytes())

    run(connection, "set_distributed")
    run(connection, "set_shard_count", per_node=_SHARDS_PER_NODE)
    run(connection, "distribute_bands")

    # A restored database has generations. Tables that are attached to the parent are distributed together with it,
    # tables that are not attached are distributed here.
    standalone = [
        Leaves(generation_id, distributed=True)
        for generation_id in run(connection, "list_local_leaves").values()
    ]
    for leaves in standalone:
        distribute_leaf(connection, leaves)
    for name in (f"{SCHEMA}.band", *(leaves.qualified("band") for leaves in standalone)):
        run(connection, "truncate_local_rows", table=name)


def _keep_here(connection: Connection) -> None:
    """Give a restored schema the policies and functions for band rows on this server."""
    for table in _PARENT_AND_SHARED:
        run(connection, statement("drop_band_policy", table=table))

    schema = baseline.migrations_directory() / "schema"
    replaced = files("nearsim_db.store").joinpath("citus/functions").iterdir()
    for name in (*(f"functions/{file.name}" for file in replaced), "roles/band_policy.sql"):
        connection.execute((schema / name).read_bytes())

    for generation_id in run(connection, "list_band_leaves").values():
        leaves = Leaves(generation_id)
        run(connection, statement("drop_band_policy", table=leaves.table("band")))
        run(connection, "grant_leaf_rights", leaves)
    run(connection, "set_local")
