"""The embedded PostgreSQL: a server of one's own, started on demand, stopped when nobody uses it."""

from nearsim_db.store.embedded.embedded import ServerStatus, ensure_running, start, status, stop

__all__ = ["ServerStatus", "ensure_running", "start", "status", "stop"]
