"""The database driver on which the store is built; other packages import Connection and Engine from here."""

from nearsim_db.store.driver.connection import Connection
from nearsim_db.store.driver.engine import Engine

__all__ = ["Connection", "Engine"]
