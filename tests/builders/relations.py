"""Tables and views by name: a generation's own tables are in nearsim_index, everything else in nearsim."""

import re

from psycopg import sql


def is_partition(name: str) -> bool:
    """Whether it is a generation's own table, as band_7."""
    return re.search(r"_\d+$", name) is not None


def identifier(name: str) -> sql.Identifier:
    """The table or view with its schema."""
    return sql.Identifier("nearsim_index" if is_partition(name) else "nearsim", name)
