"""`nearsim ingest` makes the profile of a collection, and leaves nothing behind if there is nothing to write."""

from pathlib import Path

from tests.builders.command_line import STORM, STORM_AGAIN, CommandLine
from tests.builders.word_sets import counts

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
