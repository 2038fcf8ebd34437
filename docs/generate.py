"""Generate pages of docs/reference and nearsim_db/store/models.py from the schema, the commands and the settings.

python -m docs.generate     # or make generated; starts a server of the newest PostgreSQL major that is installed
"""

import re
from collections.abc import Iterable, Sequence
from pathlib import Path

from benchmarks.own_server import binaries_by_major, own_server
from docs import command_line, environment, listings, mapped_classes, page_parts, recipe_keys
from nearsim_db.store.driver import Connection
from nearsim_db.store.driver.engine import open_engine
from nearsim_db.store.schema.alembic_runs import separate_session

DOCS = Path(__file__).parent
PAGE, QUERIES = DOCS / "reference" / "sql.md", DOCS / "reference" / "queries"
PRESETS = "reference/presets/index.md"
MODELS = DOCS.parent / "nearsim_db" / "store" / "models.py"

_RELATIONS = """
SELECT relname, coalesce(obj_description(pg_class.oid, 'pg_class'), obj_description(reltype, 'pg_type')),
    array_agg(ARRAY[CAST(attname AS text), format_type(atttypid, atttypmod), col_description(pg_class.oid, attnum)]
        ORDER BY attnum)
FROM pg_class JOIN pg_attribute ON attrelid = pg_class.oid AND attnum > 0 AND NOT attisdropped
WHERE relnamespace = CAST('nearsim' AS regnamespace) AND relkind = ANY(%(kinds)s) AND NOT relispartition
    AND relname <> 'alembic_version'
GROUP BY pg_class.oid ORDER BY relname
"""
_FUNCTIONS = """
SELECT (proname, pg_get_function_arguments(oid)) IN (SELECT name, arguments FROM nearsim.functions), proname,
    pg_get_function_arguments(oid), pg_get_function_result(oid), obj_description(oid, 'pg_proc')
FROM pg_proc WHERE pronamespace = CAST('nearsim' AS regnamespace)
ORDER BY proname COLLATE "C", pronargs, CAST(CAST(oid AS regprocedure) AS text) COLLATE "C"
"""


def render(connection: Connection, page: str) -> str:
    """Return the page with its generated parts written anew from the schema."""
    functions: dict[bool, list[str]] = {True: [], False: []}
    for is_called, *described in connection.execute(_FUNCTIONS):
        functions[is_called].append(_function(*described))
    parts = {
        "views": _relations(connection, ["v"]),
        "functions": "\n".join(functions[True]),
        "types": _relations(connection, ["c"]),
        "parts": "\n".join(functions[False]),
        "tables": _relations(connection, ["r", "p"]),
        "queries": "\n\n".join(query(path) for path in sorted(QUERIES.glob("*.sql"))),
    }
    return page_parts.replace(page, parts)


def query(path: Path) -> str:
    """Return the section of a worked query. Its title is the first line of the file."""
    title, _, command = path.read_text("utf-8").partition("\n")
    return f"### {title.removeprefix('-- ')}\n\n```sql\n{command.strip()}\n```\n\n[{path.name}](queries/{path.name})"


def _relations(connection: Connection, kinds: Sequence[str]) -> str:
    relations = connection.execute(_RELATIONS, {"kinds": list(kinds)})
    return "\n\n".join(
        f"### nearsim.{name}\n\n{comment}.\n\n"
        + page_parts.table(("column", "type", "what it is"), _columns(columns))
        for name, comment, columns in relations
    )


def _columns(columns: Iterable[Sequence[str]]) -> Iterable[Sequence[str]]:
    return ((f"`{name}`", kind, comment) for name, kind, comment in columns)


def _function(name: str, arguments: str, result: str | None, comment: str) -> str:
    plain = re.sub(r"\bnearsim\.|::[a-z ]+(?=,|\)|$)", "", f"{name}({arguments})")
    # Procedures have no result type.
    head = f"`CALL {plain}`" if result is None else f"`{plain}` returns `{result.replace('nearsim.', '')}`"
    return f"- {head}. {comment}."


def pages() -> dict[str, str]:
    """Return the pages that can be generated without a database, by their paths in docs."""
    recipes, monitoring, presets = (
        (DOCS / path).read_text("utf-8") for path in ("reference/recipes.md", "how-to/monitoring.md", PRESETS)
    )
    return {
        "reference/command-line.md": command_line.render(),
        "reference/environment.md": environment.render(),
        "reference/recipes.md": page_parts.replace(recipes, recipe_keys.tables()),
        "how-to/monitoring.md": page_parts.replace(monitoring, {"metrics": listings.metric_table()}),
        PRESETS: page_parts.replace(presets, {"presets": listings.preset_table()}),
    }


def main() -> None:
    """Regenerate the pages and the mapped classes."""
    for path, content in pages().items():
        (DOCS / path).write_text(content, "utf-8")
    with own_server(max(binaries_by_major())) as cluster:
        engine = open_engine(cluster.dsn())
        with engine.connect() as connection:
            PAGE.write_text(render(connection, PAGE.read_text("utf-8")), "utf-8")
        with separate_session(engine) as session:
            MODELS.write_text(mapped_classes.render(session), "utf-8")
        engine.dispose()


if __name__ == "__main__":
    main()
