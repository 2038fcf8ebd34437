"""The baseline of the schema: where its files are, their digest, and the digest that a database was made from."""

from functools import cache
from hashlib import sha256
from pathlib import Path

from sqlalchemy import Connection, text


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


def read_digest(connection: Connection) -> str | None:
    """Return the digest of the files that a database was made from; None where none is stored."""
    if connection.scalar(text("SELECT to_regclass('nearsim.schema_floor')")) is None:
        return None
    # As JSON, because a database made before digests were stored lacks the column.
    stored = "SELECT to_jsonb(floor) ->> 'baseline_digest' FROM nearsim.schema_floor AS floor"
    found = connection.scalar(text(stored))
    return None if found is None else str(found)
