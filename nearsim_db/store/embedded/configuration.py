"""Settings of the embedded server: for bulk loads, one large join, and a single machine."""

import os
from collections.abc import Mapping
from pathlib import Path

_MEBIBYTE = 1024 * 1024


def embedded_settings() -> dict[str, str]:
    """Return the settings of the embedded server, by PostgreSQL's names; none trades durability for speed.

    It is reached only through its socket and has no replicas: hence no listening address, and minimal write-ahead log,
    which omits the rows of a table loaded in the transaction that creates it.
    """
    memory = memory_bytes() // _MEBIBYTE
    settings = {
        "listen_addresses": "",
        "unix_socket_permissions": "0700",
        "max_connections": "100",
        "jit": "off",
        "work_mem": "64MB",
        # An ingest keeps the ids of the file in a temporary table: a million with their index take 100 MB.
        "temp_buffers": "64MB",
        "maintenance_work_mem": f"{min(max(memory // 16, 64), 512)}MB",
        "shared_buffers": f"{min(max(memory // 8, 128), 1024)}MB",
        "effective_cache_size": f"{max(memory // 2, 256)}MB",
        "random_page_cost": "1.1",
        "max_wal_size": "4GB",
        "checkpoint_timeout": "15min",
        "wal_level": "minimal",
        "max_wal_senders": "0",
        "log_line_prefix": "%m [%p] ",
        "log_checkpoints": "off",
        # The user is named nearsim: without this, tables created by hand would go into the schema of that name.
        "search_path": "public",
        # Failing statements may contain whole documents.
        "log_min_error_statement": "panic",
    }
    if _shared_memory_is_small():
        settings["dynamic_shared_memory_type"] = "sysv"
    return settings


def memory_bytes() -> int:
    """Return the memory of the machine, or of the container if its limit is smaller."""
    total = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    try:
        return min(total, int(Path("/sys/fs/cgroup/memory.max").read_text(encoding="ascii")))
    except (OSError, ValueError):
        return total


def _shared_memory_is_small() -> bool:
    """Whether /dev/shm is too small for parallel joins: container engines default to 64 MB."""
    try:
        state = os.statvfs("/dev/shm")
    except OSError:
        return True
    return state.f_blocks * state.f_frsize < 1024 * _MEBIBYTE


def render_configuration(settings: Mapping[str, str]) -> str:
    """Return a PostgreSQL configuration file with these settings."""
    lines = [
        "# Written by nearsim at each start; put your own settings into postgresql.conf, below the include."
    ]
    for name, value in sorted(settings.items()):
        quoted = value.replace("\\", "\\\\").replace("'", "''")
        lines.append(f"{name} = '{quoted}'")
    return "\n".join([*lines, ""])
