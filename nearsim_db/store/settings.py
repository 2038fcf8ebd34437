"""Settings from environment variables, which no other module reads, and settings of nearsim's own processes."""

import gc
import logging
import os
import sys
from dataclasses import dataclass
from pathlib import Path

from nearsim_db.errors import NearsimError, ServerError

BUILD_MEGABYTES = 256


@dataclass(frozen=True, slots=True)
class Settings:
    """Settings from environment variables; the docstring of each field names its variable."""

    database_url: str | None
    """`NEARSIM_DATABASE_URL`: address of the database, such as `postgresql://user@host/name`. Without it the
    embedded server is used."""
    given_home: str | None
    """`NEARSIM_HOME`: folder of the embedded server's data. By default a folder in the user's data folder, or
    /var/lib/nearsim for root."""
    backend: str | None
    """`NEARSIM_BACKEND`: the library that signs texts, numba or numpy; the results are equal. By default numba if it is
    installed."""
    threads: int
    """`NEARSIM_THREADS`: number of threads that sign and compare texts in a process. By default the number of cores."""
    keep_events: str = "7 days"
    """`NEARSIM_KEEP_EVENTS`: age at which workers delete events, such as 7 days (the default), or none."""
    build_megabytes: int = BUILD_MEGABYTES
    """`NEARSIM_BUILD_MEMORY`: megabytes of band keys and sketches that each process of a build keeps in memory, by
    default 256; what exceeds this is written to temporary files."""

    @property
    def home(self) -> Path:
        """Return the folder of the embedded server's data. Raises ServerError if the user has no home folder."""
        try:
            return Path(self.given_home).expanduser().absolute() if self.given_home else _default_home()
        except RuntimeError as error:
            raise ServerError(
                f"user {os.geteuid()} has no home folder for the data of the embedded server; set NEARSIM_HOME to a "
                "folder, or NEARSIM_DATABASE_URL to a server of yours"
            ) from error


def from_environment() -> Settings:
    """Read NEARSIM_DATABASE_URL, _HOME, _BACKEND (numba or numpy), _THREADS, _KEEP_EVENTS and _BUILD_MEMORY."""
    return Settings(
        database_url=os.environ.get("NEARSIM_DATABASE_URL") or None,
        given_home=os.environ.get("NEARSIM_HOME"),
        backend=_backend(),
        threads=_threads(os.environ.get("NEARSIM_THREADS")),
        keep_events=os.environ.get("NEARSIM_KEEP_EVENTS") or "7 days",
        build_megabytes=_whole_number("NEARSIM_BUILD_MEMORY", BUILD_MEGABYTES, minimum=0),
    )


def encoding_from_environment() -> tuple[str | None, int]:
    """Read NEARSIM_BACKEND and NEARSIM_THREADS, for commands that need neither a database nor a home folder."""
    return _backend(), _threads(os.environ.get("NEARSIM_THREADS"))


def database_url() -> str:
    """Return the URL of the database; start the embedded server if NEARSIM_DATABASE_URL is not set.

    Raises ServerError if the embedded server is needed and cannot be started.
    """
    from nearsim_db.store import embedded

    settings = from_environment()
    return settings.database_url or embedded.ensure_running(settings.home)


def _backend() -> str | None:
    backend = os.environ.get("NEARSIM_BACKEND") or None
    if backend not in (None, "numba", "numpy"):
        raise NearsimError(f"NEARSIM_BACKEND is {backend!r}; use numba or numpy")
    return backend


def _default_home() -> Path:
    """Return the platform's user data folder, or for root a system folder, because the server runs as another user."""
    if os.geteuid() == 0:
        return Path("/var/lib/nearsim")
    from platformdirs import user_data_path

    return user_data_path("nearsim")


def wants_colours() -> bool:
    """Whether colours may be used on a terminal: NO_COLOR is not set, and TERM does not name a plain terminal."""
    return not os.environ.get("NO_COLOR") and os.environ.get("TERM") not in ("dumb", "unknown")


def _whole_number(name: str, default: int, *, minimum: int) -> int:
    value = os.environ.get(name)
    if value is None:
        return default
    if not value.isdecimal() or int(value) < minimum:
        raise NearsimError(f"{name} is {value!r}; use a whole number from {minimum}")
    return int(value)


def _threads(value: str | None) -> int:
    if value is None:
        return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    if not value.isdecimal() or int(value) < 1:
        raise NearsimError(f"NEARSIM_THREADS is {value!r}; use a whole number from 1")
    return int(value)


# Documents, rows and modules leave little cyclic garbage, yet with Python's default of 700, collecting it takes 5 % of
# the processor time of a dedupe of 20,000 documents. Most commands create 50,000 to 100,000 objects, nearly all of them
# by imports; a collection that examines 50,000 objects takes 12 ms.
_NEW_OBJECTS_BEFORE_COLLECTION = 250_000


def prepare_process() -> None:
    """Collect cyclic garbage less often, silence log messages of the driver, and prevent a useless import."""
    gc.set_threshold(_NEW_OBJECTS_BEFORE_COLLECTION)
    # If scipy is installed, numba imports it for linear algebra, which no kernel uses. This takes half of numba's
    # start.
    sys.modules["scipy"] = None  # type: ignore[assignment]
    # psycopg logs failures while it cleans up after an error, although the error itself is reported. Without a handler,
    # Python prints such messages: "error ignored terminating <psycopg.Copy [BAD] ...>".
    logging.getLogger("psycopg").addHandler(logging.NullHandler())
