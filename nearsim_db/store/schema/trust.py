"""Refusal to run what roles that are not trusted put into the schemas of nearsim."""

from nearsim_db.errors import SchemaError
from nearsim_db.store.driver import Connection
from nearsim_db.store.driver.rows import fetch_values
from nearsim_db.store.driver.statements import statement


def refuse_untrusted(connection: Connection, *, superusers_only: bool = False) -> None:
    """Raise SchemaError if the schemas have anything of a role that the current user does not trust.

    Trusted are the user itself, the database's owner, superusers, and nearsim_admin. With `superusers_only` any other
    user is spared: it trusts the role that installed nearsim, as its rights are fewer. Nothing in the schemas is run.
    """
    found = fetch_values(connection, statement("list_untrusted"), {"superusers_only": superusers_only})
    if found:
        raise SchemaError(
            f"the schemas nearsim and nearsim_index are not trusted, and nothing in them was run: {'; '.join(found)}. "
            "Only this user, the owner of the database, superusers and nearsim_admin may have objects and rights "
            "there. Drop what is not yours, or connect as the role that installed nearsim (docs/access.md)"
        )
