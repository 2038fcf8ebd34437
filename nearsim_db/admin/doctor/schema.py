"""Checks of the schema: rights, revision, roles."""

from collections.abc import Iterator

from nearsim_db.admin.doctor.findings import Finding
from nearsim_db.errors import SchemaError
from nearsim_db.store import access
from nearsim_db.store.access import Roles
from nearsim_db.store.driver import Connection, server_settings
from nearsim_db.store.schema import revisions


def check_rights(connection: Connection) -> Finding:
    """Check the rights of the connected user."""
    roles = access.read_roles(connection)
    if roles is not None and _is_limited(roles):
        return Finding("rights", "ok", f"member of {roles.mine[-1]}; building indexes requires nearsim_admin")
    missing = server_settings.missing_rights(connection)
    if missing:
        lacking = ", ".join(one.right for one in missing)
        remedy = "; ".join(one.remedy for one in missing)
        return Finding("rights", "problem", f"this user lacks {lacking}", f"ask the owner for: {remedy}")
    purpose = "in the schema nearsim" if is_installed(connection) else "to create the schema nearsim"
    return Finding("rights", "ok", f"sufficient {purpose}")


def check_revision(connection: Connection, *, embedded: bool) -> Finding:
    """Check that this version works with the schema's revision."""
    if embedded and not is_installed(connection):
        return Finding("schema", "ok", "not installed yet; the first command installs it")
    try:
        revision = revisions.check(connection)
    except SchemaError as error:
        return Finding("schema", "problem", str(error))
    newest, oldest = revisions.newest_revision(), revisions.oldest_revision(connection)
    known = "" if revision == newest else f", newer than this version of nearsim supports ({newest})"
    return Finding("schema", "ok", f"revision {revision}{known}; for versions that know {oldest} or later")


def is_installed(connection: Connection) -> bool:
    """Whether the schema exists."""
    return revisions.current_revision(connection) is not None


def check_roles(connection: Connection) -> Iterator[Finding]:
    """Check the roles of the server and the privileges in the schema."""
    roles = access.read_roles(connection)
    if roles is None:
        return
    yield _check_roles(roles)
    if roles.owns and (shown := access.list_shown_statistics(connection)):
        finding = f"ANALYZE keeps values of {', '.join(shown[:5])}{' and more' if len(shown) > 5 else ''}"
        yield Finding("statistics", "warning", finding, "to remove them, as a superuser: nearsim db init")
    if roles.isolated and roles.owns:
        for name, reason in access.list_isolation_gaps(connection):
            advice = "revoke that, or give this tenant a database of its own"
            yield Finding("isolation", "warning", f"{name} {reason}", advice)


def sees_all_collections(connection: Connection) -> bool:
    """Whether the connected user sees all collections, so that checks of the indexes mean something."""
    roles = access.read_roles(connection)
    return roles is None or not (roles.isolated and _is_limited(roles))


def _is_limited(roles: Roles) -> bool:
    """Whether the user is a reader or writer only."""
    return not roles.owns and bool(roles.mine) and "nearsim_admin" not in roles.mine


def _check_roles(roles: Roles) -> Finding:
    if roles.missing:
        advice = "to grant access, as a user that may create roles: nearsim db grant USER ROLE"
        return Finding("roles", "warning", f"the server has no {', '.join(roles.missing)}", advice)
    repair = "psql \"$(nearsim db url)\" -c 'SELECT nearsim.grant_rights()'"
    if roles.owner != "nearsim_admin":
        finding = f"the index belongs to {roles.owner}: members of nearsim_admin cannot build here"
        advice = f"GRANT nearsim_admin TO {roles.owner}; then, as {roles.owner}: {repair}"
        return Finding("roles", "warning", finding, advice)
    if roles.foreign_owned_relations or not roles.readable:
        return Finding("roles", "warning", "owners or privileges in the schema are wrong", repair)
    sees = "readers see their collections only" if roles.isolated else "readers see all collections"
    return Finding("roles", "ok", f"nearsim_reader, nearsim_writer, nearsim_admin; {sees}")
