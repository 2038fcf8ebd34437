"""The database driver below the store; other rooms take their connections and engines from here."""

from sqlalchemy import Connection, Engine

__all__ = ["Connection", "Engine"]
