"""Checks of the PostgreSQL server: version and settings."""

from collections.abc import Iterator

from nearsim_db.admin.doctor.findings import Finding
from nearsim_db.store.driver import Connection, server_settings
from nearsim_db.store.driver.engine import NEWEST_MAJOR, OLDEST_MAJOR, check_server

# Settings whose defaults are too small for bulk loads and one large join: the least in bytes, and what to set.
_SIZES = {
    "work_mem": (32 * 1024**2, "64MB"),
    "shared_buffers": (256 * 1024**2, "an eighth of the memory, at most 1GB"),
    "max_wal_size": (2 * 1024**3, "4GB"),
}


def check_version(connection: Connection) -> Iterator[Finding]:
    """Report the server's version. Raises DatabaseError if it is too old."""
    major = check_server(connection)
    version = server_settings.server_version(connection)
    supported = f"nearsim supports {OLDEST_MAJOR} to {NEWEST_MAJOR}"
    yield Finding("database", "ok", f"PostgreSQL {version}; {supported}")
    if major > NEWEST_MAJOR:
        yield Finding("server version", "warning", f"PostgreSQL {major} is newer than the versions tested")


def check_standby(connection: Connection) -> Iterator[Finding]:
    """Report that the server is a standby, and what does not work or is not checked there."""
    if server_settings.is_standby(connection):
        finding = (
            "this server is a standby: commands that write, workers and nearsim reindex diff need its primary"
        )
        yield Finding("standby", "ok", f"{finding}; whether builds and workers run there is not checked")


def check_settings(connection: Connection, *, embedded: bool) -> Iterator[Finding]:
    """Check settings that make builds faster, which a standby has none of; the embedded server's are nearsim's own."""
    are_used = not (embedded or server_settings.is_standby(connection))
    for setting in server_settings.read_settings(connection, ["jit", *_SIZES]):
        if setting.name == "jit":
            yield Finding("jit", "ok", f"{setting.shown} in nearsim's connections")
            continue
        least, better = _SIZES[setting.name]
        if not are_used or setting.size is None or setting.size >= least:
            yield Finding(setting.name, "ok", setting.shown)
        else:
            where = (
                f"ALTER ROLE CURRENT_USER SET {setting.name} = '{better}'"
                if setting.by_session
                else f"ALTER SYSTEM SET {setting.name}, or ask the server's administrator"
            )
            yield Finding(setting.name, "warning", setting.shown, f"builds are faster with {better}: {where}")
