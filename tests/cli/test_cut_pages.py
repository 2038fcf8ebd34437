"""`cut` of web pages: their texts are written, without the passages that earlier pages have."""

import json
from pathlib import Path

import pyarrow
import pyarrow.parquet
import pytest

from tests.builders.command_line import CommandLine, write_jsonl
from tests.builders.pages import page, words

NOTICE = f"{words('notice', 40)}."
STORIES = [f"{words(f'story{at}x', 60)}." for at in range(3)]
ROWS = [{"id": str(at), "n": at, "text": page(story, NOTICE)} for at, story in enumerate(STORIES)]
PLAIN = {"id": "plain", "n": 9, "text": "A plain text\nof two lines."}
MAIN = ("--set", "normalise.html=main")


def texts_of(nearsim: CommandLine, path: Path) -> list[str]:
    """The texts of a file of any format."""
    lines = path.with_name("lines.jsonl")
    nearsim.succeed("dedupe", path, "--exact", "-o", lines, "-q")
    return [json.loads(line)["text"] for line in lines.read_text().splitlines()]


@pytest.mark.parametrize("suffix", [".jsonl", ".csv", ".parquet"])
def test_articles_are_written_without_what_earlier_ones_have(
    nearsim: CommandLine, tmp_path: Path, suffix: str
) -> None:
    source, output = tmp_path / f"in{suffix}", tmp_path / f"out{suffix}"
    if suffix == ".parquet":
        pyarrow.parquet.write_table(pyarrow.Table.from_pylist([*ROWS, PLAIN]), source)
    elif suffix == ".csv":
        cells = [f'{row["id"]},{row["n"]},"{row["text"]}"' for row in (*ROWS, PLAIN)]
        source.write_text("\n".join(["id,n,text", *cells, ""]))
    else:
        write_jsonl(source, [*ROWS, PLAIN])
    cuts = tmp_path / "cuts.jsonl"
    nearsim.succeed("cut", source, "-o", output, "--cuts", cuts, *MAIN, "-q")
    assert texts_of(nearsim, output) == [f"{STORIES[0]}\n\n{NOTICE}", STORIES[1], STORIES[2], PLAIN["text"]]
    cut = [json.loads(line) for line in cuts.read_text().splitlines()]
    assert [(row["id"], row["kept_in"], row["start"]) for row in cut] == [
        (str(at), "0", len(STORIES[at])) for at in (1, 2)
    ]
    if suffix != ".parquet":
        assert output.read_bytes().endswith(source.read_bytes().splitlines()[-1] + b"\n")


def test_all_text_of_pages_is_written_without_repeated_menus(nearsim: CommandLine, tmp_path: Path) -> None:
    source, output = write_jsonl(tmp_path / "in.jsonl", ROWS), tmp_path / "out.jsonl"
    nearsim.succeed("cut", source, "-o", output, "--set", "normalise.html=true", "-q")
    first, second, third = texts_of(nearsim, output)
    assert first.startswith("section 0\n\nsection 1\n\n") and NOTICE in first
    assert (second.strip(), third.strip()) == (STORIES[1], STORIES[2])


def test_a_folder_of_pages_becomes_records_of_their_articles(nearsim: CommandLine, tmp_path: Path) -> None:
    folder, output = tmp_path / "site", tmp_path / "out.jsonl"
    folder.mkdir()
    for row in ROWS:
        (folder / f"{row['id']}.html").write_text(str(row["text"]))
    nearsim.succeed("cut", folder, "-o", output, *MAIN, "-q")
    rows = [json.loads(line) for line in output.read_text().splitlines()]
    assert [row["id"] for row in rows] == ["0.html", "1.html", "2.html"]
    assert texts_of(nearsim, output)[1:] == STORIES[1:]


def test_pages_in_two_fields_are_refused(nearsim: CommandLine, tmp_path: Path) -> None:
    rows = [{"id": "a", "lead": page(STORIES[0]), "rest": page(STORIES[1])}]
    source = write_jsonl(tmp_path / "in.jsonl", rows)
    message = nearsim.fail("cut", source, "-o", tmp_path / "o.jsonl", "--body-field", "lead,rest", *MAIN)
    assert "the text is joined from lead, rest; name one with --body-field" in message
