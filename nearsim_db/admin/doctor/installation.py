"""The doctor's findings, and its checks of this machine: versions, back end, embedded server, disk."""

import importlib.metadata
import platform
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from nearsim_db.errors import NearsimError
from nearsim_db.similarity.backend import resolve as resolve_backend
from nearsim_db.store import embedded
from nearsim_db.store.settings import Settings

_GIBIBYTE = 1024**3
_MIN_FREE_BYTES = 2 * _GIBIBYTE
_MIN_FREE_BYTES_TO_WORK = 256 * 1024**2

Verdict = Literal["ok", "warning", "problem"]


@dataclass(frozen=True, slots=True)
class Finding:
    """The result of a check."""

    check: str  # what was checked
    verdict: Verdict
    finding: str
    advice: str = ""  # what to do, unless the verdict is ok


def check_versions() -> Iterator[Finding]:
    """Report the versions of nearsim, Python and NumPy."""
    yield Finding("nearsim", "ok", importlib.metadata.version("nearsim-db"))
    yield Finding("Python", "ok", platform.python_version())
    yield Finding("NumPy", "ok", importlib.metadata.version("numpy"))


def check_backend(settings: Settings) -> Finding:
    """Report the back end that signs documents."""
    try:
        numba = importlib.metadata.version("numba")
    except importlib.metadata.PackageNotFoundError:
        advice = "signing is about ten times faster with it: pip install 'nearsim-db[fast]'"
        return Finding("back end", "warning", "NumPy; numba is not installed", advice)
    try:
        chosen = resolve_backend(settings.backend)
    except NearsimError as error:
        return Finding("back end", "problem", str(error))
    shown = {"numba": f"numba {numba}", "numpy": "NumPy, set by NEARSIM_BACKEND"}
    return Finding("back end", "ok", f"{shown[chosen]}, {settings.threads} threads")


def check_embedded_server(settings: Settings) -> Iterator[Finding]:
    """Check the embedded server's programs, data and disk, if it is used."""
    if settings.database_url is not None:
        yield Finding("embedded server", "ok", "not used: NEARSIM_DATABASE_URL is set")
        return
    try:
        state = embedded.status(settings.home)
    except NearsimError as error:
        yield Finding("embedded server", "problem", str(error))
        return

    data_major = _data_major(state.data_directory)
    program_major = state.version.partition(".")[0]
    # PostgreSQL opens only data of its own major version.
    if data_major is not None and data_major != program_major:
        yield Finding(
            "embedded server",
            "problem",
            f"its programs are of PostgreSQL {program_major}, the data in {state.data_directory} of PostgreSQL "
            f"{data_major}",
            f"dump the data with a server of PostgreSQL {data_major} and restore them, or move the folder away",
        )
        return

    disk = _check_disk(state.data_directory)
    kept = "runs until: nearsim server stop" if state.kept else "stops when unused"
    running = f"running, {kept}" if state.running else "not running, starts on demand"
    verdict: Verdict = "problem" if disk.verdict == "problem" else "ok"
    shown = running if verdict == "ok" else "no room on its disk"
    yield Finding("embedded server", verdict, f"PostgreSQL {state.version}, {shown}", disk.advice)
    yield disk


def _data_major(data_directory: Path) -> str | None:
    """Return the major version of the data; None if there are no data yet or they cannot be read."""
    try:
        return (data_directory / "PG_VERSION").read_text(encoding="ascii").strip()
    except (FileNotFoundError, PermissionError):
        return None


def _check_disk(data_directory: Path) -> Finding:
    free = embedded.free_bytes(data_directory)
    verdict: Verdict = (
        "problem" if free < _MIN_FREE_BYTES_TO_WORK else "warning" if free < _MIN_FREE_BYTES else "ok"
    )
    advice = "" if verdict == "ok" else "free some space, or set NEARSIM_HOME to a folder on a larger disk"
    return Finding("free disk", verdict, f"{free / _GIBIBYTE:,.1f} GiB at {data_directory}", advice)
