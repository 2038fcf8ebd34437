"""Commands that read a collection that does not exist."""

from pathlib import Path

import pytest

from tests.builders.command_line import CommandLine

READING = [
    "check --text words",
    "similar --text words",
    "similar a",
    "pairs",
    "clusters",
    "clusters --show a",
    "nearest",
    "verdict list",
    "events --collection default",
    "work list --collection default",
    "stats",
    "document get a",
    "export --output exported.jsonl",
    "why a b",
    "why-not a b",
    "passages a b",
    "passages --common",
    "verify-index",
    "report --output report.html",
    "profile list",
    "reindex status",
    "curve --profile default",
    "tune --collection default",
    "collection show default",
    "review --no-browser",
]


@pytest.mark.parametrize("command", READING)
def test_a_command_that_reads_refuses_a_missing_collection(nearsim: CommandLine, command: str) -> None:
    message = nearsim.fail(*command.split())
    assert "collection 'default' does not exist in database " in message
    assert "existing collections: none yet" in message


@pytest.fixture
def renamed(filled: CommandLine) -> CommandLine:
    """The stories in the only collection, which is not named default."""
    filled.succeed("collection", "rename", "default", "news")
    return filled


@pytest.mark.parametrize(
    "command",
    [
        "pairs",
        "similar storm",
        "document get storm",
        "stats",
        "build",
        "reindex status",
        "profile show default",
    ],
)
def test_the_only_collection_is_the_default(renamed: CommandLine, command: str) -> None:
    assert (
        renamed.succeed(*command.split(), "--json").out
        == renamed.succeed(*command.split(), "-c", "news", "--json").out
    )


def test_the_collection_named_default_comes_before_the_only_one(renamed: CommandLine) -> None:
    renamed.succeed("collection", "create", "default")
    assert renamed.succeed("pairs", "--json").document() == []


def test_of_several_collections_one_must_be_named(renamed: CommandLine) -> None:
    renamed.succeed("collection", "create", "archive")
    message = renamed.fail("pairs")
    assert "collection 'default' does not exist" in message
    assert "existing collections: archive, news" in message


def test_the_default_name_is_not_replaced_where_it_is_given(renamed: CommandLine) -> None:
    assert "collection 'default' does not exist" in renamed.fail("pairs", "-c", "default")


def test_ingest_creates_its_own_collection_beside_the_only_one(renamed: CommandLine, stories: Path) -> None:
    renamed.succeed("ingest", stories)
    names = [row["collection"] for row in renamed.succeed("collection", "list", "--json").document()]
    assert names == ["default", "news"]


def test_missing_ok_means_the_collection_that_ingest_creates(renamed: CommandLine, stories: Path) -> None:
    rows = renamed.succeed("check", stories, "--missing-ok", "--format", "jsonl").rows()
    assert not any(row["duplicate"] for row in rows)


def test_check_reports_no_duplicates_with_missing_ok(nearsim: CommandLine, stories: Path) -> None:
    rows = nearsim.succeed("check", stories, "--missing-ok", "--exit-code", "--format", "jsonl").rows()
    assert len(rows) == 5
    assert not any(row["duplicate"] for row in rows)


def test_missing_ok_does_not_excuse_a_missing_profile(filled: CommandLine) -> None:
    assert "no profile 'typo'" in filled.fail("check", "--text", "words", "-p", "typo", "--missing-ok")


def test_nearest_of_a_file_names_the_command_that_needs_no_collection(
    nearsim: CommandLine, stories: Path
) -> None:
    message = nearsim.fail("nearest", stories)
    assert f"nearsim dedupe {stories} -o kept.jsonl --pairs pairs.jsonl" in message


def test_a_misspelt_file_to_compare_with_starts_no_server(stories: Path, tmp_path: Path) -> None:
    home = tmp_path / "home"
    without_database = CommandLine({"NEARSIM_DATABASE_URL": "", "NEARSIM_HOME": str(home)})
    message = without_database.fail(
        "dedupe", stories, "--against", "yesterday", "-o", tmp_path / "kept.jsonl"
    )
    assert "--against yesterday is neither a file nor a folder, and there is no database" in message
    assert not home.exists()
