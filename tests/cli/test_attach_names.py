"""Attached tables whose schema, table, columns, collection and profile have names that need quoting."""

from typing import LiteralString

import pytest
from psycopg import sql

from tests.builders.command_line import BRIDGE, HARVEST, STORM, STORM_AGAIN, CommandLine, unlike_any_other
from tests.builders.selection import some
from tests.builders.workers import Application, application

_LONGEST_BYTES = 63  # of a name in PostgreSQL
NAMES = [
    "100%s %(id)s % of",
    'a "quoted" name',
    "it's dotted.twice.",
    "Upper Case",
    "back\\slash \\",
    "{0} {id} {",
    ":name ::text",
    "$1 -- /* ;",
    "[red]markup[/red]",
    "select",
    "\N{LATIN SMALL LETTER A WITH DIAERESIS}" * 31,
    "\N{GRINNING FACE}" * 15,
    "=1+1",
]


def fill_up(first: str, name: str) -> str:
    """A name of its own that begins with a letter and is no longer than PostgreSQL allows."""
    return (first + name).encode()[:_LONGEST_BYTES].decode(errors="ignore")


def quoted(name: str) -> str:
    """The name as SQL spells it."""
    return '"' + name.replace('"', '""') + '"'


def run(app: Application, command: LiteralString, **names: str) -> None:
    """Execute a command with names filled in."""
    parts = {key: sql.Identifier(*name.split("\0")) for key, name in names.items()}
    app.execute(sql.SQL(command).format(**parts))


class OddlyNamed:
    """A table, a collection and a profile of one odd name, and the columns' names made from it."""

    def __init__(self, nearsim: CommandLine, app: Application, name: str) -> None:
        self.nearsim, self.app, self.name = nearsim, app, name
        kinds = ("id", "text", "headline", "url", "by", "published")
        self.columns = {kind: fill_up(kind[0], name) for kind in kinds}
        self.table = f"{name}\0{name}"

    def create(self) -> None:
        """Create the table with two similar texts and one of its own; the ids have percent signs, too."""
        run(self.app, "CREATE SCHEMA {name}", name=self.name)
        run(
            self.app,
            "CREATE TABLE {table} ({id} text PRIMARY KEY, {text} text, {headline} text, {url} text, {by} text, "
            "{published} date)",
            table=self.table,
            **self.columns,
        )
        run(self.app, "GRANT USAGE ON SCHEMA {name} TO PUBLIC", name=self.name)
        run(self.app, "GRANT SELECT ON {table} TO PUBLIC", table=self.table)
        for id, text in {"%s": STORM, "50%": STORM_AGAIN, "%(x)s": HARVEST}.items():
            self.write(id, text)

    def write(self, id: str, text: str) -> None:
        """Insert a row."""
        command = sql.SQL("INSERT INTO {} VALUES ({}, {}, 't', 'u', 'b', '2026-03-01')")
        self.app.execute(command.format(sql.Identifier(self.name, self.name), id, text))

    def attach(self, *more: str) -> None:
        """Attach the table as `nearsim table attach` does."""
        options = zip(
            ("id", "text", "title", "url", "source", "published-at"), self.columns.values(), strict=True
        )
        given = [word for key, column in options for word in (f"--{key}", quoted(column))]
        table = ".".join(quoted(part) for part in self.table.split("\0"))
        self.nearsim.succeed("table", "attach", table, *given, "-c", self.name, "-p", self.name, *more)

    def pairs(self) -> set[frozenset[str]]:
        """The pairs that `nearsim pairs` prints."""
        shown = self.nearsim.succeed("pairs", "-c", self.name, "-p", self.name, "--format", "jsonl").rows()
        return {frozenset((row["left"], row["right"])) for row in shown}


@pytest.mark.slow("several commands for each name")
@pytest.mark.parametrize("name", some(NAMES, "each runs twenty commands"))
def test_unusual_names_work_from_attach_to_detach(nearsim: CommandLine, database_url: str, name: str) -> None:
    with application(database_url) as app:
        world = OddlyNamed(nearsim, app, name)
        world.create()
        world.attach("--set", "match.threshold=0.6")
        assert world.pairs() == {frozenset(("%s", "50%"))}
        follow(world)
        rename(world)
        manage(world)
        nearsim.succeed("table", "detach", name, "--yes")
        assert nearsim.succeed("collection", "list", "--json").document() == []


def follow(world: OddlyNamed) -> None:
    """Changes of the table are indexed."""
    world.write("new%", STORM)
    for number in range(70):  # more than are read one by one
        world.write(f"n{number}%", unlike_any_other(number))
    world.nearsim.succeed("worker", "--once", "--quiet")
    assert world.pairs() == {frozenset(pair) for pair in (("%s", "50%"), ("%s", "new%"), ("50%", "new%"))}
    assert world.nearsim.succeed("document", "get", "new%", "-c", world.name).document()["body"] == STORM
    found = world.nearsim.succeed(
        "similar", "new%", "-c", world.name, "-p", world.name, "--format", "jsonl"
    ).rows()
    assert {row["id"] for row in found} == {"%s", "50%"}
    body = world.app.execute(
        "SELECT nearsim.body_of(doc_id) FROM nearsim.document WHERE external_id = 'new%'"
    )
    assert body.fetchone() == (STORM,)


def rename(world: OddlyNamed) -> None:
    """A renamed table is read as before, and one with renamed columns once it is attached again."""
    other = fill_up("z", world.name)
    run(world.app, "ALTER TABLE {table} RENAME TO {other}", table=world.table, other=other)
    run(world.app, "ALTER SCHEMA {name} RENAME TO {other}", name=world.name, other=other)
    world.name, world.table, kept = other, f"{other}\0{other}", world.name
    world.write("bridge%%", BRIDGE)
    world.nearsim.succeed("table", "sweep", kept, "--json")
    for kind in ("id", "text"):
        renamed = fill_up("x" + kind[0], other)
        command: LiteralString = "ALTER TABLE {table} RENAME COLUMN {old} TO {new}"
        run(world.app, command, table=world.table, old=world.columns[kind], new=renamed)
        world.columns[kind] = renamed
    world.write("harvest%%", HARVEST)
    world.name = kept
    world.attach()
    assert frozenset(("harvest%%", "%(x)s")) in world.pairs()
    assert world.nearsim.succeed("stats", "-c", kept, "--json").document()["documents"] == 76


def manage(world: OddlyNamed) -> None:
    """Indexing anew, purging and checking."""
    nearsim, name = world.nearsim, world.name
    run(world.app, "DELETE FROM {table} WHERE {id} LIKE 'new_'", table=world.table, id=world.columns["id"])
    nearsim.succeed("document", "purge", "new%", "-c", name, "--yes")
    nearsim.succeed("reindex", "start", name, "-c", name, "--set", "match.threshold=0.5")
    nearsim.succeed("reindex", "promote", name, "-c", name)
    nearsim.succeed("reindex", "drop", name, "-c", name, "--yes")
    assert world.pairs() == {frozenset(("%s", "50%")), frozenset(("harvest%%", "%(x)s"))}
    nearsim.succeed("verify-index", "-p", name, "-c", name)
    assert nearsim.run("doctor").exit_code in (0, 1)
    listed = nearsim.succeed("table", "list", "--json").document()
    assert [one["collection"] for one in listed] == [name] and listed[0]["trouble"] is None
