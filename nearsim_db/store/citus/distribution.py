"""Moving band rows to the nodes of a Citus cluster, and back to this server after a dump was restored."""

from collections.abc import Callable
from importlib.resources import files
from typing import Literal

from psycopg import sql

from nearsim_db.errors import DatabaseError
from nearsim_db.store.citus import placement
from nearsim_db.store.driver import Connection
from nearsim_db.store.driver.engine import driver
from nearsim_db.store.driver.rows import fetch_rows, fetch_value, fetch_values
from nearsim_db.store.driver.statements import SCHEMA, Leaves, statement
from nearsim_db.store.schema import baseline

Wanted = Literal["auto", "yes", "no"]


def distribute(connection: Connection, wanted: Wanted, report: Callable[[str], None]) -> bool:
    """Distribute band rows over the nodes of the cluster, if that is wanted; return whether they are.

    `auto` does it on a coordinator with nodes. Those of a restored dump are distributed over the nodes of this
    cluster, or kept on this server. Raises DatabaseError if it is wanted, or was done, and cannot be.
    """
    is_restored = placement.is_misplaced(connection)
    if placement.is_distributed(connection) and not is_restored:
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
    nodes = placement.list_nodes(connection)
    if not nodes:
        return (
            "this database has no Citus with nodes: CREATE EXTENSION citus, then SELECT citus_add_node(...)"
        )
    if not fetch_value(connection, statement("is_coordinator")):
        return "this server is a node of the cluster; use its coordinator"
    if local := fetch_values(connection, statement("list_local_generations")):
        names = ", ".join(map(str, local))
        return (
            f"generations {names} have band rows on this server; drop their profiles, or use a new database"
        )
    if fetch_value(connection, statement("find_isolation")):
        return (
            "collections are kept apart (nearsim db isolation), which needs policies that Citus does not have"
        )
    return ""


def _distribute(connection: Connection) -> None:
    inner = driver(connection)
    inner.execute(statement("keep_from_nodes"))
    for node, reason in fetch_rows(connection, statement("join_owners_on_nodes")):
        raise DatabaseError(f"{node} refuses this user's membership of nearsim_admin: {reason}")
    placement.close_policy(connection, sql.Identifier(SCHEMA, "band"))
    for file in files("nearsim_db.store").joinpath("citus/functions").iterdir():
        inner.execute(file.read_bytes())
    inner.execute(statement("set_distributed"))
    inner.execute(statement("distribute_bands"))
    # A new database has no generations, but a restored one has: partitions follow their parent, new ones do not.
    standalone = [
        Leaves(number, distributed=True)
        for number in fetch_values(connection, statement("list_local_leaves"))
    ]
    for leaves in standalone:
        placement.distribute_leaf(connection, leaves)
    for table in (f"{SCHEMA}.band", *(leaves.qualified("band") for leaves in standalone)):
        inner.execute(statement("truncate_local_rows"), {"table": table})


def _keep_here(connection: Connection) -> None:
    """Make a restored schema that of one server."""
    inner = driver(connection)
    inner.execute(statement("drop_band_policy", table=sql.Identifier(SCHEMA, "band")))
    schema = baseline.migrations_directory() / "schema"
    replaced = files("nearsim_db.store").joinpath("citus/functions").iterdir()
    for file in (*(f"functions/{one.name}" for one in replaced), "roles/band_policy.sql"):
        inner.execute((schema / file).read_bytes())
    for number in fetch_values(connection, statement("list_band_leaves")):
        leaves = Leaves(number)
        inner.execute(statement("drop_band_policy", table=leaves.table("band")))
        inner.execute(statement("grant_leaf_rights", leaves))
    inner.execute(statement("set_local"))
