"""The baseline of the schema: its files and their digest, its installation, and a check of who owns what is in it."""

import os
from collections.abc import Iterator
from functools import cache
from hashlib import sha256
from pathlib import Path

from nearsim_db.errors import SchemaError
from nearsim_db.store.driver import Connection
from nearsim_db.store.driver.statements import run

REVISION = "0001"


def migrations_directory() -> Path:
    """Return the folder of the migrations, which is beside this file in a wheel, and at the root of a checkout."""
    packaged = Path(__file__).parent / "migrations"
    return packaged if packaged.is_dir() else Path(__file__).parents[3] / "migrations"


@cache
def compute_digest(migrations: Path) -> str:
    """Return the SHA-256, in hexadecimal, of the names and contents of the files in the folder `schema`.

    Line endings are normalised, so that a checkout on any system and an installed wheel have the same digest.
    """
    # Every command reads all these files; with Path, this would take twice as long.
    folder, contents = str(migrations / "schema"), dict[str, bytes]()
    for parent, _, names in os.walk(folder):
        for name in names:
            if name.endswith((".sql", ".txt")):
                path = f"{parent}{os.sep}{name}"
                with open(path, "rb") as file:  # noqa: PTH123
                    contents[path[len(folder) + 1 :].replace(os.sep, "/")] = file.read()

    digest = sha256()
    for name, content in sorted(contents.items()):
        digest.update(name.encode() + b"\0" + b"\n".join(content.splitlines()) + b"\0")
    return digest.hexdigest()


def list_files(migrations: Path) -> Iterator[Path]:
    """Yield the files that create the objects of the schema, in the order in which they are applied."""
    folder = migrations / "schema"
    for line in (folder / "order.txt").read_text("utf-8").splitlines():
        if line and not line.startswith("#"):
            yield folder / f"{line}.sql"


def install(connection: Connection) -> None:
    """Create the whole schema as the first revision does, in one round trip and in the caller's transaction."""
    migrations = migrations_directory()
    ensure_namespace(connection)
    run(connection, "create_version_table")
    script = "\n;\n".join(path.read_text("utf-8") for path in list_files(migrations))
    connection.execute(script.encode())
    run(connection, "record_baseline", revision=REVISION, digest=compute_digest(migrations))


def ensure_namespace(connection: Connection) -> None:
    """Create the schema nearsim, for Alembic's version table, unless it exists."""
    if run(connection, "find_schema").value() is None:
        run(connection, "create_schema")


def refuse_untrusted(connection: Connection, *, superusers_only: bool = False) -> None:
    """Raise SchemaError if the schemas have an object of a role that the current user does not trust.

    The current user, the owner of the database, superusers and nearsim_admin are trusted. With `superusers_only`, the
    check is made only if the current user is a superuser: other users have fewer rights, and trust the role that
    installed nearsim. The check runs no code from the schemas.
    """
    if superusers_only and not connection.is_superuser:
        return
    rows = run(connection, "list_untrusted").rows()
    if not rows:
        return

    role, what, database = rows[0]
    if role == "PUBLIC":
        remedy = "REVOKE CREATE ON SCHEMA nearsim, nearsim_index FROM PUBLIC"
    else:
        remedy = (
            f"if {role} installed nearsim, connect as {role}, or ALTER DATABASE {database} OWNER TO {role}; "
            "if not, drop or revoke that"
        )
    raise SchemaError(
        f"{role} {what}{' and more' if len(rows) > 1 else ''}, and could run code as this user, so nothing was run; "
        f"{remedy} (docs/how-to/access.md)"
    )
