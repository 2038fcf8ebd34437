"""Where band rows are: on this server, or on the nodes of a Citus cluster whose coordinator it is; moves."""

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

_SHARDS_PER_NODE = (
    4  # unless set: as many nodes can be in use later, and each shard of a bucket costs a look-up time
)


@dataclass(frozen=True, slots=True)
class Node:
    """A node of the cluster that may hold shards."""

    host: str
    port: int
    is_active: bool


@dataclass(frozen=True, slots=True)
class NodeState:
    """What a node holds: shards of band rows, their bytes with indexes, and their rows as of their last ANALYZE.

    `prepared_transactions`, `connections` and `wal_level` are its settings. `obstacle` is why it does not answer, empty
    if it does; if it does not, the figures are 0.
    """

    host: str
    port: int
    obstacle: str
    shards: int = 0
    bytes: int = 0
    rows: int = 0
    prepared_transactions: int = 0
    connections: int = 0
    wal_level: str = ""


@dataclass(frozen=True, slots=True)
class ShardState:
    """Catalog state of a shard; `indexes` are the columns of the usable ones. A missing shard has none."""

    name: str
    node: str
    is_there: bool
    is_logged: bool = False
    indexes: Sequence[str] = ()
    unusable: Sequence[str] = ()


def read_shards(connection: Connection, table: str = f"{SCHEMA}.band") -> list[ShardState]:
    """Return the state of each shard of a table. Raises DatabaseError if a node does not answer."""

    def make(shard_id: int, node: str, answers: bool, result: str) -> ShardState:
        name = f"{table.partition('.')[2]}_{shard_id}"
        if not answers:
            raise DatabaseError(f"the shard {name} on {node} cannot be read: {result}")
        return ShardState(name, node, True, **json.loads(result)) if result else ShardState(name, node, False)

    return run(connection, "read_shards", table=table).all(make)


def restore_shards(connection: Connection, leaves: Leaves) -> None:
    """Create the missing shards of a generation's band table, empty. Raises DatabaseError if that fails.

    Those of the table that small generations share get their index as well.
    """
    if leaves.are_shared:
        failed = run(connection, "restore_shared_shards").rows()
    else:
        failed = run(connection, "restore_shards", leaves, leaf=leaves.qualified("band")).rows()
    for node, reason in failed:
        raise DatabaseError(f"a missing shard of {leaves.name('band')} on {node} cannot be created: {reason}")


def use_connections(connection: Connection) -> None:
    """Let long statements of this transaction run on several shards of a node at the same time."""
    run(connection, "use_connections")


def await_writers(connection: Connection) -> None:
    """Wait until all commits to the band table that generations share are on their nodes. Raises DatabaseError."""
    for shard_id, reason in run(connection, "await_band_writers").rows():
        raise DatabaseError(f"the shard {shard_id} of band rows cannot be locked: {reason}")


def measure_nodes(connection: Connection) -> list[NodeState]:
    """Return the state of each node of the cluster."""

    def make(host: str, port: int, answers: bool, result: str) -> NodeState:
        return NodeState(host, port, "", **json.loads(result)) if answers else NodeState(host, port, result)

    return run(connection, "measure_nodes").all(make)


def list_missing_members(connection: Connection) -> dict[str, list[str]]:
    """Return by node, as host:port, the commands that create roles and memberships of this server that it lacks."""
    here = run(connection, "list_members").value()
    needed = [command for is_needed, command in here if is_needed]
    asked = {"command": statement("list_members").as_string()}
    missing = {}
    for host, port, answers, result in run(connection, "ask_nodes", **asked).rows():
        there = {command for _, command in json.loads(result or "[]")} if answers else set(needed)
        missing[f"{host}:{port}"] = [command for command in needed if command not in there]
    return missing


def find_refusal(connection: Connection) -> str:
    """Return why a node refuses the current user, with the node's name; empty if none does."""
    inner = connection.backend
    try:
        with inner.transaction():
            inner.execute(statement("reach_nodes"))
    except psycopg.OperationalError as error:
        return error.diag.message_primary or str(error)
    return ""


def is_distributed(connection: Connection) -> bool:
    """Whether the band rows of new generations are on the nodes of a cluster."""
    return bool(run(connection, "is_distributed").value())


def list_nodes(connection: Connection) -> list[Node]:
    """Return the nodes of the cluster that may hold shards; none without Citus."""
    if run(connection, "find_citus").value() is None:
        return []
    return run(connection, "list_nodes").all(Node)


def has_shards(connection: Connection, table: str = f"{SCHEMA}.band") -> bool:
    """Whether a table exists and is on the nodes."""
    if run(connection, "find_citus").value() is None:
        return False
    return bool(run(connection, "has_shards", table=table).value())


def distribute_leaf(connection: Connection, leaves: Leaves) -> None:
    """Move a generation's empty band table to the nodes, in the transaction that created it."""
    close_policy(connection, leaves.table("band"))
    run(connection, "distribute_band_leaf", leaf=leaves.qualified("band"))


def close_policy(connection: Connection, table: sql.Identifier) -> None:
    """Let no reader of an isolated collection read a table of band rows."""
    for name in ("drop_band_policy", "create_closed_policy"):
        run(connection, statement(name, table=table))


def distribute(connection: Connection, wanted: CitusUse, report: Callable[[str], None]) -> bool:
    """Distribute band rows over the nodes of the cluster, if that is wanted; return whether they are.

    `auto` does it on a coordinator with nodes. Those of a restored dump are distributed over the nodes of this
    cluster, or kept on this server. Raises DatabaseError if it is wanted, or was done, and cannot be.
    """
    was_distributed = is_distributed(connection)
    is_restored = was_distributed and not has_shards(connection)  # from a dump of a cluster's database
    if was_distributed and not is_restored:
        if wanted == "no":
            raise DatabaseError(
                "the band rows are on the nodes of a Citus cluster already; leave out --citus no"
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
    """Return why the band rows cannot be distributed, empty if they can."""
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
    run(connection, "keep_from_nodes")
    for node, reason in run(connection, "join_owners_on_nodes").rows():
        raise DatabaseError(f"{node} refuses this user's membership of nearsim_admin: {reason}")
    for one in _PARENT_AND_SHARED:
        close_policy(connection, one)
    for file in files("nearsim_db.store").joinpath("citus/functions").iterdir():
        connection.execute(file.read_bytes())
    run(connection, "set_distributed")
    run(connection, "set_shard_count", per_node=_SHARDS_PER_NODE)
    run(connection, "distribute_bands")
    # A new database has no generations, but a restored one has: partitions follow their parent, new ones do not.
    standalone = [
        Leaves(number, distributed=True) for number in run(connection, "list_local_leaves").values()
    ]
    for leaves in standalone:
        distribute_leaf(connection, leaves)
    for table in (f"{SCHEMA}.band", *(leaves.qualified("band") for leaves in standalone)):
        run(connection, "truncate_local_rows", table=table)


def _keep_here(connection: Connection) -> None:
    """Make a restored schema that of one server."""
    for one in _PARENT_AND_SHARED:
        run(connection, statement("drop_band_policy", table=one))
    schema = baseline.migrations_directory() / "schema"
    replaced = files("nearsim_db.store").joinpath("citus/functions").iterdir()
    for file in (*(f"functions/{one.name}" for one in replaced), "roles/band_policy.sql"):
        connection.execute((schema / file).read_bytes())
    for number in run(connection, "list_band_leaves").values():
        leaves = Leaves(number)
        run(connection, statement("drop_band_policy", table=leaves.table("band")))
        run(connection, "grant_leaf_rights", leaves)
    run(connection, "set_local")
