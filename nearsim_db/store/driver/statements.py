"""The SQL statements of the store: named blocks in .sql files, into which a generation's tables are filled.

A block has the line `-- name: verb_noun`, comment lines with its purpose and the index it relies on, and the statement.
Each file is beside the module that runs its statements. A statement includes a block of parts.sql by the name of that
block in braces.
"""

import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from typing import Any, Literal, LiteralString, TypeVar, cast

from psycopg import Cursor, sql
from psycopg.abc import AdaptContext
from psycopg.rows import args_row

from nearsim_db.records import GenerationId
from nearsim_db.store.driver.connection import Connection

SCHEMA = "nearsim"
INDEX_SCHEMA = "nearsim_index"


# Generations with smaller numbers belong to small collections and share all their tables. The others have their own
# tables of signatures and bands (migrations/schema/shared_tables.sql).
FIRST_OWN = 100_000_000
OWN = ("signature", "band")
SHARED_BY_ALL = ("similar_pair", "cluster_member")
PARENTS = OWN + SHARED_BY_ALL


@dataclass(frozen=True, slots=True)
class Leaves:
    """Names of a generation's tables: the leaves of the partitioned tables, for statements that bypass the parents.

    A generation of a small collection shares all its leaves with other generations. A generation of a large collection
    has its own leaves of signatures and bands, but shares the leaves of pairs and clusters with all generations.
    """

    generation_id: GenerationId
    # Whether band rows are on the nodes of a Citus cluster; citus/replaced has the statements for these.
    distributed: bool = False

    @property
    def are_shared(self) -> bool:
        """Whether all leaves have rows of other generations as well."""
        return self.generation_id < FIRST_OWN

    def is_shared(self, parent: str) -> bool:
        """Whether the leaf of a parent has rows of other generations as well."""
        return self.are_shared or parent in SHARED_BY_ALL

    @property
    def shared(self) -> tuple[str, ...]:
        """Return the parents whose leaves have rows of other generations as well."""
        return PARENTS if self.are_shared else SHARED_BY_ALL

    @property
    def own(self) -> tuple[str, ...]:
        """Return the parents whose leaves have rows of this generation only."""
        return () if self.are_shared else OWN

    def table(self, parent: str) -> sql.Identifier:
        """Return the leaf of a parent, such as nearsim_index.signature_shared."""
        return sql.Identifier(INDEX_SCHEMA, self.name(parent))

    def rows(self, parent: str) -> sql.Composable:
        """Return the rows of this generation, without pairs to be reviewed: a table or subquery that needs an alias."""
        if parent == "similar_pair":
            pairs = sql.SQL("(SELECT * FROM {} WHERE {} AND NOT in_review)")
            return pairs.format(self.table(parent), self.numbered)
        return self.all_rows(parent)

    @property
    def ties(self) -> sql.Composable:
        """Return the pairs that connect documents in clusters, which excludes pairs to be reviewed and by a passage."""
        return sql.SQL("(SELECT * FROM {} WHERE {} AND NOT (in_review OR by_passage))").format(
            self.table("similar_pair"), self.numbered
        )

    @property
    def signed(self) -> sql.Composable:
        """Return this generation's signatures, without sketches, from a table that is indexed by head.

        The tables are those of the view nearsim_index.signed.
        """
        name = "signature_shared" if self.are_shared else "signed_document"
        table = sql.Identifier(INDEX_SCHEMA, name)
        return sql.SQL("(SELECT * FROM {} WHERE {})").format(table, self.numbered)

    @property
    def ends(self) -> sql.Composable:
        """Return two rows for each pair, one for each document in `doc_id`, without pairs to be reviewed."""
        return sql.SQL("(SELECT * FROM nearsim_index.pair_ends WHERE {} AND NOT in_review)").format(
            self.numbered
        )

    def all_rows(self, parent: str) -> sql.Composable:
        """Return the rows of this generation as `rows` does, but including pairs to be reviewed."""
        if not self.is_shared(parent):
            return self.table(parent)
        return sql.SQL("(SELECT * FROM {} WHERE {})").format(self.table(parent), self.condition(parent))

    def condition(self, parent: str) -> sql.Composable:
        """Return the condition that selects this generation's rows in the leaf of a parent."""
        return self.numbered if self.is_shared(parent) else sql.SQL("true")

    @property
    def numbered(self) -> sql.Composable:
        """Return the condition that selects this generation's rows in a view or a shared table."""
        # If the condition has the number itself, the planner expects a single row as long as the table's statistics
        # know only other generations. If the number is in a subquery, the planner expects as many rows as a generation
        # has on average. Large generations need no subquery, because statistics are collected when one is built.
        condition = sql.SQL("generation_id = (SELECT {})" if self.are_shared else "generation_id = {}")
        return condition.format(sql.Literal(self.generation_id))

    def name(self, parent: str) -> str:
        """Return the leaf's name without its schema."""
        return f"{parent}_shared" if self.is_shared(parent) else f"{parent}_{self.generation_id}"

    def qualified(self, parent: str) -> str:
        """Return the leaf's name with its schema, for a parameter that is cast to regclass."""
        return f"{INDEX_SCHEMA}.{self.name(parent)}"


# Restricts rows of `band` to the buckets in a parameter, so that Citus queries only the shards of these buckets. The
# first bucket is named separately, because before PostgreSQL 17 each probe would otherwise search the index for each
# element of the array.
_IN_BUCKETS = sql.SQL(
    "(band.bucket_hash = ANY(CAST(%(bucket_hashes)s AS bigint[])) "
    "OR band.bucket_hash = (CAST(%(bucket_hashes)s AS bigint[]))[1])"
)


def statement(name: str, leaves: Leaves | None = None, **parts: sql.Composable) -> sql.Composed:
    """Return the statement of a name, with its names in braces filled in from `parts` and the generation's tables.

    - `{signature}`, `{band}`, `{cluster_member}`: the generation's rows, which need an alias
    - `{similar_pair}`: its pairs without pairs to be reviewed, `{stored_pair}`: all of its pairs, `{tying_pair}`: the
      pairs that connect documents in clusters, `{pair_end}`: two rows for each `{similar_pair}`, one for each document
    - `{signed}`: its signatures without sketches, from a table that is indexed by head
    - `{signature_leaf}` and so on: the table itself, which may have rows of other generations
    - `{of_generation}`: condition that selects the generation's rows in the leaves of signatures and bands
    - `{of_view}`: the same condition for pairs, cluster members and views, which have the rows of all generations

    A statement with placeholders must be executed with parameters; any other statement without them.
    """
    has_names = bool(parts)
    if leaves is not None:
        # Rows of this generation
        parts |= {parent: leaves.rows(parent) for parent in PARENTS}
        parts["stored_pair"] = leaves.all_rows("similar_pair")
        parts["tying_pair"] = leaves.ties
        parts["pair_end"] = leaves.ends
        parts["signed"] = leaves.signed

        # Tables and functions
        parts |= {f"{parent}_leaf": leaves.table(parent) for parent in PARENTS}
        parts |= {function: leaves.table(function) for function in ("pairs_of", "evidence_of")}

        # Conditions and values
        parts["of_generation"] = leaves.condition("signature")
        parts["of_view"] = leaves.numbered
        parts["generation_id"] = sql.Literal(leaves.generation_id)
        parts["in_buckets"] = _IN_BUCKETS
        parts["leaf_comment"] = sql.Literal(
            f"partition of generation {leaves.generation_id}, see nearsim.generations"
        )

    composed = sql.SQL(_text(name, leaves)).format(**parts)
    # Percent signs can only come from the names and values that the caller passed.
    return _with_literal_percents(composed) if has_names else composed


class Expression(sql.Composable):
    """An SQL expression as PostgreSQL printed it (pg_get_expr), which has no placeholders."""

    _obj: str

    def as_bytes(self, context: AdaptContext | None = None) -> bytes:
        return self._obj.encode()


class _PercentsDoubled(sql.Composable):
    """A part of a statement whose percent signs psycopg would otherwise read as placeholders."""

    _obj: sql.Composable

    def as_bytes(self, context: AdaptContext | None = None) -> bytes:
        return self._obj.as_bytes(context).replace(b"%", b"%%")


def _with_literal_percents(composed: sql.Composed) -> sql.Composed:
    """Double the percent signs in names and values if the statement has placeholders.

    Only then does psycopg parse the statement, and would read these percent signs as placeholders.
    """
    parts = list(_flattened(composed))
    if not any(b"%(" in part.as_bytes() for part in parts if isinstance(part, sql.SQL | sql.Placeholder)):
        return composed
    return sql.Composed(
        [
            _PercentsDoubled(part) if isinstance(part, sql.Identifier | sql.Literal | Expression) else part
            for part in parts
        ]
    )


def _flattened(composed: sql.Composed) -> Iterator[sql.Composable]:
    for part in composed:
        if isinstance(part, sql.Composed):
            yield from _flattened(part)
        else:
            yield part


def _text(name: str, leaves: Leaves | None) -> LiteralString:
    if leaves is not None and leaves.distributed and name in blocks("citus/replaced"):
        return blocks("citus/replaced")[name]
    return blocks()[name]


@cache
def blocks(folder: str | None = None) -> dict[str, LiteralString]:
    """Return the statements of a folder, by default of all folders, by name, with blocks of parts.sql filled in."""
    store = files("nearsim_db.store")
    folders = (
        [path for path in store.iterdir() if path.is_dir()] if folder is None else [store.joinpath(folder)]
    )
    parts = dict(parse_blocks(store.joinpath("driver/parts.sql").read_text("utf-8")))
    without_purpose = {f"{{{name}}}": text.partition("\n")[2] for name, text in parts.items()}
    paths = (path for parent in folders for path in parent.iterdir() if path.name.endswith(".sql"))
    return {
        name: re.sub(r"\{\w+\}", lambda place: without_purpose.get(place[0], place[0]), text)
        for path in paths
        for name, text in parse_blocks(path.read_text("utf-8"))
        if name not in parts
    }


def parse_blocks(text: str) -> list[tuple[str, LiteralString]]:
    """Split the text of a file into (name, statement), in the order of the file."""
    parts = re.split(r"^-- name: (\w+)\n", text, flags=re.MULTILINE)
    # The files are part of the package, so they are as trusted as its code.
    return [
        (name, cast(LiteralString, body.strip())) for name, body in zip(parts[1::2], parts[2::2], strict=True)
    ]


Row = TypeVar("Row")
# The format of results; "prepared" means binary results of a prepared statement.
Mode = Literal["text", "binary", "prepared"]

_ROWS_PER_FETCH = 5_000


def run(
    connection: Connection,
    query: str | bytes | sql.Composed,
    leaves: Leaves | None = None,
    mode: Mode = "text",
    /,
    **parameters: object,
) -> "StatementResult":
    """Execute a statement, named by its block or passed as SQL, with its parameters."""
    if isinstance(query, str):
        query = statement(query, leaves) if query.isidentifier() else query.encode()
    cursor = connection.backend.cursor(binary=mode != "text")
    return StatementResult(cursor.execute(query, parameters or None, prepare=mode == "prepared" or None))


class StatementResult:
    """The result of a statement; its rows can be read once."""

    def __init__(self, cursor: Cursor[tuple[Any, ...]]) -> None:
        self._cursor = cursor

    @property
    def count(self) -> int:
        """Return the number of rows returned or changed."""
        return self._cursor.rowcount

    def rows(self) -> list[tuple[Any, ...]]:
        """Return all rows as tuples."""
        return self._cursor.fetchall()

    def row(self) -> tuple[Any, ...]:
        """Return the first row of a query that always has a row, as a tuple."""
        row = self._cursor.fetchone()
        assert row is not None
        return row

    def all(self, make: Callable[..., Row]) -> list[Row]:
        """Return all rows; `make` is called with the columns of each row, in order."""
        return [make(*row) for row in self.rows()]

    def first(self, make: Callable[..., Row]) -> Row | None:
        """Return what `make` returns for the columns of the first row, or None if there is no row."""
        row = self._cursor.fetchone()
        return None if row is None else make(*row)

    def one(self, make: Callable[..., Row]) -> Row:
        """Return what `make` returns for the columns of the first row of a query that always has a row."""
        return make(*self.row())

    def values(self) -> list[Any]:
        """Return the first column of all rows."""
        return [row[0] for row in self.rows()]

    def value(self) -> Any:
        """Return the first column of the first row, or None if there is no row."""
        row = self._cursor.fetchone()
        return None if row is None else row[0]


def stream_rows(
    connection: Connection,
    make: Callable[..., Row],
    name: str,
    leaves: Leaves | None = None,
    /,
    **parameters: object,
) -> Iterator[Row]:
    """Yield what `make` returns for the columns of each row of a named statement, read through a server-side cursor."""
    with connection.backend.cursor(
        name=f"{connection.cursor_prefix}_{name}", row_factory=args_row(make)
    ) as cursor:
        cursor.itersize = _ROWS_PER_FETCH
        yield from cursor.execute(statement(name, leaves), parameters or None)


@dataclass(frozen=True)
class GenerationStatements:
    """Runs statements on a generation's tables over one connection; the base of GenerationTables and its parts."""

    connection: Connection
    leaves: Leaves

    def run(
        self, query: str | bytes | sql.Composed, mode: Mode = "text", /, **parameters: object
    ) -> "StatementResult":
        """Execute a statement on the generation's tables, named by its block or passed as SQL, with its parameters."""
        return run(self.connection, query, self.leaves, mode, **parameters)

    def stream(self, make: Callable[..., Row], name: str, /, **parameters: object) -> Iterator[Row]:
        """Yield the rows of a named statement through a server-side cursor, as `stream_rows` does."""
        return stream_rows(self.connection, make, name, self.leaves, **parameters)
