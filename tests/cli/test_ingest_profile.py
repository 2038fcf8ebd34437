"""`nearsim ingest` makes the profile of a collection, and leaves nothing behind if there is nothing to write."""

from pathlib import Path

import pytest

from tests.builders.command_line import STORM, STORM_AGAIN, CommandLine, counts, write_jsonl

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


@pytest.mark.parametrize(
    ("name", "content", "reason"),
    [
        ("a.csv", "Id,story\n1,x\n", "no column 'id'"),
        ("a.jsonl", '{"Id": "1", "text": "x"}\n', "the only record is not usable"),
        ("a.txt", "\x00\x01\x02\x03" * 9, "the only record is not usable"),
    ],
)
def test_nothing_is_created_without_a_document(
    nearsim: CommandLine, tmp_path: Path, name: str, content: str, reason: str
) -> None:
    path = tmp_path / name
    path.write_text(content)
    outcome = nearsim.run("ingest", path, "--preset", "headlines")
    assert outcome.exit_code == 1 and reason in outcome.err and "kept" not in outcome.err
    assert "profile" not in outcome.out
    assert nearsim.succeed("collection", "list", "--json").document() == []


def test_rejects_before_the_first_document_are_counted(nearsim: CommandLine, tmp_path: Path) -> None:
    path = write_jsonl(tmp_path / "a.jsonl", [{"text": "no id"}, {"id": "1", "text": STORM}, {"id": ""}])
    reported = nearsim.succeed("ingest", path, "--json").document()
    assert (reported["read"], reported["inserted"], reported["rejected"]) == (3, 1, 2)
