"""`dedupe` of CSV under `--quote` and `--escape`: what is written can be read with the same options."""

import csv
from collections.abc import Sequence
from pathlib import Path

import pytest

from tests.builders.command_line import HARVEST, STORM, CommandLine

REPEATED = " ".join(f"word{number}" for number in range(30)) + "."
NOTE = """it's "a, note" with a \\ in it"""

DIALECTS = [
    pytest.param(["--quote", "'"], {"quotechar": "'"}, id="quote"),
    pytest.param(["--escape", "\\"], {"escapechar": "\\"}, id="escape"),
    pytest.param(
        ["--quote", "none", "--escape", "\\"], {"quoting": csv.QUOTE_NONE, "escapechar": "\\"}, id="none"
    ),
    pytest.param(["--quote", "'", "--escape", "^"], {"quotechar": "'", "escapechar": "^"}, id="both"),
]
Rows = Sequence[Sequence[str]]


def write(path: Path, rows: Rows, dialect: dict[str, object]) -> Path:
    with path.open("w", newline="") as file:
        csv.writer(file, lineterminator="\n", **dialect).writerows(rows)  # type: ignore[arg-type]
    return path


def written(path: Path, dialect: dict[str, object]) -> list[list[str]]:
    with path.open(newline="") as file:
        return list(csv.reader(file, strict=True, **dialect))  # type: ignore[arg-type]


@pytest.mark.parametrize(("options", "dialect"), DIALECTS)
def test_rows_without_their_repeated_passages(
    nearsim: CommandLine, tmp_path: Path, options: list[str], dialect: dict[str, object]
) -> None:
    texts = [f"{REPEATED} {STORM}", f"{NOTE}, said the one. {REPEATED} {HARVEST}"]
    rows = [["id", "text", "note"], *([str(at), text, NOTE] for at, text in enumerate(texts))]
    source, output = write(tmp_path / "a.csv", rows, dialect), tmp_path / "o.csv"
    nearsim.succeed("dedupe", source, "--cut", *options, "-o", output, "-q")
    rows[2][1] = f"{NOTE}, said the one. {HARVEST}"
    assert written(output, dialect) == rows


@pytest.mark.parametrize(("options", "dialect"), DIALECTS)
def test_rows_with_marks(
    nearsim: CommandLine, tmp_path: Path, options: list[str], dialect: dict[str, object]
) -> None:
    rows = [["id", "text"], [NOTE, STORM], ["b", STORM]]
    source, output = write(tmp_path / "a.csv", rows, dialect), tmp_path / "o.csv"
    nearsim.succeed("dedupe", source, "--mark", *options, "-o", output, "-q")
    assert written(output, dialect)[1:] == [[*rows[1], "", "1", "2", ""], [*rows[2], NOTE, "1", "2", "1.0"]]


@pytest.mark.parametrize(("options", "dialect"), DIALECTS)
def test_rows_of_files_with_other_columns(
    nearsim: CommandLine, tmp_path: Path, options: list[str], dialect: dict[str, object]
) -> None:
    first = write(tmp_path / "a.csv", [["id", "text", "note"], ["a", STORM, NOTE]], dialect)
    second = write(tmp_path / "b.csv", [["note", "id", "text"], [NOTE, "b", HARVEST]], dialect)
    nearsim.succeed("dedupe", first, second, *options, "-o", tmp_path / "o.csv", "-q")
    assert written(tmp_path / "o.csv", dialect) == [
        ["id", "text", "note"],
        ["a", STORM, NOTE],
        ["b", HARVEST, NOTE],
    ]


def test_a_row_that_cannot_be_written_without_quotes_is_an_error(
    nearsim: CommandLine, tmp_path: Path
) -> None:
    (tmp_path / "a.csv").write_text(f"id;text\n1,5;{STORM}\n")
    (tmp_path / "b.csv").write_text(f"text;id\n{HARVEST};2\n")
    message = nearsim.fail(
        *("dedupe", tmp_path / "a.csv", tmp_path / "b.csv", "--delimiter", ";", "--quote", "none"),
        *("--mark", "--mark-prefix", "a;b", "-o", tmp_path / "o.csv"),
        exit_code=1,
    )
    assert "cannot be written without quotes; name an escape character (--escape)" in message
