"""Where the database is: the URL that was given, else the embedded server, started on demand."""

import re

from nearsim_db.store import embedded
from nearsim_db.store.settings import from_environment


def database_url() -> str:
    """The URL of the database to use; starts the embedded server when no NEARSIM_DATABASE_URL is set.

    Raises ServerError when the embedded server is needed and cannot be had.
    """
    settings = from_environment()
    return settings.database_url or embedded.ensure_running(settings.home)


def psql_url() -> str:
    """The same as psql takes it: without the name of a Python driver in the scheme."""
    return re.sub(r"^(postgres(?:ql)?)\+\w+:", r"\1:", database_url())
