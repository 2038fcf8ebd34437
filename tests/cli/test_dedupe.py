"""nearsim dedupe: files without their near-duplicates, outputs written atomically, no database."""

import gzip
import json
import tempfile
from pathlib import Path

import pyarrow
import pyarrow.parquet
import pytest

from tests.builders.command_line import (
    BRIDGE,
    HARVEST,
    STORM,
    STORM_AGAIN,
    STORM_LATER,
    CommandLine,
    write_jsonl,
)

PLACES = ("left_place", "right_place")


@pytest.fixture
def unique(tmp_path: Path) -> Path:
    return tmp_path / "unique.jsonl"


def test_kept_lines_are_copied_byte_for_byte(nearsim: CommandLine, tmp_path: Path, unique: Path) -> None:
    lines = [
        json.dumps({"text": STORM, "id": "storm", "extra": [1, 2.50]}),
        "",
        json.dumps({"id": "storm-again", "text": STORM_AGAIN}),
        '{ "id" : 7 , "text" : "' + HARVEST + ' \\u00e9" }\r',
        "{broken",
        json.dumps({"id": "empty", "text": ""}),
        json.dumps({"id": "twin", "text": STORM}),
        json.dumps({"id": "bridge", "text": BRIDGE}),
    ]
    path = tmp_path / "stories.jsonl.gz"
    path.write_bytes(gzip.compress("\n".join(lines).encode()))
    rejects = tmp_path / "rejects.jsonl"
    reported = nearsim.succeed("dedupe", path, "-o", unique, "--rejects", rejects, "--json").document()
    assert unique.read_bytes() == "".join(f"{lines[at]}\n" for at in (0, 3, 5, 7)).encode()
    assert [json.loads(line)["line"] for line in rejects.read_text().splitlines()] == [5]
    assert {name: reported[name] for name in ("read", "unique", "duplicates", "rejected")} == {
        "read": 7,
        "unique": 4,
        "duplicates": 2,
        "rejected": 1,
    }


def test_pairs_clusters_and_rejects_on_request(
    nearsim: CommandLine, stories: Path, tmp_path: Path, unique: Path
) -> None:
    stories.write_text(stories.read_text() + "{broken\n")
    named = {name: tmp_path / f"{name}.jsonl" for name in ("pairs", "clusters", "rejects")}
    options = [word for name, path in named.items() for word in (f"--{name}", path)]
    shown = nearsim.succeed("dedupe", stories, "--output", unique, *options).out
    assert f"unique               3 written to {unique}\n" in shown
    assert f"rejected: {stories}, line 6: not JSON" in shown
    rows = {
        name: [json.loads(line) for line in path.read_text().splitlines()] for name, path in named.items()
    }
    assert {(row["left"], row["right"]) for row in rows["pairs"]} == {
        ("storm", "storm-again"),
        ("storm-again", "storm-twin"),
        ("storm", "storm-twin"),
    }
    assert [row["survivor"] for row in rows["clusters"]] == ["storm"]
    assert [row["line"] for row in rows["rejects"]] == [6]


def test_ids_that_recur_remove_no_distinct_text(nearsim: CommandLine, tmp_path: Path, unique: Path) -> None:
    first = write_jsonl(
        tmp_path / "first.jsonl",
        [{"id": "a", "text": STORM}, {"id": "b", "text": HARVEST}, {"id": "a", "text": BRIDGE}],
    )
    second = write_jsonl(
        tmp_path / "second.jsonl", [{"id": "a", "text": STORM_AGAIN}, {"id": "b", "text": HARVEST}]
    )
    pairs, clusters = tmp_path / "pairs.jsonl", tmp_path / "clusters.jsonl"
    named = ("--pairs", pairs, "--clusters", clusters, "-q")
    nearsim.succeed("dedupe", first, second, "--output", unique, *named)
    assert unique.read_text() == first.read_text()
    found = [json.loads(line) for line in pairs.read_text().splitlines()]
    places = [(Path(one[side]["file"]).stem, one[side]["line"]) for one in found for side in PLACES]
    assert sorted(places) == [("first", 1), ("first", 2), ("second", 1), ("second", 2)]
    grouped = [json.loads(line) for line in clusters.read_text().splitlines()]
    assert sorted(one["survivor_place"]["line"] for one in grouped) == [1, 2]
    assert all(one["members"] == [one["survivor"]] * 2 and len(one["places"]) == 2 for one in grouped)


@pytest.mark.parametrize("suffix", [".jsonl", ".json", ".csv", ".parquet"])
def test_records_need_no_id(nearsim: CommandLine, tmp_path: Path, unique: Path, suffix: str) -> None:
    file, pairs = tmp_path / f"in{suffix}", tmp_path / "pairs.jsonl"
    records = [{"text": text} for text in (STORM, HARVEST, STORM)]
    if suffix == ".parquet":
        pyarrow.parquet.write_table(pyarrow.Table.from_pylist(records), file)
    else:
        rows = ["text", *(json.dumps(one["text"]) for one in records)]
        lines = map(json.dumps, records)
        file.write_text({".json": json.dumps(records), ".csv": "\n".join(rows)}.get(suffix, "\n".join(lines)))
    found = nearsim.succeed("dedupe", file, "-o", unique, "--pairs", pairs, "--json").document()
    assert (found["read"], found["unique"], found["duplicates"], found["rejected"]) == (3, 2, 1, 0)
    (pair,) = map(json.loads, pairs.read_text().splitlines())
    assert (pair["left_place"]["record"], pair["right_place"]["record"]) == (1, 3)
    assert "'key'" in nearsim.fail("dedupe", file, "-o", unique, "--id-field", "key")


def test_recipe_is_applied(nearsim: CommandLine, tmp_path: Path, unique: Path) -> None:
    path = write_jsonl(
        tmp_path / "three.jsonl",
        [{"id": "a", "text": STORM}, {"id": "b", "text": STORM_LATER}, {"id": "c", "text": STORM_AGAIN}],
    )
    recipe = tmp_path / "recipe.toml"
    recipe.write_text('[cluster]\nkeep = "longest"\n')
    for options, ids in (
        (["--threshold", "0.99"], ["a", "b", "c"]),
        (["--recipe", recipe], ["b"]),
        (["--set", "cluster.keep=latest", "--preset", "default"], ["c"]),
    ):
        nearsim.succeed("dedupe", path, "--output", unique, "-q", *options)
        assert [json.loads(line)["id"] for line in unique.read_text().splitlines()] == ids


def test_csv_stays_csv_and_standard_input_is_spooled(
    nearsim: CommandLine, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    spool = tmp_path / "spool"
    spool.mkdir()
    monkeypatch.setattr(tempfile, "tempdir", str(spool))
    rows = [f"1;=Café;{STORM}\r\n", f'"2";;"{STORM_AGAIN}"\r\n', f"3;x;{HARVEST}\r\n"]
    given = gzip.compress("".join(["id;title;text\r\n", *rows]).encode("cp1252"))
    reading = ("--input-format", "csv", "--delimiter", ";", "--encoding", "cp1252", "--body-field", "text")
    output, pairs = tmp_path / "unique", tmp_path / "pairs"
    command = ("dedupe", "-", "-o", output, "--pairs", pairs, "--set", 'fields=["body"]', *reading)
    reported = nearsim.succeed(*command, given=given)
    assert output.read_bytes().decode() == "".join(["id;title;text\r\n", rows[0], rows[2]])
    assert "warning: standard input is compressed with gzip, and was decompressed" in reported.err
    assert json.loads(pairs.read_text())["left_place"] == {"file": "-", "line": 2, "record": 1}
    assert list(spool.iterdir()) == []


def test_output_may_replace_its_input(nearsim: CommandLine, stories: Path) -> None:
    before = stories.read_bytes().splitlines(keepends=True)
    stories.chmod(0o640)
    nearsim.succeed("dedupe", stories, "--output", stories, "-q")
    assert stories.read_bytes().splitlines(keepends=True) == [before[0], before[3], before[4]]
    assert stories.stat().st_mode & 0o777 == 0o640


def test_standard_output_has_only_kept_records(nearsim: CommandLine, stories: Path, unique: Path) -> None:
    nearsim.succeed("dedupe", stories, "-o", unique, "-q")
    reported = nearsim.succeed("dedupe", stories, "-o", "-")
    assert reported.out == unique.read_text()
    assert "unique               3 written to standard output\n" in reported.err
    reported = nearsim.succeed("dedupe", stories, "-o", unique, "--clusters", "-", "--json")
    assert [row["survivor"] for row in reported.rows()] == ["storm"]
    assert json.loads(reported.err)["unique"] == 3
    assert not Path("-").exists()


def test_input_without_usable_records_is_not_replaced(nearsim: CommandLine, tmp_path: Path) -> None:
    path, rejects = tmp_path / "broken.jsonl", tmp_path / "rejects.jsonl"
    path.write_text("{broken\n[]\n")
    reported = nearsim.fail("dedupe", path, "--output", path, "--rejects", rejects, "--quiet")
    assert "none of the 2 records is usable (1: not JSON" in reported
    assert path.read_text() == "{broken\n[]\n" and len(rejects.read_text().splitlines()) == 2


def test_rejected_records_are_never_silent(nearsim: CommandLine, tmp_path: Path, unique: Path) -> None:
    path = tmp_path / "mixed.jsonl"
    path.write_text(json.dumps({"id": "a", "text": STORM}) + "\n[]" * 3 + "\n")
    ended = nearsim.run("dedupe", path, "--output", unique, "--quiet")
    assert ended.exit_code == 1 and "3 of 4 records were rejected (3: " in ended.err
    assert unique.read_text().count("\n") == 1
    assert nearsim.run("dedupe", path, "-o", unique, "-q", "--max-rejected", "2").exit_code == 1
    for allowed in (("--max-rejected", "3"), ("--rejects", tmp_path / "rejects.jsonl")):
        warned = nearsim.succeed("dedupe", path, "--output", unique, "--quiet", *allowed).err
        assert warned.startswith("warning: 3 of 4 records were rejected (3: ")
    unique.unlink()
    assert "line 2" in nearsim.fail("dedupe", path, "--output", unique, "--strict")
    assert not unique.exists()
    before = path.read_text()
    assert "both input and output" in nearsim.fail("dedupe", path, "--output", path)
    assert path.read_text() == before


def test_dates_of_feeds_are_read_and_unreadable_ones_counted(
    nearsim: CommandLine, tmp_path: Path, unique: Path
) -> None:
    dates = ("Tue, 02 Jan 2024 10:00:00 GMT", 1704189600, "1704189600000", "2024-01-01", "the other day")
    texts = (STORM, STORM_AGAIN, STORM, STORM, HARVEST)
    given = [
        {"id": str(at), "text": text, "published_at": when}
        for at, (text, when) in enumerate(zip(texts, dates, strict=True))
    ]
    path = write_jsonl(tmp_path / "feed.jsonl", given)
    ended = nearsim.succeed("dedupe", path, "--output", unique, "-q")
    assert [json.loads(line)["id"] for line in unique.read_text().splitlines()] == ["3", "4"]
    assert "1 record is kept without its date, which cannot be read" in ended.err and "line 5" in ended.err
    assert "line 5" in nearsim.fail("dedupe", path, "--output", unique, "--strict")
    reported = nearsim.succeed("ingest", path, "--json").document()
    assert (reported["inserted"], reported["rejected"], reported["unreadable_dates"]) == (5, 0, 1)
    moments = {row["id"]: row["published_at"] for row in nearsim.succeed("export", "--keep", "all").rows()}
    assert {moments[one] for one in "012"} == {"2024-01-02T10:00:00+00:00"} and moments["4"] is None


def test_failure_writes_nothing_and_leaves_nothing_behind(
    nearsim: CommandLine, stories: Path, tmp_path: Path, unique: Path
) -> None:
    packed = gzip.compress(stories.read_bytes())
    cut = tmp_path / "cut.jsonl.gz"
    cut.write_bytes(packed[:-20])
    reported = nearsim.fail("dedupe", cut, "--output", unique)
    assert "truncated" in reported and "kept" not in reported
    assert not unique.exists()


@pytest.mark.parametrize("option", ["--pairs", "--clusters", "--rejects"])
def test_inputs_are_not_overwritten_by_other_outputs(
    nearsim: CommandLine, tmp_path: Path, option: str
) -> None:
    file = tmp_path / "in.jsonl"
    file.write_text('{"id": "a", "text": "some words"}\n', encoding="utf-8")
    done = nearsim.run("dedupe", file, "--output", tmp_path / "out.jsonl", option, file)
    assert done.exit_code == 1 and "name another output file" in done.err
    assert file.read_text(encoding="utf-8") == '{"id": "a", "text": "some words"}\n'


def test_rejects_of_an_ingest_never_replace_its_input(nearsim: CommandLine, tmp_path: Path) -> None:
    file = tmp_path / "in.jsonl"
    file.write_text('{"id": "a", "text": "some words"}\n', encoding="utf-8")
    link = tmp_path / "link.jsonl"
    link.symlink_to(file)
    done = nearsim.run("ingest", file, "--rejects", link)
    assert done.exit_code == 1 and "name another output file" in done.err
    assert file.stat().st_size > 0
