"""Attached tables: the cost of reading their texts, and of many collections by a field.

    python -m benchmarks attached-texts [--documents 5000]
    python -m benchmarks attached-collections [--rows 60000] [--values 300]

attached-texts ingests some rows and also attaches them as a table, and asks each question of both collections in turns.
attached-collections attaches the same rows as one collection and as a collection for each value of a field, in turns
and in separate databases.
"""

import contextlib
import io
import os
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import partial
from itertools import product
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Annotated, LiteralString

import psycopg
from typer import Option

from benchmarks.corpus import Corpus
from benchmarks.measure import ratio, spread, take_turns
from benchmarks.options import Documents, Rounds, Seed
from benchmarks.own_server import own_server
from nearsim_db import Index
from nearsim_db.admin import attach
from nearsim_db.cli.app import app
from nearsim_db.similarity.recipe import Recipe
from nearsim_db.store.attached.tables import Columns
from nearsim_db.store.database import Database

_MAJOR = 18
_TABLE: LiteralString = """
CREATE TABLE public.article (id bigint PRIMARY KEY, tenant text NOT NULL, title text, body text);
CREATE INDEX ON public.article (tenant, id)
"""
_COPY: LiteralString = "COPY public.article FROM STDIN"
_ONE_BY_ONE: LiteralString = """
SELECT sum(length(nearsim.body_of(doc_id))) FROM (
    SELECT doc_id FROM nearsim.document JOIN nearsim.collection USING (collection_id) WHERE name = %s
    ORDER BY external_id LIMIT 500) AS document
"""
_AS_A_SET: LiteralString = """
SELECT sum(length(body)) FROM nearsim.bodies_of(ARRAY(
    SELECT doc_id FROM nearsim.document JOIN nearsim.collection USING (collection_id) WHERE name = %s))
"""
_QUEUE: LiteralString = """
SELECT count(*) FROM nearsim.review_queue(%s, queue => 'numbers', text => 'no text has this')
"""
_COLUMNS = Columns("id", "body", title="title")

Row = tuple[int, str, str, str]
Session = psycopg.Connection[tuple[object, ...]]


def texts(
    documents: Documents = 5_000,
    rounds: Rounds = 5,
    seed: Seed = 1,
    only: Annotated[list[str] | None, Option(help="Ask only this question (repeatable).")] = None,
) -> str:
    """Ask each question that reads texts of an ingested and of an attached collection, in turns."""
    rows = list(_rows(documents, seed, 1))

    with own_server(_MAJOR) as cluster, TemporaryDirectory() as folder:
        os.environ["NEARSIM_DATABASE_URL"] = cluster.dsn()
        with (
            Database.connect(cluster.dsn()) as database,
            psycopg.connect(cluster.dsn(), autocommit=True) as session,
        ):
            _fill(session, rows)
            _attach(database, "attached", _COLUMNS)
            Index(database, "ingested").add(
                [{"id": str(number), "title": title, "text": text} for number, _, title, text in rows]
            )
            table = ["| question | ingested, s | attached, s | ratio |", "|---|---|---|---|"]
            for name, ask in _questions(session, database, Path(folder)).items():
                if not only or name in only:
                    table.append(f"| {name} | {_compare(ask, rounds)} |")
            return "\n".join(table)


def _compare(ask: Callable[[str], object], rounds: int) -> str:
    turns = {name: partial(ask, name) for name in ("ingested", "attached")}
    # A round that is not counted, to fill caches.
    take_turns(turns, 1)
    seconds = take_turns(turns, rounds)
    ingested, attached = (spread(seconds[name]).median for name in turns)
    return f"{ingested:.3f} | {attached:.3f} | {ratio(seconds['attached'], seconds['ingested'])}"


def _questions(session: Session, database: Database, folder: Path) -> Mapping[str, Callable[[str], object]]:
    """Return the questions, each asked of a collection."""
    index = Index(database, "ingested")
    left, right = min((pair.left, pair.right) for pair in index.pairs())
    largest = next(iter(index.clusters())).members[0]
    (folder / "new.jsonl").write_text(
        "".join(f'{{"id": "{number}", "text": "text {number} of a new document"}}\n' for number in range(50))
    )

    return {
        "body_of": lambda name: session.execute(_ONE_BY_ONE, (name,)).fetchall(),
        "bodies_of": lambda name: session.execute(_AS_A_SET, (name,)).fetchall(),
        "review_queue by text": lambda name: session.execute(_QUEUE, (name,)).fetchall(),
        "nearest": _command("nearest"),
        "similar": _command("similar", left),
        "similar --text": _command("similar", "--text", "a text that is similar to none of the documents"),
        "check": _command("check", str(folder / "new.jsonl"), "--format", "jsonl"),
        "pairs": _command("pairs", "--format", "jsonl"),
        "clusters": _command("clusters", "--format", "jsonl"),
        "document get": _command("document", "get", left),
        "why": _command("why", left, right),
        "passages": _command("passages", left, right),
        "passages --spread": _command("passages", largest, "--spread"),
        "export": _command("export", "--keep", "all", "--output", str(folder / "all.jsonl")),
        "report": _command("report", "--output", str(folder / "report.html")),
        "tune": _command("tune"),
        "verify-index": _command("verify-index", "--all"),
        "profile": partial(_rebuild, database),
    }


def _command(command: str, *arguments: str) -> Callable[[str], None]:
    def run(name: str) -> None:
        printed = io.TextIOWrapper(io.BytesIO())
        with contextlib.redirect_stdout(printed), contextlib.redirect_stderr(printed):
            code = app([command, *arguments, "--collection", name], standalone_mode=False)
        if code:
            raise RuntimeError(f"nearsim {command} ended with exit code {code}")

    return run


def _rebuild(database: Database, name: str) -> None:
    """Build another profile, and delete it."""
    index = Index(database, name)
    index.create_profile("again", Recipe())
    index.delete_profile("again")


def collections(
    rows: Annotated[int, Option(help="Number of rows.")] = 60_000,
    values: Annotated[int, Option(help="Number of values of the field.")] = 300,
    rounds: Rounds = 1,
    seed: Seed = 1,
) -> str:
    """Attach a table as one collection, and by a field as many, in turns."""
    made = list(_rows(rows, seed, values))
    ways = {"one": _COLUMNS, "many": replace(_COLUMNS, collection_field="tenant")}
    seconds: dict[str, list[float]] = {name: [] for name in ways}
    for _, (name, columns) in product(range(rounds), ways.items()):
        with own_server(_MAJOR) as cluster, Database.connect(cluster.dsn()) as database:
            with psycopg.connect(cluster.dsn(), autocommit=True) as session:
                _fill(session, made)
            started = time.perf_counter()
            _attach(database, name, columns)
            seconds[name].append(time.perf_counter() - started)
    return (
        f"{rows:,} rows: one collection {spread(seconds['one'])} s, {values:,} collections "
        f"{spread(seconds['many'])} s, ratio {ratio(seconds['many'], seconds['one'])}"
    )


def _rows(documents: int, seed: int, tenants: int) -> Iterator[Row]:
    for number, document in enumerate(Corpus(documents, seed).documents()):
        yield number, f"tenant {number % tenants}", document.title, document.text


def _fill(session: Session, rows: Sequence[Row]) -> None:
    """Create the application's table."""
    session.execute(_TABLE)
    with session.cursor() as cursor, cursor.copy(_COPY) as copy:
        for row in rows:
            copy.write_row(row)
    # Autovacuum may do so only later.
    session.execute("ANALYZE public.article")


def _attach(database: Database, name: str, columns: Columns) -> None:
    attach.attach_table(database, "public.article", columns, name)
    attach.ingest_table(Index(database, name), "default", Recipe())
