"""The database URL: the one given, else that of the embedded server, started on demand."""

import re

from nearsim_db.store import embedded
from nearsim_db.store.settings import from_environment


def database_url() -> str:
    """Return the URL of the database; starts the embedded server if NEARSIM_DATABASE_URL is not set.

    Raises ServerError if the embedded server is needed and cannot be started.
    """
    settings = from_environment()
    return settings.database_url or embedded.ensure_running(settings.home)


def psql_url() -> str:
    """Return the URL for psql, without a Python driver in the scheme."""
    return re.sub(r"^(postgres(?:ql)?)\+\w+:", r"\1:", database_url())
