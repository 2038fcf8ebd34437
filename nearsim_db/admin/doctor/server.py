"""The doctor's checks of the server and the schema: version, settings, standby, Citus nodes, rights and roles."""

from collections.abc import Iterator

from nearsim_db.admin.doctor.installation import Finding
from nearsim_db.errors import SchemaError
from nearsim_db.messages import count_of
from nearsim_db.store.access import access
from nearsim_db.store.access.access import Roles
from nearsim_db.store.citus import placement
from nearsim_db.store.citus.placement import NodeState
from nearsim_db.store.driver import Connection, server_settings
from nearsim_db.store.driver.engine import NEWEST_MAJOR, OLDEST_MAJOR, check_server
from nearsim_db.store.schema import objects, revisions

_MEBIBYTE = 1024**2
_MAX_OBJECTS_SHOWN = 10
# Settings whose defaults are too small for bulk loads and one large join: the minimum in bytes, and what to set.
_MIN_SIZES = {
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
    """Report if the server is a standby, with what does not work there and what is not checked."""
    if server_settings.is_standby(connection):
        finding = (
            "this server is a standby: commands that write, workers, nearsim reindex diff and ingest --dry-run need "
            "its primary"
        )
        yield Finding("standby", "ok", f"{finding}; whether builds and workers run there is not checked")


def check_settings(connection: Connection, *, embedded: bool) -> Iterator[Finding]:
    """Check the settings that make builds faster.

    They are only reported, without advice, on a standby, where nothing is built, and on the embedded server, which
    nearsim configures itself.
    """
    are_used = not (embedded or server_settings.is_standby(connection))
    for setting in server_settings.read_settings(connection, ["jit", *_MIN_SIZES]):
        if setting.name == "jit":
            yield Finding("jit", "ok", f"{setting.shown} in nearsim's connections")
            continue

        min_bytes, better = _MIN_SIZES[setting.name]
        if not are_used or setting.size is None or setting.size >= min_bytes:
            yield Finding(setting.name, "ok", setting.shown)
        else:
            where = (
                f"ALTER ROLE CURRENT_USER SET {setting.name} = '{better}'"
                if setting.by_session
                else f"ALTER SYSTEM SET {setting.name}, or ask the server's administrator"
            )
            yield Finding(setting.name, "warning", setting.shown, f"builds are faster with {better}: {where}")


def check_nodes(connection: Connection) -> Iterator[Finding]:
    """Report each node, if band rows are distributed."""
    if not placement.is_distributed(connection):
        return

    nodes = placement.measure_nodes(connection)
    refusal = placement.find_refusal(connection) if any(node.obstacle for node in nodes) else ""
    missing = placement.list_missing_members(connection)
    for node in nodes:
        name = f"{node.host}:{node.port}"
        if node.obstacle:
            advice = (
                "start it, or see its log; where it asks for a password, the coordinator needs that of this user in "
                "pg_dist_authinfo (docs/how-to/scale-out.md#passwords); until then nothing is indexed or looked up"
            )
            reason = refusal if name in refusal else node.obstacle
            yield Finding("node", "problem", f"{name} does not answer: {reason}", advice)
            continue

        yield _check_node(name, node)
        if lacking := missing.get(name):
            finding = f"{name} lacks roles or memberships of the coordinator: what these users do fails there"
            yield Finding(
                "node roles", "warning", finding, f"as a superuser on that node: {'; '.join(lacking)}"
            )


def _check_node(name: str, node: NodeState) -> Finding:
    finding = (
        f"{name}: {count_of(node.shards, 'shard')}, {node.bytes / _MEBIBYTE:,.0f} MB, "
        f"about {count_of(node.rows, 'band row')}"
    )

    # A transaction on several nodes is prepared on each of them. Two-phase commit needs a slot for every connection.
    if node.prepared_transactions < node.connections:
        advice = "set max_prepared_transactions to at least max_connections, and restart it"
        allowed = count_of(node.prepared_transactions, "prepared transaction")
        wrong = f"{finding}; commits over several nodes fail beyond its limit of {allowed}"
        return Finding("node", "problem", wrong, advice)

    if node.wal_level != "logical":
        advice = (
            "set wal_level = logical, and restart it; or move shards with shard_transfer_mode 'block_writes'"
        )
        wrong = f"{finding}; with wal_level {node.wal_level} its shards cannot move while they are written to"
        return Finding("node", "warning", wrong, advice)
    return Finding("node", "ok", finding)


def check_rights(connection: Connection) -> Finding:
    """Check the rights of the connected user."""
    roles = access.read_roles(connection)
    if roles is not None and _is_limited(roles):
        return Finding("rights", "ok", f"member of {roles.mine[-1]}; building indexes requires nearsim_admin")
    missing = server_settings.missing_rights(connection)
    if missing:
        lacking = ", ".join(right.right for right in missing)
        remedy = "; ".join(right.remedy for right in missing)
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
    is_newer = "" if revision == newest else f", newer than this version of nearsim supports ({newest})"
    return Finding("schema", "ok", f"revision {revision}{is_newer}; for versions that know {oldest} or later")


def is_installed(connection: Connection) -> bool:
    """Whether the schema exists."""
    return revisions.current_revision(connection) is not None


def check_objects(connection: Connection) -> Finding:
    """Compare tables, views, functions, triggers, indexes and privileges with the files that define the schema."""
    if not objects.can_compare(connection):
        return Finding(
            "objects",
            "ok",
            "not compared: needs a user who may create schemas in a database that is not a standby",
        )
    differences = objects.without_parts(objects.compare(connection))
    if not differences:
        return Finding("objects", "ok", "all are as this version defines them")

    shown = [str(difference) for difference in differences[:_MAX_OBJECTS_SHOWN]]
    if len(differences) > len(shown):
        shown.append(f"and {count_of(len(differences) - len(shown), 'more object')}")
    advice = "nearsim schema init restores views, functions, triggers and privileges, and names what is left"
    return Finding("objects", "problem", "; ".join(shown), advice)


def check_roles(connection: Connection) -> Iterator[Finding]:
    """Check the roles of the server and the privileges in the schema."""
    roles = access.read_roles(connection)
    if roles is None:
        return
    yield _check_roles(roles)
    if roles.owns and (shown := access.list_shown_statistics(connection)):
        finding = f"ANALYZE keeps values of {', '.join(shown[:5])}{' and more' if len(shown) > 5 else ''}"
        yield Finding("statistics", "warning", finding, "to remove them, as a superuser: nearsim schema init")
    if roles.isolated and roles.owns:
        for name, reason in access.list_isolation_gaps(connection):
            advice = "revoke that, or give this tenant a database of its own"
            yield Finding("isolation", "warning", f"{name} {reason}", advice)


def sees_all_collections(connection: Connection) -> bool:
    """Whether the connected user sees all collections; if not, checks of the indexes would be incomplete."""
    roles = access.read_roles(connection)
    return roles is None or not (roles.isolated and _is_limited(roles))


def _is_limited(roles: Roles) -> bool:
    """Whether the user is only a reader or writer."""
    return not roles.owns and bool(roles.mine) and "nearsim_admin" not in roles.mine


def _check_roles(roles: Roles) -> Finding:
    if roles.missing:
        advice = "to grant access, as a user that may create roles: nearsim access grant USER ROLE"
        return Finding("roles", "warning", f"the server has no {', '.join(roles.missing)}", advice)
    repair = "psql \"$(nearsim server url)\" -c 'SELECT nearsim.grant_rights()'"
    if roles.owner != "nearsim_admin":
        finding = f"the index belongs to {roles.owner}: its members build here, those of nearsim_admin do not"
        return Finding("roles", "ok", finding)
    if roles.foreign_owned_relations or not roles.readable:
        return Finding("roles", "warning", "owners or privileges in the schema are wrong", repair)
    sees = "readers see their collections only" if roles.isolated else "readers see all collections"
    return Finding("roles", "ok", f"nearsim_reader, nearsim_writer, nearsim_admin; {sees}")
