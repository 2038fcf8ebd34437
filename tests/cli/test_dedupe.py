"""nearsim dedupe: files without their near-duplicates, outputs written atomically, no database."""

import csv
import gzip
import json
import os
import shutil
import sqlite3
import subprocess
import sys
import tempfile
from contextlib import closing
from pathlib import Path

import networkx
import pyarrow
import pyarrow.parquet
import pytest

from tests.builders.command_line import BRIDGE, HARVEST, STORM, STORM_AGAIN, CommandLine, write_jsonl
from tests.indexing.test_containment import grams, held, make_texts, true_pairs


@pytest.fixture
def unique(tmp_path: Path) -> Path:
    return tmp_path / "unique.jsonl"


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
    packed = tmp_path / "pairs.jsonl.gz"
    nearsim.succeed("dedupe", stories, "-o", unique, "--pairs", packed, "--max-rejected", "1", "-q")
    assert gzip.decompress(packed.read_bytes()) == named["pairs"].read_bytes()
    assert "not compressed" in nearsim.fail("dedupe", stories, "-o", unique, "--rejects", packed)
    assert [row["line"] for row in rows["rejects"]] == [6]


def test_all_columns_of_a_table_of_sqlite_are_written(nearsim: CommandLine, tmp_path: Path) -> None:
    with closing(sqlite3.connect(tmp_path / "a.db")) as connection:
        connection.execute("CREATE TABLE product (id INTEGER, text TEXT, price REAL)")
        rows = [(1, STORM, 9.5), (2, STORM, 8), (3, HARVEST, None)]
        connection.executemany("INSERT INTO product VALUES (?, ?, ?)", rows)
        connection.commit()
    output = tmp_path / "out.csv"
    nearsim.succeed("dedupe", "--from-sqlite", tmp_path / "a.db", "--table", "product", "-o", output)
    assert output.read_text() == f"id,text,price\n1,{STORM},9.5\n3,{HARVEST},\n"


def test_a_folder_of_mail_is_written_to_one_file(nearsim: CommandLine, tmp_path: Path) -> None:
    inputs = tmp_path / "mail"
    inputs.mkdir()
    for name in ("a", "b"):
        (inputs / f"{name}.eml").write_text(f"Subject: storm\nMessage-ID: <{name}>\n\n{STORM}\n")
    refused = nearsim.fail("dedupe", inputs, "-o", f"{tmp_path}/out/")
    assert "files of its format are not written; name an output file, not a folder" in refused
    nearsim.succeed("dedupe", inputs, "-o", tmp_path / "out.jsonl")
    (kept,) = (tmp_path / "out.jsonl").read_text().splitlines()
    assert json.loads(kept) == {"id": "a", "title": "storm", "text": f"{STORM}\n"}


def test_records_need_no_id(nearsim: CommandLine, tmp_path: Path, unique: Path) -> None:
    file, pairs = (
        write_jsonl(tmp_path / "in.jsonl", [{"text": one} for one in (STORM, HARVEST, STORM)]),
        tmp_path / "p",
    )
    table = tmp_path / "in.csv"
    table.write_text(f"text\n{STORM}\n{HARVEST}\n{STORM}\n")
    for given in (file, table):
        found = nearsim.succeed("dedupe", given, "-o", unique, "--pairs", pairs, "--json").document()
        assert [found[name] for name in ("read", "unique", "duplicates", "rejected")] == [3, 2, 1, 0]
        (pair,) = map(json.loads, pairs.read_text().splitlines())
        assert (pair["left_place"]["record"], pair["right_place"]["record"]) == (1, 3)
        assert (pair["left"], pair["right"]) == tuple(
            f"{given}:{pair[f'{side}_place']['line']}" for side in ("left", "right")
        )
        assert "'key'" in nearsim.fail("dedupe", given, "-o", unique, "--id-field", "key")


def test_no_record_is_lost_for_its_id(nearsim: CommandLine, tmp_path: Path, unique: Path) -> None:
    values: list[object] = ["a", "a", 7, 7.0, 1.5, None, "", True, {"$oid": "x"}, ["a"], "x" * 2_000, 1e300]
    records: list[dict[str, object]] = [
        {"id": value, "text": " ".join(f"{at}x{n}" for n in range(9))} for at, value in enumerate(values)
    ]
    path = write_jsonl(tmp_path / "in.jsonl", [*records, {"text": "none of its own"}])
    pairs = tmp_path / "pairs.jsonl"
    copy = Path(shutil.copy(path, tmp_path / "copy.jsonl"))
    done = nearsim.succeed("dedupe", path, copy, "-o", unique, "--pairs", pairs, "--json").document()
    assert [done[name] for name in ("read", "unique", "duplicates", "rejected")] == [26, 13, 13, 0]
    assert unique.read_bytes() == path.read_bytes()
    rows = [json.loads(line) for line in pairs.read_text().splitlines()]
    found = [row["left"] for row in rows]
    numbered = [f"{path}:{line}" for line in (6, 7, 8, 9, 10, 11, 12, 13)]
    assert found == ["a", "a", "7", "7", "1.5", *numbered]
    for row in rows:
        assert row["right_place"] == {**row["left_place"], "file": str(copy)}


def test_ids_in_objects_and_of_several_fields(nearsim: CommandLine, tmp_path: Path, unique: Path) -> None:
    records: list[dict[str, object]] = [
        {"meta": {"id": 1, "of": "a:b"}, "author": {"name": "wire"}, "n": 2, "text": STORM},
        {"meta": {"id": 2, "of": "a"}, "author": {"name": "blog"}, "n": "b:2", "text": STORM},
    ]
    path, pairs = write_jsonl(tmp_path / "in.jsonl", records), tmp_path / "pairs.jsonl"
    for field, ids in (("meta.id", ["1", "2"]), ("meta.of,n", ["a\\:b:2", "a:b\\:2"])):
        options = ("--id-field", field, "--source-field", "author.name", "--set", "cluster.keep=source:blog")
        nearsim.succeed("dedupe", path, "-o", unique, "--pairs", pairs, *options)
        assert [json.loads(pairs.read_text())[side] for side in ("left", "right")] == ids
        assert json.loads(unique.read_text())["n"] == "b:2"
    assert "'meta.no'" in nearsim.fail("dedupe", path, "-o", unique, "--id-field", "meta.no")


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
    reported = nearsim.succeed(*command, stdin=given)
    assert output.read_bytes().decode() == "".join(["id;title;text\r\n", rows[0], rows[2]])
    assert "warning: standard input is compressed with gzip, and was decompressed" in reported.err
    assert json.loads(pairs.read_text())["left_place"] == {"file": "-", "line": 2, "record": 1}
    assert list(spool.iterdir()) == []


def test_temporary_files_are_deleted_on_sigterm(stories: Path, tmp_path: Path, unique: Path) -> None:
    (spool := tmp_path / "spool").mkdir()
    os.mkfifo(pipe := tmp_path / "old.jsonl")
    command = [sys.executable, "-m", "nearsim_db", "dedupe", "-", "--against", str(pipe), "-o", str(unique)]
    with (
        stories.open() as given,
        subprocess.Popen(command, stdin=given, env={**os.environ, "TMPDIR": str(spool)}) as process,
        pipe.open("w"),
    ):
        assert list(spool.iterdir())
        process.terminate()
        assert process.wait() == 143
    assert list(spool.iterdir()) == []


def test_output_may_replace_its_input(nearsim: CommandLine, stories: Path) -> None:
    before = stories.read_bytes().splitlines(keepends=True)
    stories.chmod(0o640)
    assert "--output" in nearsim.fail("dedupe", stories, "--output", "", exit_code=2)
    assert "is ''" in nearsim.fail("dedupe", "", "--output", stories, exit_code=2)
    assert stories.read_bytes().splitlines(keepends=True) == before
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


def test_rejected_records_are_never_silent(nearsim: CommandLine, tmp_path: Path, unique: Path) -> None:
    path, rejects = tmp_path / "mixed.jsonl", tmp_path / "rejects.jsonl"
    path.write_text(json.dumps({"id": "a", "text": STORM}) + "\n[]" * 3 + "\n")
    before = path.read_text()
    ended = nearsim.run("dedupe", path, "--output", unique, "--quiet")
    assert ended.exit_code == 3 and "3 of 4 records were rejected" in ended.err
    assert unique.read_text().count("\n") == 1
    assert nearsim.run("dedupe", path, "-o", unique, "-q", "--max-rejected", "2").exit_code == 3
    for allowed in (("--max-rejected", "3"), ("--rejects", rejects)):
        assert "3 of 4" in nearsim.succeed("dedupe", path, "--output", unique, "--quiet", *allowed).err
    unique.unlink()
    assert "line 2" in nearsim.fail("dedupe", path, "--output", unique, "--strict")
    assert "both input and output" in nearsim.fail("dedupe", path, "--output", path)
    for option in ("--pairs", "--clusters", "--rejects"):
        assert "name another output" in nearsim.fail("dedupe", path, "--output", unique, option, path)
        (same := tmp_path / f"{option}.jsonl").symlink_to(unique)
        assert "different files" in nearsim.fail("dedupe", path, "-o", unique, option, same, exit_code=2)
    (link := tmp_path / "link.jsonl").symlink_to(path)
    assert "name another output" in nearsim.fail("ingest", path, "--rejects", link)
    assert path.read_text() == before and not unique.exists()
    path.write_text("{broken\n[]\n")
    assert "none of the 2 records" in nearsim.fail("dedupe", path, "-o", path, "--rejects", rejects, "-q")
    assert path.read_text() == "{broken\n[]\n" and len(rejects.read_text().splitlines()) == 2


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
    assert "1 record is kept without its date" in ended.err
    assert "line 5" in nearsim.fail("dedupe", path, "--output", unique, "--strict")
    reported = nearsim.succeed("ingest", path, "--json").document()
    assert (reported["inserted"], reported["rejected"], reported["unreadable_dates"]) == (5, 0, 1)
    moments = {row["id"]: row["published_at"] for row in nearsim.succeed("export", "--keep", "all").rows()}
    assert {moments[one] for one in "012"} == {"2024-01-02T10:00:00+00:00"} and moments["4"] is None


def test_against_files_and_collections(nearsim: CommandLine, tmp_path: Path, unique: Path) -> None:
    nearsim.succeed(
        "ingest", write_jsonl(tmp_path / "c.jsonl", [{"id": "c", "text": BRIDGE}]), "-c", "library"
    )
    (old := tmp_path / "old.csv").write_text(f"id,text\no,{STORM}\n,{HARVEST}\nbroken\n")
    texts = {"a": STORM_AGAIN, "b": BRIDGE, "c": "news of the day", "d": "news of the day", "e": HARVEST}
    new = write_jsonl(tmp_path / "new.jsonl", [{"id": key, "text": text} for key, text in texts.items()])
    pairs = tmp_path / "pairs.jsonl"
    command = ("dedupe", new, "-o", unique, "--pairs", pairs, "--against", old, "--against", "library")
    ended = nearsim.run(*command, "--json")
    assert ended.exit_code == 3 and "1 of 9 records was rejected" in ended.err
    counts = nearsim.succeed(*command, "--max-rejected", "1", "--json").document()
    assert [counts[name] for name in ("read", "unique", "duplicates", "rejected")] == [5, 1, 4, 0]
    assert counts["against"] == {"read": 4, "rejected": 1, "duplicates": 3}
    assert [json.loads(line)["id"] for line in unique.read_text().splitlines()] == ["c"]
    found = [json.loads(line) for line in pairs.read_text().splitlines()]
    assert {(one["left"], one["right"], one["left_place"]["file"]) for one in found} == {
        ("o", "a", str(old)), ("c", "b", "library"), ("c", "d", str(new)), (f"{old}:3", "e", str(old)),
    }  # fmt: skip
    shown = nearsim.succeed(*command, "--only-against", "--max-rejected", "1").out
    assert "unique               2 written" in shown and "4 read, 1 of them rejected" in shown
    assert "collection 'nowhere' does not exist" in nearsim.fail(
        "dedupe", new, "-o", unique, "--against", "nowhere"
    )
    assert "cannot read" in nearsim.fail("dedupe", new, "-o", unique, "--against", "nowhere.jsonl")
    assert "both input and output" in nearsim.fail("dedupe", new, "-o", old, "--against", old)
    for twice in (("-", "--against", "-"), ("-", "-")):
        assert "read once" in nearsim.fail("dedupe", *twice, "-o", unique, exit_code=2)
    for options in (("--only-against",), ("--against", old, "--clusters", pairs)):
        assert "--against" in nearsim.fail("dedupe", new, "-o", unique, *options, exit_code=2)
    nearsim.succeed("dedupe", new, "-o", unique, "--against", "-", stdin=new.read_bytes())
    assert unique.read_text() == ""


def test_only_pairs_across_the_values_of_a_column_count(
    nearsim: CommandLine, tmp_path: Path, unique: Path
) -> None:
    one = write_jsonl(tmp_path / "1.jsonl", [{"meta": {"lang": "en"}, "source": "a", "text": STORM}] * 2)
    other = write_jsonl(tmp_path / "2.jsonl", [{"meta": {"lang": 1}, "source": "a", "text": STORM}])
    for field, kept in (("file", 1), ("meta.lang", 1), ("source", 3)):
        done = nearsim.succeed("dedupe", one, other, "-o", unique, "--across", field, "--json").document()
        assert (done["unique"], done["pairs"]) == (kept, 3 - kept)
    assert "no record has 'lang'" in nearsim.fail("dedupe", one, other, "-o", unique, "--across", "lang")


def test_only_pairs_within_the_values_of_columns_count(
    nearsim: CommandLine, tmp_path: Path, unique: Path
) -> None:
    one = write_jsonl(tmp_path / "1.jsonl", [{"meta": {"lang": "en"}, "source": "a", "text": STORM}] * 2)
    other = write_jsonl(tmp_path / "2.jsonl", [{"meta": {"lang": 1}, "source": "a", "text": STORM}])
    for fields, kept in ((["file"], 2), (["source"], 1), (["source", "meta.lang"], 2)):
        options = [part for field in fields for part in ("--within", field)]
        done = nearsim.succeed("dedupe", one, other, "-o", unique, *options, "--json").document()
        assert done["unique"] == kept
    assert "no record has 'lang'" in nearsim.fail("dedupe", one, other, "-o", unique, "--within", "lang")


def test_texts_of_few_words_are_kept(nearsim: CommandLine, tmp_path: Path, unique: Path) -> None:
    texts = ["Thanks a lot!", "Thanks a lot!", "Thanks a lot, again", "Thanks a lot, again", STORM, STORM]
    path = write_jsonl(tmp_path / "in.jsonl", [{"text": text} for text in texts])
    done = nearsim.succeed("dedupe", path, "-o", unique, "--min-words", 4)
    assert [json.loads(line)["text"] for line in unique.read_text().splitlines()] == [*texts[:3], STORM]
    assert "2 of 6 records have fewer than 4 words (--min-words): they are kept" in done.err
    assert "without features" not in done.err


def test_few_words_count_under_exact_too(nearsim: CommandLine, tmp_path: Path, unique: Path) -> None:
    path = write_jsonl(
        tmp_path / "in.jsonl", [{"text": text} for text in ("one two", "one two", STORM, STORM)]
    )
    done = nearsim.succeed("dedupe", path, "-o", unique, "--exact", "--min-words", 3, "--json").document()
    assert done["unique"] == 3


def test_words_of_markup_do_not_count(nearsim: CommandLine, tmp_path: Path, unique: Path) -> None:
    path = write_jsonl(tmp_path / "in.jsonl", [{"text": '<p class="a b c">one two</p>'}] * 2)
    html = ("--set", "normalise.html=true")
    done = nearsim.succeed("dedupe", path, "-o", unique, *html, "--min-words", 3, "--json").document()
    assert done["unique"] == 2


def test_equal_texts_after_normalisation(nearsim: CommandLine, tmp_path: Path, unique: Path) -> None:
    texts = [
        "ddd eee ddd eee",
        "ddd eee ddd eee ddd eee",
        " DDD\teee ddd eee",
        "ddd, eee ddd eee",
        "",
        "",
        "ddd ééé",
        "ddd e\u0301éé",
    ]
    path, pairs = (
        write_jsonl(tmp_path / "in.jsonl", [{"text": one} for one in texts]),
        tmp_path / "pairs.jsonl",
    )
    done = nearsim.succeed("dedupe", path, "-o", unique, "--exact", "--pairs", pairs, "--json").document()
    kept = [json.loads(line)["text"] for line in unique.read_text().splitlines()]
    assert kept == [texts[at] for at in (0, 1, 3, 4, 5, 6)]
    assert [done[name] for name in ("unique", "pairs", "clusters", "threshold")] == [6, 2, 2, 1.0]
    for line in pairs.read_text().splitlines():
        pair = json.loads(line)
        assert (pair["similarity"], pair["intersection"], pair["verified"]) == (1.0, None, True)
    nearsim.succeed("dedupe", path, "-o", unique, "--exact", "--set", "sketch.family=winnow")
    assert len(unique.read_text().splitlines()) == len(kept)
    copy = Path(shutil.copy(path, tmp_path / "copy.jsonl"))
    nearsim.succeed("dedupe", path, "-o", unique, "--exact", "--against", copy)
    assert [json.loads(line)["text"] for line in unique.read_text().splitlines()] == ["", ""]
    assert "--threshold" in nearsim.fail("dedupe", path, "-o", unique, "--exact", "-t", "0.9", exit_code=2)
    assert "vectors" in nearsim.fail("dedupe", path, "-o", unique, "--exact", "--preset", "embeddings")


def test_files_name_what_holds_what_was_removed(nearsim: CommandLine, tmp_path: Path) -> None:
    texts = make_texts()
    truth = true_pairs(texts)
    source, unique, clusters, pairs = (
        tmp_path / f"{name}.jsonl" for name in ("all", "unique", "clusters", "pairs")
    )
    source.write_text("".join(json.dumps({"id": name, "text": texts[name]}) + "\n" for name in sorted(texts)))
    own = ["dedupe", source, "--set", "sketch.family=winnow"]
    nearsim.succeed(*own, "--output", unique, "--clusters", clusters, "--pairs", pairs)
    lines = [json.loads(line) for line in pairs.read_text().splitlines()]
    assert len(lines) == len(truth)
    for one in lines:
        left, right = grams(texts[one["left"]]), grams(texts[one["right"]])
        assert 0 < one["shared_bands"] <= len(left & right)
        assert one["left_in_right"] == len(left & right) / len(left)
        assert one["right_in_left"] == len(left & right) / len(right)
    kept = {json.loads(line)["id"] for line in unique.read_text().splitlines()}
    assert kept == set(texts) - held(texts)
    order = sorted(sorted(texts), key=lambda name: -len(texts[name]))
    for one in map(json.loads, clusters.read_text().splitlines()):
        for name in {*one["members"]} - {one["survivor"]}:
            holders = [other for other in order if tuple(sorted((name, other))) in truth]
            assert one["survivor"] == next(other for other in holders if other in kept)
    forced = ["--set", "cluster.linkage=connected", "--set", "cluster.allow_chains=true"]
    assert "set it to representative, or" in nearsim.fail(*own, *forced[:2], "--dry-run", exit_code=2)
    nearsim.succeed(*own, *forced, "--output", unique, "--clusters", clusters)
    graph = networkx.Graph(truth.keys())
    assert {frozenset(json.loads(line)["members"]) for line in clusters.read_text().splitlines()} == {
        frozenset(one) for one in networkx.connected_components(graph)
    }


PASSAGE = " ".join(f"word{at}" for at in range(22)).capitalize() + ". 그리고 여기서 끝난다."
CUT_ROWS: list[dict[str, str]] = [
    {"id": "first", "text": f"Said here. {PASSAGE}"},
    {"id": "plain", "text": '=nothing, "is" cut'},
    {"id": "second", "text": f"{PASSAGE}\n\nSaid there."},
    {"id": "whole", "text": PASSAGE},
]


def write_rows(path: Path) -> None:
    match path.suffix:
        case ".csv":
            with path.open("w", newline="") as stream:
                writer = csv.DictWriter(stream, ["id", "text"])
                writer.writeheader()
                writer.writerows(CUT_ROWS)
        case ".parquet":
            pyarrow.parquet.write_table(pyarrow.Table.from_pylist(CUT_ROWS), path)
        case ".json":
            path.write_text(
                json.dumps([{"id": one["id"], "meta": {"text": one["text"]}} for one in CUT_ROWS])
            )
        case _:
            write_jsonl(path, CUT_ROWS)


@pytest.mark.parametrize("suffix", [".jsonl", ".csv", ".parquet", ".json"])
def test_repeated_passages_are_cut_out(nearsim: CommandLine, tmp_path: Path, suffix: str) -> None:
    source, output, cuts = tmp_path / f"in{suffix}", tmp_path / f"out{suffix}", tmp_path / "cuts.jsonl"
    write_rows(source)
    fields = ["--body-field", "meta.text"] if suffix == ".json" else []
    found = nearsim.succeed("dedupe", source, "--cut", "-o", output, "--cuts", cuts, "--json", *fields)
    summary = json.loads(found.out)
    assert [summary[name] for name in ("read", "unique", "duplicates")] == [4, 3, 1]
    assert [summary["cut"][name] for name in ("changed", "passages")] == [1, 2]
    nearsim.succeed("dedupe", output, "--dry-run", "--exact", *fields)
    back = tmp_path / "back.jsonl"
    nearsim.succeed("dedupe", output, "--exact", "-o", back, *fields)
    rows = [json.loads(line) for line in back.read_text().splitlines()]
    texts = {one["id"]: one["meta"]["text"] if fields else one["text"] for one in rows}
    assert texts == {one["id"]: one["text"] for one in CUT_ROWS[:2]} | {"second": "Said there."}
    lines = [json.loads(line) for line in cuts.read_text().splitlines()]
    assert [(one["id"], one["kept_in"], one["removed"]) for one in lines] == [
        ("second", "first", False),
        ("whole", "first", True),
    ]
    assert CUT_ROWS[2]["text"][lines[0]["end"] :] == "Said there."
    again = tmp_path / f"again{suffix}"
    nearsim.succeed("dedupe", output, "--cut", "-o", again, *fields)
    assert suffix == ".parquet" or again.read_bytes() == output.read_bytes()
    if suffix in (".jsonl", ".csv"):
        assert (
            output.read_bytes().splitlines()[-2] == source.read_bytes().splitlines()[1 + (suffix == ".csv")]
        )


@pytest.mark.parametrize("suffix", [".jsonl", ".parquet"])
def test_passages_are_cut_out_of_the_fields_that_a_text_joins(
    nearsim: CommandLine, tmp_path: Path, suffix: str
) -> None:
    source, output, back = tmp_path / f"in{suffix}", tmp_path / f"out{suffix}", tmp_path / "back.jsonl"
    first, second = f"{STORM}.", f"{HARVEST}."
    rows = [
        {"id": "whole", "lead": first, "page": 12, "rest": second},
        {"id": "parts", "lead": f"Here. {first}", "page": 7, "rest": f"{second} There."},
    ]
    if suffix == ".parquet":
        pyarrow.parquet.write_table(pyarrow.Table.from_pylist(rows), source)
    else:
        write_jsonl(source, rows)
    fields = ("--body-field", "page,lead,rest")
    nearsim.succeed("dedupe", source, "--cut", "-o", output, *fields)
    nearsim.succeed("dedupe", output, "--exact", "-o", back, *fields)
    left = [json.loads(line) for line in back.read_text().splitlines()]
    assert left[0] == rows[0]
    assert [left[1][name].strip() for name in ("lead", "rest")] == ["Here.", "There."]


@pytest.mark.parametrize("suffix", [".jsonl", ".csv"])
def test_a_joined_key_that_no_record_has_is_refused(
    nearsim: CommandLine, tmp_path: Path, suffix: str
) -> None:
    source, output, old = tmp_path / f"in{suffix}", tmp_path / "out.jsonl", tmp_path / "old.jsonl"
    source.write_text({".jsonl": '{"id": "a", "lead": "x y z"}\n', ".csv": "id,lead\na,x y z\n"}[suffix])
    old.write_text('{"id": "b", "rest": "x y z"}\n')
    for other in ([], ["--against", old]):
        message = nearsim.fail("dedupe", source, "-o", output, "--body-field", "lead,rest", *other)
        assert "no record has 'rest', which --body-field names" in message
    assert not output.exists()
    nearsim.succeed("dedupe", source, old, "-o", output, "--body-field", "lead,rest")


def test_records_are_removed_from_one_input_only(nearsim: CommandLine, tmp_path: Path) -> None:
    curated, new, output = tmp_path / "curated.jsonl", tmp_path / "new.jsonl", tmp_path / "out.jsonl"
    write_jsonl(
        curated,
        [
            {"id": "a", "text": STORM, "source": "wire", "published_at": "2024-02-01"},
            {"id": "a-twin", "text": STORM, "source": "wire", "published_at": "2024-02-01"},
            {"id": "a-other", "text": BRIDGE, "source": "wire", "published_at": "2024-02-01"},
            {"id": "a-other-twin", "text": BRIDGE, "source": "wire", "published_at": "2024-02-01"},
        ],
    )
    write_jsonl(
        new,
        [
            {"id": "b", "text": STORM_AGAIN, "source": "blog", "published_at": "2024-01-01"},
            {"id": "b-own", "text": HARVEST, "source": "blog", "published_at": "2024-01-02"},
            {"id": "b-earlier", "text": HARVEST, "source": "blog", "published_at": "2024-01-01"},
        ],
    )

    for name in (new, "blog"):
        summary = nearsim.succeed(
            "dedupe", curated, new, "--only-from", name, "-o", output, "--mark", "--json"
        ).document()
        assert [summary[key] for key in ("unique", "duplicates", "clusters", "untouched_clusters")] == [
            5,
            2,
            3,
            1,
        ]
        marks = {row["id"]: row["duplicate_of"] for row in map(json.loads, output.read_text().splitlines())}
        assert marks == {
            **dict.fromkeys(("a", "a-twin", "a-other", "a-other-twin", "b-earlier")),
            **{"b": "a", "b-own": "b-earlier"},
        }
    nearsim.succeed("dedupe", curated, new, "--only-from", new, "-o", f"{tmp_path}/out/", "-q")
    assert (tmp_path / "out/curated.jsonl").read_bytes() == curated.read_bytes()

    # No record of a cluster stays, but only in the named input.
    rule = ("--set", "cluster.keep=none")
    nearsim.succeed("dedupe", curated, new, "--only-from", "wire", "-o", output, *rule)
    assert [json.loads(line)["id"] for line in output.read_text().splitlines()] == ["b", "b-own", "b-earlier"]


def test_an_unknown_input_is_refused_before_anything_is_written(nearsim: CommandLine, tmp_path: Path) -> None:
    source, output = tmp_path / "in.jsonl", tmp_path / "out.jsonl"
    write_jsonl(source, [{"id": "a", "text": STORM, "source": "wire"}])
    message = nearsim.fail("dedupe", source, "--only-from", "blog", "-o", output)
    assert (
        f"no record is from 'blog', which --only-from names; name an input or a source of records ({source}"
        in message
    )
    assert "wire)" in message and not output.exists()
    for other in (["--against", source], ["--cut"]):
        nearsim.fail("dedupe", source, "--only-from", "wire", "--dry-run", *other, exit_code=2)


def test_cuts_go_to_a_folder_and_are_not_combined_with_pairs(nearsim: CommandLine, tmp_path: Path) -> None:
    source = tmp_path / "in"
    source.mkdir()
    write_jsonl(source / "a.jsonl", CUT_ROWS[:2])
    write_rows(source / "b.parquet")
    nearsim.succeed("dedupe", source / "a.jsonl", source / "b.parquet", "--cut", "-o", f"{tmp_path / 'out'}/")
    assert (tmp_path / "out/a.jsonl").read_bytes() == (source / "a.jsonl").read_bytes()
    left = pyarrow.parquet.read_table(tmp_path / "out/b.parquet").to_pylist()
    assert left == [{"id": "plain", "text": CUT_ROWS[1]["text"]}, {"id": "second", "text": "Said there."}]
    for option in (["--exact"], ["--pairs", tmp_path / "pairs.jsonl"], ["--against", source / "a.jsonl"]):
        message = nearsim.fail("dedupe", source / "a.jsonl", "--cut", "--dry-run", *option, exit_code=2)
        assert f"{option[0]} cannot be combined with --cut" in message
    assert "--cuts requires --cut" in nearsim.fail(
        "dedupe", source / "a.jsonl", "--cuts", tmp_path / "cuts.jsonl", "--dry-run", exit_code=2
    )


def test_copies_beyond_a_number_are_listed_with_the_first(
    nearsim: CommandLine, tmp_path: Path, unique: Path
) -> None:
    records = [{"id": number, "text": STORM} for number in range(300)]
    path, pairs = write_jsonl(tmp_path / "in.jsonl", records), tmp_path / "pairs.jsonl"
    done = nearsim.succeed("dedupe", path, "-o", unique, "--pairs", pairs, "--json")
    assert done.document()["pairs"] == 300 * 299 // 2
    ends = [(int(row["left"]), int(row["right"])) for row in map(json.loads, pairs.read_text().splitlines())]
    assert ends == [(0, number) for number in range(1, 300)]
    assert "lists each of 300 records with the first of its copies only" in done.err


def test_a_cut_names_a_record_that_has_all_of_it(nearsim: CommandLine, tmp_path: Path, unique: Path) -> None:
    """A sentence whose first words one record has before, and all of whose words another one has."""
    first = " ".join(f"first{number}" for number in range(25))
    rest = " ".join(f"rest{number}" for number in range(25))
    texts = {
        "a": f"One begins. {first}.",
        "b": f"Two begins. {first} {rest}.",
        "c": f"Three. {first} {rest}.",
    }
    path = write_jsonl(tmp_path / "in.jsonl", [{"id": name, "text": text} for name, text in texts.items()])
    cuts = tmp_path / "cuts.jsonl"
    nearsim.succeed("dedupe", path, "-o", unique, "--preset", "embedded-stories", "--cut", "--cuts", cuts)
    rows = [row for row in map(json.loads, cuts.read_text().splitlines()) if row["id"] == "c"]
    assert [row["kept_in"] for row in rows] == ["b"]
    assert all(texts["c"][row["start"] : row["end"]] in texts[row["kept_in"]] for row in rows)
    assert json.loads(unique.read_text().splitlines()[-1])["text"] == "Three."


def test_a_quotation_is_cut_whole(nearsim: CommandLine, tmp_path: Path, unique: Path) -> None:
    words = [f"word{number}" for number in range(60)]
    lines = [" ".join(words[:30]) + " and", " ".join(words[30:]) + "."]
    mail = "I agree.\n\nAda wrote:\n> " + "\n> ".join(lines) + "\nYours, Bob"
    path = write_jsonl(tmp_path / "in.jsonl", [{"text": " ".join(lines)}, {"text": mail}])
    nearsim.succeed("dedupe", path, "-o", unique, "--preset", "embedded-stories", "--cut")
    assert json.loads(unique.read_text().splitlines()[1])["text"] == "I agree.\n\nAda wrote:\nYours, Bob"


@pytest.mark.parametrize(
    "old", ["absent.jsonl", "empty.jsonl", "absent/", "empty/", "absent-*.jsonl", "absent*"]
)
def test_the_first_day_has_nothing_to_compare_with(
    nearsim: CommandLine, tmp_path: Path, unique: Path, monkeypatch: pytest.MonkeyPatch, old: str
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "empty.jsonl").touch()
    (tmp_path / "empty").mkdir()
    (tmp_path / "empty" / "_SUCCESS").touch()
    new = write_jsonl(tmp_path / "new.jsonl", [{"text": STORM}, {"text": STORM}])
    command = ("dedupe", new, "-o", unique, "--against", old)
    if not old.startswith("empty"):
        nearsim.fail(*command)
    assert "does not exist or is empty" in nearsim.succeed(*command, "--missing-ok").err
    assert len(unique.read_text().splitlines()) == 1


def test_files_that_are_not_read_are_named_first(nearsim: CommandLine, tmp_path: Path, unique: Path) -> None:
    for name in ("new", "old"):
        (folder := tmp_path / name).mkdir()
        write_jsonl(folder / "part.jsonl", [{"text": f"{name} {STORM}"}])
        (folder / f"{name}.md").write_text("About the records.")
    new, old = tmp_path / "new", tmp_path / "old"
    said = nearsim.succeed("dedupe", new, "-o", unique, "--against", old).err.splitlines()
    first = next(at for at, line in enumerate(said) if "reading" in line)
    assert [name in line for name, line in zip(("new.md", "old.md"), said[:first], strict=True)] == [
        True,
        True,
    ]


def test_a_corpus_to_compare_with_may_be_a_pattern(
    nearsim: CommandLine, tmp_path: Path, unique: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    new = write_jsonl(tmp_path / "new.jsonl", [{"text": STORM}, {"text": BRIDGE}])
    write_jsonl(tmp_path / "old-1.jsonl", [{"text": STORM}])
    counts = nearsim.succeed("dedupe", new, "-o", unique, "--against", "old*", "--json").document()
    assert counts["against"]["duplicates"] == 1


def test_a_copy_of_the_input_to_compare_with_is_suspected(
    nearsim: CommandLine, tmp_path: Path, unique: Path
) -> None:
    new = write_jsonl(tmp_path / "new.jsonl", [{"text": STORM}, {"text": BRIDGE}])
    copy = Path(shutil.copy(new, tmp_path / "copy.jsonl"))
    assert "is it a copy" in nearsim.succeed("dedupe", new, "-o", unique, "--against", copy).err
    write_jsonl(copy, [{"text": STORM}])
    assert "is it a copy" not in nearsim.succeed("dedupe", new, "-o", unique, "--against", copy).err


def test_an_empty_corpus_to_compare_with_is_named(nearsim: CommandLine, tmp_path: Path, unique: Path) -> None:
    (old := tmp_path / "old.csv").write_text("id,text\n")
    new = write_jsonl(tmp_path / "new.jsonl", [{"text": STORM}])
    said = nearsim.succeed("dedupe", new, "-o", unique, "--against", new.with_name("old.csv")).err
    assert f"--against {old} has no records: nothing was compared with it" in said


def test_a_collection_to_compare_with_may_be_missing(
    nearsim: CommandLine, tmp_path: Path, unique: Path
) -> None:
    new = write_jsonl(tmp_path / "new.jsonl", [{"text": STORM}])
    command = ("dedupe", new, "-o", unique, "--against", "yesterday")
    assert "collection 'yesterday' does not exist" in nearsim.fail(*command)
    assert "does not exist or is empty" in nearsim.succeed(*command, "--missing-ok").err


@pytest.mark.parametrize("suffix", [".csv", ".tsv"])
def test_csv_with_other_columns_keeps_the_byte_order_mark(
    nearsim: CommandLine, tmp_path: Path, suffix: str
) -> None:
    path, other = tmp_path / "in.csv", tmp_path / "other.csv"
    path.write_text(f"id,text\na,{STORM}\n", encoding="utf-8-sig")
    other.write_text(f"id,text,n\nb,{HARVEST},1\n")
    nearsim.succeed("dedupe", path, other, "-o", output := tmp_path / f"out{suffix}")
    header = "id,text,n".replace(",", "\t" if suffix == ".tsv" else ",")
    assert output.read_bytes().startswith(f"\ufeff{header}\na".encode())


def test_csv_keeps_its_byte_order_mark(nearsim: CommandLine, tmp_path: Path) -> None:
    path, output = tmp_path / "in.csv", tmp_path / "out.csv"
    path.write_text(f"id,text\na,{STORM}\n", encoding="utf-8-sig")
    nearsim.succeed("dedupe", path, "-o", output)
    assert output.read_bytes() == path.read_bytes()


@pytest.mark.parametrize("place", ["-", "/dev/stdout"])
def test_rejects_are_written_to_standard_output(
    nearsim: CommandLine, tmp_path: Path, unique: Path, place: str
) -> None:
    (path := tmp_path / "in.jsonl").write_text(json.dumps({"text": STORM}) + "\n[]\n")
    ended = nearsim.succeed("dedupe", path, "-o", unique, "--rejects", place)
    assert [row["line"] for row in ended.rows()] == [2]
    assert "all rejects are on standard output" in ended.err
    assert not Path("-").exists()


def test_answers_and_rejects_are_not_both_on_standard_output(nearsim: CommandLine, tmp_path: Path) -> None:
    path = write_jsonl(tmp_path / "in.jsonl", [{"text": STORM}])
    for command in ("ingest", "check", "nearest"):
        assert "--rejects -" in nearsim.fail(command, path, "--rejects", "-", exit_code=2)


def test_texts_of_one_template_are_named_before_they_are_lost(
    nearsim: CommandLine, tmp_path: Path, unique: Path
) -> None:
    invoice = "Invoice {0} of the harbour office for berth {0}, to be paid within thirty days by bank transfer please"
    path = write_jsonl(tmp_path / "in.jsonl", [{"text": invoice.format(number)} for number in range(4)])
    options = ("--set", "shingle.k=1")
    assert (
        "cluster.numbers_differ = keep-apart" in nearsim.succeed("dedupe", path, "-o", unique, *options).err
    )
    apart = nearsim.succeed(
        "dedupe", path, "-o", unique, *options, "--set", "cluster.numbers_differ=keep-apart"
    )
    assert len(unique.read_text().splitlines()) == 4 and "to keep them" not in apart.err


def test_few_records_copies_and_a_corpus_read_before_are_not_questioned(
    nearsim: CommandLine, tmp_path: Path, unique: Path
) -> None:
    many = write_jsonl(tmp_path / "many.jsonl", [{"text": STORM}] * 150)
    other = [{"text": f"{HARVEST} {number}"} for number in range(60)]
    half = write_jsonl(tmp_path / "half.jsonl", [{"text": STORM}] * 50 + other)
    for options in (
        (write_jsonl(tmp_path / "few.jsonl", [{"text": STORM}] * 99),),
        (many, "--exact"),
        (half, "--set", "match.threshold=1", "--against", many),
    ):
        assert "are duplicates" not in nearsim.succeed("dedupe", *options, "-o", unique).err


def test_a_run_that_removes_most_records_is_questioned(
    nearsim: CommandLine, tmp_path: Path, unique: Path
) -> None:
    path = write_jsonl(tmp_path / "in.jsonl", [{"text": STORM}] * 150)
    said = nearsim.succeed("dedupe", path, "-o", unique).err
    assert "149 of 150 records are duplicates" in said and "the largest cluster has 150" in said
    for setting in ("match.threshold", "cluster.linkage = average", "cluster.numbers_differ = keep-apart"):
        assert setting in said


def test_cut_does_what_dedupe_does_with_its_option(nearsim: CommandLine, tmp_path: Path) -> None:
    repeated = " ".join(f"shared{number}" for number in range(25)) + "."
    texts = {"a": f"{repeated} The first.", "b": f"The second. {repeated}", "c": repeated}
    path = write_jsonl(tmp_path / "in.jsonl", [{"id": name, "text": text} for name, text in texts.items()])
    written = []
    for command in (["cut", path], ["dedupe", path, "--cut"]):
        output, cuts = tmp_path / "out.jsonl", tmp_path / "cuts.jsonl"
        summary = nearsim.succeed(*command, "-o", output, "--cuts", cuts, "--json").document()
        written.append((summary, output.read_bytes(), cuts.read_bytes()))
    assert written[0] == written[1]
    assert written[0][0]["cut"] == {"changed": 1, "passages": 2, "characters": 2 * len(repeated) + 1}
