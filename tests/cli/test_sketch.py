"""nearsim sketch: each step of a text, of two texts, and of documents of a collection."""

from pathlib import Path

import pytest

from tests.builders.command_line import HARVEST, STORM, STORM_AGAIN, CommandLine, write_jsonl


@pytest.fixture
def plain(tmp_path: Path) -> CommandLine:
    """`nearsim` where there is no database."""
    return CommandLine(
        {"NEARSIM_DATABASE_URL": "postgresql://nobody@127.0.0.1:1/nothing", "NEARSIM_HOME": str(tmp_path)}
    )


def test_every_step_of_a_text_is_a_table(plain: CommandLine) -> None:
    shown = plain.succeed(
        "sketch", "--preset", "riskiq", "--text", "he", "--set", "shingle.k=2", "--set", "sketch.k=10"
    ).out
    assert "he             5861128       1\n" in shown
    assert "    0   -1460590454     747279288     480357896\n" in shown
    assert "Buckets by djb2a-joined, 3 bands of 3 rows; 1 place unused:\n" in shown
    assert "   1     50441694    72057594088369630\n" in shown


def test_two_texts_are_compared_step_by_step(plain: CommandLine) -> None:
    shown = plain.succeed("sketch", "--text", "a b c d e", "--text", "a b c d f").out
    assert "b c d     " in shown and "c d e     " in shown
    assert "in common     a b c, b c d\n" in shown
    assert "similarity    0.5\n" in shown


def test_long_tables_end_with_the_number_of_rows(plain: CommandLine) -> None:
    shown = plain.succeed("sketch", "--text", "a b c d e").out
    assert "the first 50 of 128 places; --json has all\n" in shown


def test_json_has_every_value(plain: CommandLine) -> None:
    found = plain.succeed("sketch", "--text", "a b c d e", "--json").document()
    assert len(found["documents"][0]["signature"]) == found["k"] == 128
    assert [each["shingle"] for each in found["documents"][0]["shingles"]] == ["a b c", "b c d", "c d e"]


def test_documents_of_a_collection_are_sketched_by_their_profile(
    nearsim: CommandLine, tmp_path: Path
) -> None:
    records = [
        {"id": "storm", "text": STORM},
        {"id": "again", "text": STORM_AGAIN},
        {"id": "harvest", "text": HARVEST},
    ]
    nearsim.succeed("ingest", write_jsonl(tmp_path / "a.jsonl", records), "--set", "sketch.k=64")
    found = nearsim.succeed("sketch", "storm", "again", "--json").document()
    explained = nearsim.succeed("why", "storm", "again", "--json").document()
    assert found["k"] == 64
    assert [found["pair"]["score"][name] for name in ("similarity", "estimate", "shared_bands")] == [
        explained[name] for name in ("similarity", "estimate", "shared_bands")
    ]
    assert len(found["pair"]["shared_buckets"]) == len(explained["buckets"])


def test_documents_are_sketched_by_another_recipe(nearsim: CommandLine, tmp_path: Path) -> None:
    nearsim.succeed("ingest", write_jsonl(tmp_path / "a.jsonl", [{"id": "storm", "text": STORM}]))
    found = nearsim.succeed("sketch", "storm", "--preset", "realtime", "--json").document()
    assert found["family"] == "bottom_k"


def test_one_kind_of_text_has_to_be_given(plain: CommandLine) -> None:
    for arguments in ((), ("a", "--text", "b"), ("a", "b", "c")):
        assert "give one or two IDs, or --text once or twice" in plain.fail("sketch", *arguments, exit_code=2)
