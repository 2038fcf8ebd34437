"""The embedded PostgreSQL: a private server, started on demand, stopped when idle."""

from nearsim_db.store.embedded.embedded import ServerStatus, ensure_running, free_bytes, start, status, stop

__all__ = ["ServerStatus", "ensure_running", "free_bytes", "start", "status", "stop"]
