"""Band rows on the nodes of a Citus cluster."""

from nearsim_db.store.citus import placement
from nearsim_db.store.citus.placement import Wanted
from nearsim_db.store.database import Database


def distribute(database: Database, wanted: Wanted) -> bool:
    """Keep band rows on the nodes of the cluster, if that is wanted; return whether they are.

    `auto` does so on the coordinator of a cluster with nodes. Raises DatabaseError if it is wanted and cannot be done.
    """
    with database.transaction() as connection:
        return placement.distribute(connection, wanted)
