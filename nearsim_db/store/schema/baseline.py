"""The baseline of the schema: its files, their digest, and its installation in a database."""

from collections.abc import Iterator
from functools import cache
from hashlib import sha256
from pathlib import Path

from nearsim_db.store.driver import Connection
from nearsim_db.store.driver.rows import fetch_value
from nearsim_db.store.driver.statements import statement

REVISION = "0001"


def migrations_directory() -> Path:
    """Return the folder of the migrations: beside this file in an installed wheel, at the root of a checkout."""
    packaged = Path(__file__).parent / "migrations"
    return packaged if packaged.is_dir() else Path(__file__).parents[3] / "migrations"


@cache
def compute_digest(migrations: Path) -> str:
    """Return the SHA-256 of the names and contents of the files in `schema`, in hexadecimal.

    Line endings are normalised, so a checkout on any system and an installed wheel have the same digest.
    """
    folder = migrations / "schema"
    digest = sha256()
    for name in sorted(
        path.relative_to(folder).as_posix() for path in folder.rglob("*") if path.suffix in (".sql", ".txt")
    ):
        content = "\n".join((folder / name).read_text("utf-8").splitlines())
        for part in (name, content):
            digest.update(part.encode() + b"\0")
    return digest.hexdigest()


def list_files(migrations: Path) -> Iterator[Path]:
    """Yield the files that create the objects, in the order in which they are applied."""
    folder = migrations / "schema"
    for line in (folder / "order.txt").read_text("utf-8").splitlines():
        if line and not line.startswith("#"):
            yield folder / f"{line}.sql"


def install(connection: Connection) -> None:
    """Create the whole schema as the first revision does, in one round trip and in the caller's transaction."""
    migrations = migrations_directory()
    ensure_namespace(connection)
    connection.execute(statement("create_version_table"))
    script = "\n;\n".join(path.read_text("utf-8") for path in list_files(migrations))
    connection.execute(script.encode())
    parameters = {"revision": REVISION, "digest": compute_digest(migrations)}
    connection.execute(statement("record_baseline"), parameters)


def ensure_namespace(connection: Connection) -> None:
    """Create the schema nearsim, which holds Alembic's version table, unless it exists."""
    if fetch_value(connection, statement("find_schema")) is None:
        connection.execute(statement("create_schema"))
