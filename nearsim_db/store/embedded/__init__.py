"""The embedded PostgreSQL: a private server that is started on demand and stopped when it is idle."""

from nearsim_db.store.embedded.embedded import ServerStatus, ensure_running, free_bytes, start, status, stop

__all__ = ["ServerStatus", "ensure_running", "free_bytes", "start", "status", "stop"]
