"""`normalise.drop_repeated` on the command line: what is left out is named, and an index refuses it."""

from pathlib import Path

import pytest

from tests.builders.command_line import CommandLine, write_jsonl
from tests.builders.pages import site


def test_what_is_left_out_is_named_and_a_missing_field_too(nearsim: CommandLine, tmp_path: Path) -> None:
    source, output = write_jsonl(tmp_path / "a.jsonl", site(10)), tmp_path / "o.jsonl"
    settings = ["--set", "normalise.html=true", "--set", "normalise.drop_repeated=host"]
    said = nearsim.succeed("dedupe", source, "-o", output, *settings).err
    assert "no record has 'host' (normalise.drop_repeated): all records count as pages of one source" in said
    assert "leaves out 1,210 lines with 2,490 words that recur" in said and "evening newsletter" in said
    assert output.read_text() == source.read_text()


@pytest.mark.slow("several commands")
def test_only_files_can_have_their_repeated_lines_left_out(nearsim: CommandLine, tmp_path: Path) -> None:
    source = write_jsonl(tmp_path / "a.jsonl", site(3))
    settings = ["--set", "normalise.drop_repeated=site"]
    for command in (["ingest", source], ["ingest", source, "--dry-run"], ["profile", "create", "default"]):
        message = nearsim.fail(*command, *settings, exit_code=2)
        assert "requires all pages of a source at once: only nearsim dedupe applies it" in message
    cut = ("cut", source, "-o", tmp_path / "o.jsonl")
    assert "only nearsim dedupe applies it" in nearsim.fail(*cut, *settings, exit_code=2)
