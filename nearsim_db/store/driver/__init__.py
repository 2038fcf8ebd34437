"""The database driver below the store; other packages import Connection and Engine from here."""

from sqlalchemy import Connection, Engine

__all__ = ["Connection", "Engine"]
