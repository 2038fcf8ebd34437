"""Isolation: commands of a tenant answer as they do its administrator, and show nothing of another tenant."""

from pathlib import Path

import psycopg
import pytest

from tests.builders.command_line import CommandLine, write_jsonl
from tests.builders.isolation_world import ALIKE, FOREIGN, World

READING = [
    *("similar plain-0 --format jsonl", "similar --file {text} --format jsonl"),
    *(
        "pairs --format jsonl",
        "clusters --format jsonl",
        "verdict list --format jsonl",
        "nearest --format jsonl",
    ),
    *("stats --json", "work list --json", "reindex status --json", "why plain-0 plain-1 --json"),
]
# What the server has in all, and sizes of tables that collections share.
_OF_SERVER = (
    "workers",
    "signature_bytes",
    "band_bytes",
    "pair_bytes",
    "cluster_bytes",
    "bytes",
    "bytes_per_document",
)


def as_user(url: str, home: Path) -> CommandLine:
    """The command line of a user."""
    return CommandLine({"NEARSIM_DATABASE_URL": url, "NEARSIM_HOME": str(home)})


def answers(line: CommandLine, command: str, collection: str, text: Path) -> object:
    """What a command prints about a collection, without what other collections determine."""
    printed = line.succeed(*command.format(text=text).split(), "--collection", collection)
    if "--format" in command:
        return printed.rows()
    found = printed.document()
    return [
        {name: value for name, value in one.items() if name not in _OF_SERVER}
        for one in (found if isinstance(found, list) else [found])
    ]


@pytest.mark.parametrize("command", READING)
def test_commands_answer_as_they_do_the_owner(world: World, tmp_path: Path, command: str) -> None:
    text = tmp_path / "text"
    text.write_text(ALIKE[0])
    for url in (world.reader, world.writer):
        found = answers(as_user(url, tmp_path), command, "north", text)
        assert found == answers(as_user(world.url, tmp_path), command, "north", text)
        assert not FOREIGN.search(str(found))


@pytest.mark.parametrize("command", READING)
def test_a_collection_of_another_tenant_is_like_a_missing_one(
    world: World, tmp_path: Path, command: str
) -> None:
    text = tmp_path / "text"
    text.write_text(ALIKE[0])
    line = as_user(world.reader, tmp_path)
    given = command.format(text=text).replace("plain", "secret").split()
    refused, missing = (line.fail(*given, "--collection", name) for name in ("secret", "nowhere"))
    assert refused.replace("secret", "nowhere") == missing.replace("secret", "nowhere")


def test_workers_are_counted_and_not_named(world: World) -> None:
    looks = "SELECT worker, silent_seconds >= 0, silent_seconds % 30 = 0 FROM nearsim_index.visible_workers"
    with psycopg.connect(world.reader) as connection:
        assert connection.execute(looks).fetchall() == [("worker", True, True)]
    with psycopg.connect(world.url) as connection:
        assert [row[0] for row in connection.execute(looks).fetchall()] == ["secret:1"]


def test_a_writer_ingests_into_its_own_collection(world: World, tmp_path: Path) -> None:
    file = write_jsonl(tmp_path / "new.jsonl", [{"id": "plain-9", "text": ALIKE[0]}])
    line, owner = as_user(world.writer, tmp_path), as_user(world.url, tmp_path)
    ingested = line.succeed("ingest", str(file), "--collection", "north", "--json")
    assert ingested.document()["inserted"] == 1
    assert (
        line.succeed("work", "list", "--collection", "north", "--json").document()
        == owner.succeed("work", "list", "--collection", "north", "--json").document()
    )
    owner.succeed("build", "--collection", "north", "--quiet")
    assert {"plain-0", "plain-2"} <= {
        one["id"]
        for one in line.succeed("similar", "plain-9", "--collection", "north", "--format", "jsonl").rows()
    }
    with psycopg.connect(world.url) as connection:
        looks = (
            "SELECT count(*), max(updated_at) FROM nearsim.document "
            "JOIN nearsim.collection USING (collection_id) WHERE name = 'secret'"
        )
        before = connection.execute(looks).fetchone()
        connection.rollback()
        line.fail("ingest", str(file), "--collection", "secret", "--quiet")
        as_user(world.reader, tmp_path).fail("ingest", str(file), "--collection", "north", "--quiet")
        assert connection.execute(looks).fetchone() == before
