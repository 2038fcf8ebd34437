"""nearsim ingest and build: every record is accounted for; profiles that it makes; rows of another database."""

import gzip
import json
import os
import sqlite3
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import psycopg
import pytest

from tests.builders.command_line import (
    BRIDGE,
    HARVEST,
    STORM,
    STORM_AGAIN,
    CommandLine,
    unlike_any_other,
    write_jsonl,
)
from tests.builders.word_sets import counts


@pytest.mark.slow("several builds")
def test_records_of_a_truncated_file_are_kept_and_indexed(nearsim: CommandLine, tmp_path: Path) -> None:
    lines = "".join(json.dumps({"id": n, "text": unlike_any_other(n)}) + "\n" for n in range(3_000))
    whole = gzip.compress(lines.encode(), mtime=0)
    path = tmp_path / "cut.jsonl.gz"
    path.write_bytes(whole[: len(whole) * 3 // 4])
    outcome = nearsim.run("ingest", path, "--json")
    reported = outcome.document()
    assert outcome.exit_code == 1 and "truncated" in reported["error"] and 0 < reported["inserted"] < 3_000
    assert nearsim.succeed("stats", "--json").document()["indexed"] == reported["inserted"]


def test_columns_are_mapped_by_options(nearsim: CommandLine, tmp_path: Path) -> None:
    path = tmp_path / "table.csv"
    path.write_text(f"key,head,main,paper,link,day\nk1,Storm,{STORM},Herald,http://h/1,2024-05-31\n")
    fields = ("id", "title", "body", "source", "url", "published")
    names = zip(fields, ("key", "head", "main", "paper", "link", "day"), strict=True)
    nearsim.succeed("ingest", path, *(word for one, name in names for word in (f"--{one}-field", name)), "-q")
    stored = nearsim.succeed("document", "get", "k1").document()
    expected = ["k1", "Storm", STORM, "Herald", "http://h/1"]
    assert [stored[name] for name in ("id", "title", "body", "source", "url")] == expected
    assert stored["published_at"].startswith("2024-05-31T00:00:00")


@pytest.mark.slow("several builds")
def test_rejects_of_a_folder_are_counted_and_named(nearsim: CommandLine, tmp_path: Path) -> None:
    (folder := tmp_path / "in").mkdir()
    for name in ("a.bin", "b.conf", "c.so"):
        (folder / name).write_text(STORM)
    (folder / "d.txt").symlink_to(folder / "a.bin")
    (folder / "e.txt").write_text(HARVEST)
    said = nearsim.succeed("ingest", folder).err
    assert "3 files of another kind" in said and "a.bin" in said
    for name in ("f.txt", "g.txt", "h.txt"):
        (folder / name).write_text(STORM)
    assert "were rejected" not in nearsim.succeed("ingest", folder).err
    summary = nearsim.succeed("ingest", folder, "--follow-links", "--json").document()
    assert (summary["inserted"], summary["unchanged"], summary["rejected"]) == (1, 4, 0)
    (pair, *_) = nearsim.succeed("pairs", "--format", "jsonl").rows()
    assert (pair["left"], pair["right"]) == ("f.txt", "g.txt")


def test_an_output_file_is_not_written_through_a_link_of_another_name(
    nearsim: CommandLine, stories: Path, tmp_path: Path
) -> None:
    nearsim.succeed("ingest", stories, "-q")
    (tmp_path / "precious").write_text("keep")
    for name in (f".pairs.csv.{os.getpid()}.part", ".pairs.csv.part"):
        (tmp_path / name).symlink_to(tmp_path / "precious")
    nearsim.succeed("pairs", "-o", tmp_path / "pairs.csv", "-q")
    assert (tmp_path / "precious").read_text() == "keep"
    assert (tmp_path / "pairs.csv").read_text().startswith("left,right")


def test_records_are_numbered_where_their_file_has_no_ids(nearsim: CommandLine, tmp_path: Path) -> None:
    without = write_jsonl(tmp_path / "1.jsonl", [{"text": STORM}, {"text": HARVEST}])
    partly = write_jsonl(tmp_path / "2.jsonl", [{"id": 5, "text": BRIDGE}, {"text": HARVEST}])
    (table := tmp_path / "3.csv").write_text(f"text\n{STORM}\n{STORM}\n")
    ran = nearsim.succeed("ingest", without, partly, table, "--json")
    assert [ran.document()[name] for name in ("read", "inserted", "rejected")] == [6, 5, 1]
    assert "warning: 4 records without an id: their ids are file and line" in ran.err
    assert [row["id"] for row in nearsim.succeed("export", "--keep", "all").rows()] == [
        *(f"{without}:{line}" for line in (1, 2)), "5", *(f"{table}:{line}" for line in (2, 3)),
    ]  # fmt: skip
    assert nearsim.succeed("ingest", without, "--json").document()["unchanged"] == 2
    assert "none of the 2 records is usable" in nearsim.fail(
        "ingest", without, "--id-field", "key", "-c", "other"
    )


def test_records_that_replace_those_of_another_file_are_counted(nearsim: CommandLine, tmp_path: Path) -> None:
    first = write_jsonl(tmp_path / "1.jsonl", [{"id": "a", "text": STORM}, {"id": "b", "text": HARVEST}])
    second = write_jsonl(tmp_path / "2.jsonl", [{"id": "a", "text": BRIDGE}, {"id": "b", "text": HARVEST}])
    reported = nearsim.succeed("ingest", first, second, "--json").document()
    names = ("read", "inserted", "updated", "unchanged", "rejected", "replaced")
    assert [reported[name] for name in names] == [4, 2, 1, 1, 0, 1]
    assert "id 'a' replaces that of" in nearsim.fail("ingest", first, second, "--strict", "-c", "strict")
    assert nearsim.succeed("ingest", second, "--json", "--strict").document()["replaced"] == 0


NEAR, ALL = counts(STORM, STORM_AGAIN)


def test_ingest_creates_the_profile_and_goes_on_with_the_same_recipe(
    nearsim: CommandLine, stories: Path
) -> None:
    above = ("--threshold", NEAR / ALL + 0.01)
    first = nearsim.succeed(
        "ingest", stories, "-p", "mine", *above, "--set", "shingle.k=3", "--json"
    ).document()
    assert [(one["profile"], one["pairs"]) for one in first["profiles"]] == [("mine", 1)]
    again = nearsim.succeed("ingest", stories, "-p", "mine", *above, "--json").document()
    assert (again["unchanged"], len(again["profiles"])) == (5, 1)
    assert nearsim.succeed("ingest", stories, "--profile", "mine", "--json").document()["unchanged"] == 5
    refused = nearsim.fail(
        "ingest", stories, "-p", "mine", "--threshold", 0.5, "--set", "shingle.k=2", exit_code=2
    )
    assert "shingle.k is 3, not 2" in refused
    command = "nearsim reindex start -p mine --preset default --set shingle.k=2 --threshold 0.5"
    assert f"to rebuild it: {command}; or name another profile with --profile" in refused
    nearsim.succeed(*command.split()[1:], "--promote", "--quiet")
    assert nearsim.succeed(
        "ingest", stories, "-p", "mine", "--threshold", 0.5, "--set", "shingle.k=2", "--json"
    ).document()["profiles"][0]["pairs"]


def test_nothing_is_created_without_a_document(nearsim: CommandLine, tmp_path: Path) -> None:
    for name, content in (
        ("a.csv", "Id,story\n1,x\n"),
        ("a.jsonl", '{"Id": "1", "story": "x"}\n'),
        ("a.txt", "\x00\x01\x02\x03" * 9),
    ):
        (tmp_path / name).write_text(content)
        nearsim.fail("ingest", tmp_path / name, "--preset", "headlines")
        assert nearsim.succeed("collection", "list", "--json").document() == []


def test_a_joined_key_that_no_record_has_is_reported(nearsim: CommandLine, tmp_path: Path) -> None:
    path = tmp_path / "a.jsonl"
    path.write_text('{"id": "1", "lead": "x"}\n{"id": "2", "lead": "y", "rest": "z"}\n')
    warned = nearsim.succeed("ingest", path, "--body-field", "lead,rest,typo").err
    assert "no record has 'typo', which --body-field names: the texts lack it" in warned
    assert "'rest'" not in warned


TABLE = """
CREATE SCHEMA app;
CREATE TABLE app.story (
    key uuid, headline text, body text, day date, price numeric, weights real[], embedding text, data jsonb,
    span int4range);
CREATE SEQUENCE app.counter
"""
ROW = "INSERT INTO app.story VALUES (%s, %s, %s, %s, 1.10, %s, %s, %s, '[1,3)')"
KEYS = [f"00000000-0000-0000-0000-00000000000{digit}" for digit in range(3)]
STORIES = "SELECT *, body LIKE '%storm%' AS \"about storms\" FROM app.story ORDER BY key;"
FIELDS = ("--id-field", "key", "--title-field", "headline", "--published-field", "day")


@pytest.fixture
def app(database_url: str) -> Iterator[psycopg.Connection]:
    with psycopg.connect(database_url, autocommit=True) as connection:
        connection.execute(TABLE)
        for key, text, day in zip(
            KEYS, (STORM, STORM_AGAIN, HARVEST), ("2024-05-31", "infinity", None), strict=True
        ):
            values = (key, "A title", text, day, [0.5, 1.0], "[1,2]", json.dumps({"a": [1]}))
            connection.execute(ROW, values)
        yield connection


def test_columns_become_documents(nearsim: CommandLine, app: psycopg.Connection, database_url: str) -> None:
    source = CommandLine({**nearsim.environment, "NEARSIM_SOURCE_URL": database_url})
    reported = source.succeed(
        "ingest", "--from-sql", STORIES, *FIELDS, "--vector-field", "weights", "--json"
    ).document()
    assert [reported[name] for name in ("inserted", "rejected", "unreadable_dates")] == [3, 0, 1]
    row, *_ = nearsim.succeed("export", "--keep", "all").rows()
    assert {name: row[name] for name in ("id", "title", "text", "published_at")} == {
        "id": KEYS[0],
        "title": "A title",
        "text": STORM,
        "published_at": "2024-05-31T00:00:00+00:00",
    }
    assert {name: row[name] for name in ("price", "embedding", "data", "span", "about storms")} == {
        "price": "1.10",
        "embedding": "[1,2]",
        "data": {"a": [1]},
        "span": "[1, 3)",
        "about storms": True,
    }
    vectors = [*FIELDS, "--vector-field", "embedding", "--from-url", database_url, "-c", "other"]
    shown = nearsim.succeed("ingest", "--from-sql", "TABLE app.story", *vectors)
    assert "line 2: 'day' 'infinity' is not a date or time in ISO 8601" in shown.err
    assert nearsim.succeed("export", "-c", "other", "--columns", "vector").rows() == [{"vector": [1, 2]}] * 2
    assert app.execute("SELECT count(*) FROM app.story").fetchone() == (3,)


def test_wrong_queries_are_refused(nearsim: CommandLine, app: psycopg.Connection, database_url: str) -> None:
    at = ("--from-url", database_url)
    for query, reason in (
        ("SELECT nextval('app.counter') AS id, body FROM app.story", "read-only transaction"),
        ("DELETE FROM app.story", "syntax error"),
        ("SELECT key, body FROM app.story", "--id-field"),
        ("SELECT key AS id, body, body FROM app.story", "duplicate column"),
        ("SELECT 1 / (2 - n) AS id, 'x' AS text FROM generate_series(1, 3) AS n", "division by zero"),
    ):
        assert reason in nearsim.fail("ingest", "--from-sql", query, *at)
    secret = "mysql://me:secret@host/db"
    assert "secret" not in nearsim.fail("ingest", "--from-sql", "SELECT 1", "--from-url", secret)


def test_a_query_on_sqlite_is_ingested(nearsim: CommandLine, tmp_path: Path) -> None:
    with closing(sqlite3.connect(tmp_path / "a.db")) as connection:
        connection.execute("CREATE TABLE product AS SELECT 7 AS sku, 'a lamp' AS name")
        connection.commit()
    query = "SELECT sku AS id, name AS title FROM product"
    nearsim.succeed("ingest", "--from-sqlite", tmp_path / "a.db", "--query", query)
    assert nearsim.succeed("export", "--columns", "id,title").rows() == [{"id": "7", "title": "a lamp"}]
