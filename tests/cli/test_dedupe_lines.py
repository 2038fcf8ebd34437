"""`dedupe` of lines of text and of columns without a header: what remains is written as it was."""

from pathlib import Path

import pytest

from tests.builders.command_line import CommandLine

FIRST = "the ferry to the island was closed for a second day said the harbour master"
LINES = f"{FIRST}\r\n\n{FIRST}\nanother line that is not like the others\n"


@pytest.mark.parametrize("name", ["unique.txt", "unique", "unique.log.gz"])
def test_lines_are_written_as_they_were(nearsim: CommandLine, tmp_path: Path, name: str) -> None:
    (tmp_path / "a.log").write_text(LINES, newline="")
    nearsim.succeed("dedupe", tmp_path / "a.log", "--input-format", "lines", "-o", tmp_path / name, "-q")
    nearsim.succeed(
        *("dedupe", tmp_path / name, "--input-format", "lines", "-o", tmp_path / "again.jsonl", "-q")
    )
    assert (tmp_path / "again.jsonl").read_text().splitlines() == [
        f'{{"text":"{FIRST}"}}',
        '{"text":"another line that is not like the others"}',
    ]
    if name == "unique":
        expected = f"{FIRST}\r\nanother line that is not like the others\n"
        assert (tmp_path / name).read_bytes().decode() == expected


def test_records_with_columns_are_not_written_as_lines(nearsim: CommandLine, tmp_path: Path) -> None:
    (tmp_path / "a.jsonl").write_text('{"id": 1, "text": "one"}\n')
    error = nearsim.fail(
        "dedupe", tmp_path / "a.jsonl", "--output-format", "lines", "-o", tmp_path / "o", exit_code=2
    )
    assert "--input-format lines" in error


def test_rows_without_a_header_are_written_without_one(nearsim: CommandLine, tmp_path: Path) -> None:
    (tmp_path / "a.csv").write_text(f'x,"{FIRST}"\ny,{FIRST}\nz,other words\n')
    nearsim.succeed(
        *("dedupe", tmp_path / "a.csv", "--no-header", "--id-field", "1", "--body-field", "2"),
        *("-o", tmp_path / "o.csv", "-q"),
    )
    assert (tmp_path / "o.csv").read_text() == f'x,"{FIRST}"\nz,other words\n'
