"""`dedupe --mark`: all records are written, in their places, with what they duplicate."""

import csv
import json
from pathlib import Path

import pyarrow
import pyarrow.parquet
import pytest

from nearsim_db.deduplication.folders import COMPLETE
from tests.builders.command_line import BRIDGE, HARVEST, STORM, STORM_AGAIN, CommandLine, write_jsonl

NAMES = ["duplicate_of", "cluster", "cluster_size", "similarity"]
SIMILARITY = pytest.approx(0.77, abs=0.1)


def marks_of(path: Path) -> dict[str, list[object]]:
    """The marks in a file of JSON lines by id."""
    rows = map(json.loads, path.read_text().splitlines())
    return {row["id"]: [row[name] for name in NAMES] for row in rows}


def columns_of(path: Path) -> list[list[str]]:
    """The last four columns of a file of CSV, header included."""
    with path.open(newline="") as file:
        return [row[-4:] for row in csv.reader(file)]


@pytest.fixture
def marked(tmp_path: Path) -> Path:
    return tmp_path / "marked.jsonl"


def test_each_record_names_the_kept_one_and_its_cluster(
    nearsim: CommandLine, stories: Path, marked: Path
) -> None:
    nearsim.succeed("dedupe", stories, "--mark", "-o", marked, "-q")
    assert marks_of(marked) == {
        "storm": [None, 1, 3, None],
        "storm-again": ["storm", 1, 3, SIMILARITY],
        "storm-twin": ["storm", 1, 3, 1.0],
        "harvest": [None, None, 1, None],
        "bridge": [None, None, 1, None],
    }


def test_lines_are_unchanged_before_the_marks(nearsim: CommandLine, tmp_path: Path, marked: Path) -> None:
    line = f'{{"id": "a",  "n": 1.50, "text": "{STORM}"}}'
    (tmp_path / "a.jsonl").write_bytes(f"{line} \r\n\n{line}\n".encode())
    nearsim.succeed("dedupe", tmp_path / "a.jsonl", "--mark", "-o", marked, "-q")
    begun = line[:-1].encode()
    assert marked.read_bytes() == (
        begun + b',"duplicate_of":null,"cluster":1,"cluster_size":2,"similarity":null} \r\n'
        b"" + begun + b',"duplicate_of":"a","cluster":1,"cluster_size":2,"similarity":1.0}\n'
    )


def test_a_record_of_a_chain_has_no_similarity(nearsim: CommandLine, tmp_path: Path, marked: Path) -> None:
    words = [f"word{number}" for number in range(60)]
    texts = [" ".join([*words[at : at + 40]]) for at in (0, 6, 12)]
    write_jsonl(tmp_path / "a.jsonl", [{"id": str(at), "text": text} for at, text in enumerate(texts)])
    nearsim.succeed("dedupe", tmp_path / "a.jsonl", "--mark", "--threshold", ".6", "-o", marked, "-q")
    assert marks_of(marked)["2"] == ["0", 1, 3, None]


def test_rows_of_csv_are_unchanged_before_the_marks(nearsim: CommandLine, tmp_path: Path) -> None:
    rows = f'"a;1";{STORM}\r\nb;"{STORM}"\nc;{HARVEST}\n'
    (tmp_path / "a.csv").write_text(f"id;text\r\n{rows}", newline="")
    nearsim.succeed(
        "dedupe", tmp_path / "a.csv", "--delimiter", ";", "--mark", "-o", tmp_path / "o.csv", "-q"
    )
    assert (tmp_path / "o.csv").read_bytes().decode() == (
        "id;text;duplicate_of;cluster;cluster_size;similarity\r\n"
        f'"a;1";{STORM};;1;2;\r\nb;"{STORM}";"a;1";1;2;1.0\nc;{HARVEST};;;1;\n'
    )


def test_marks_of_csv_are_in_the_quotes_of_the_file(nearsim: CommandLine, tmp_path: Path) -> None:
    (tmp_path / "a.csv").write_text(f"id,text\n'a,1',{STORM}\nb,{STORM}\n")
    nearsim.succeed(
        *("dedupe", tmp_path / "a.csv", "--quote", "'", "--mark", "-o", tmp_path / "o.csv", "-q"),
    )
    assert (tmp_path / "o.csv").read_text().endswith(f"b,{STORM},'a,1',1,2,1.0\n")


def test_rows_without_a_header_have_marks_without_names(nearsim: CommandLine, tmp_path: Path) -> None:
    (tmp_path / "a.csv").write_text(f"x,{STORM}\ny,{STORM}\n")
    nearsim.succeed(
        *("dedupe", tmp_path / "a.csv", "--no-header", "--id-field", "1", "--body-field", "2"),
        *("--mark", "-o", tmp_path / "o.csv", "-q"),
    )
    assert columns_of(tmp_path / "o.csv") == [["", "1", "2", ""], ["x", "1", "2", "1.0"]]


@pytest.mark.parametrize("suffix", ["parquet", "arrow", "csv", "jsonl"])
def test_marks_in_parquet_have_types(nearsim: CommandLine, tmp_path: Path, suffix: str) -> None:
    table = pyarrow.table({"id": ["a", "b"], "text": [STORM, HARVEST]})
    inputs, output = tmp_path / f"a.{suffix}", tmp_path / "o.parquet"
    if suffix == "parquet":
        pyarrow.parquet.write_table(table, inputs)
    elif suffix == "arrow":
        with pyarrow.ipc.new_file(inputs, table.schema) as writer:
            writer.write(table)
    elif suffix == "csv":
        inputs.write_text(f"id,text\na,{STORM}\nb,{HARVEST}\n")
    else:
        write_jsonl(inputs, table.to_pylist())
    nearsim.succeed("dedupe", inputs, "--mark", "-o", output, "-q")
    schema = pyarrow.parquet.read_schema(output)
    assert schema.names == ["id", "text", *NAMES]
    assert list(map(str, schema.types)) == ["string", "string", "string", "int64", "int64", "double"]


def test_rows_of_parquet_have_marks(nearsim: CommandLine, tmp_path: Path, marked: Path) -> None:
    table = pyarrow.table({"id": ["a", "b"], "text": [STORM, STORM]})
    pyarrow.parquet.write_table(table, tmp_path / "a.parquet")
    nearsim.succeed("dedupe", tmp_path / "a.parquet", "--mark", "-o", marked, "-q")
    assert marks_of(marked) == {"a": [None, 1, 2, None], "b": ["a", 1, 2, 1.0]}


def test_json_lines_are_converted_to_csv_with_marks(
    nearsim: CommandLine, stories: Path, tmp_path: Path
) -> None:
    nearsim.succeed("dedupe", stories, "--mark", "-o", tmp_path / "o.csv", "-q")
    assert columns_of(tmp_path / "o.csv")[::3] == [NAMES, ["storm", "1", "3", "1.0"]]


def test_text_files_become_json_lines_with_marks(nearsim: CommandLine, tmp_path: Path, marked: Path) -> None:
    (tmp_path / "texts").mkdir()
    for name in ("a", "b"):
        (tmp_path / "texts" / f"{name}.txt").write_text(STORM)
    nearsim.succeed("dedupe", tmp_path / "texts", "--mark", "-o", marked, "-q")
    assert [kept for kept, *_ in marks_of(marked).values()] == [None, next(iter(marks_of(marked)))]


def test_clusters_have_the_numbers_of_their_list(nearsim: CommandLine, tmp_path: Path, marked: Path) -> None:
    texts = [HARVEST, STORM, BRIDGE, STORM]
    file = write_jsonl(tmp_path / "a.jsonl", [{"id": str(at), "text": text} for at, text in enumerate(texts)])
    clusters = tmp_path / "clusters.jsonl"
    nearsim.succeed("dedupe", file, "--mark", "-o", marked, "--clusters", clusters, "-q")
    (row,) = map(json.loads, clusters.read_text().splitlines())
    assert [cluster for _, cluster, *_ in marks_of(marked).values()] == [
        None,
        row["cluster"],
        None,
        row["cluster"],
    ]


def test_against_names_the_record_of_the_corpus(
    nearsim: CommandLine, stories: Path, tmp_path: Path, marked: Path
) -> None:
    old = write_jsonl(tmp_path / "old.jsonl", [{"id": "old", "text": STORM_AGAIN}])
    nearsim.succeed("dedupe", stories, "--against", old, "--only-against", "--mark", "-o", marked, "-q")
    assert marks_of(marked) == {
        "storm": ["old", None, None, SIMILARITY],
        "storm-again": ["old", None, None, 1.0],
        "storm-twin": ["old", None, None, SIMILARITY],
        "harvest": [None, None, None, None],
        "bridge": [None, None, None, None],
    }


def test_a_folder_gets_each_file_with_marks(nearsim: CommandLine, tmp_path: Path) -> None:
    files = [
        write_jsonl(
            tmp_path / f"{name}.jsonl", [{"id": name, "text": HARVEST}, {"id": f"{name}2", "text": STORM}]
        )
        for name in "ab"
    ]
    nearsim.succeed("dedupe", *files, "--mark", "-o", f"{tmp_path}/out/", "-q")
    assert {path.name: marks_of(path) for path in (tmp_path / "out").glob("*.jsonl")} == {
        "a.jsonl": {"a": [None, 1, 2, None], "a2": [None, 2, 2, None]},
        "b.jsonl": {"b": ["a", 1, 2, 1.0], "b2": ["a2", 2, 2, 1.0]},
    }


def test_tables_of_a_folder_get_marks(nearsim: CommandLine, tmp_path: Path) -> None:
    (tmp_path / "in").mkdir()
    for name, text in (("a", HARVEST), ("b", STORM), ("c", STORM)):
        table = pyarrow.table({"id": [name], "text": [text]})
        pyarrow.parquet.write_table(table, tmp_path / "in" / f"{name}.parquet")
    nearsim.succeed("dedupe", tmp_path / "in", "--mark", "-o", f"{tmp_path}/out/", "-q")
    files = sorted(path for path in (tmp_path / "out").rglob("*") if path.is_file() and path.name != COMPLETE)
    kept = [pyarrow.parquet.read_table(path).column("duplicate_of").to_pylist() for path in files]
    assert kept == [[None], [None], ["b"]]


def test_rejected_records_are_not_written(
    nearsim: CommandLine, stories: Path, tmp_path: Path, marked: Path
) -> None:
    stories.write_text("{broken\n" + stories.read_text())
    rejects = tmp_path / "rejects.jsonl"
    nearsim.succeed("dedupe", stories, "--mark", "-o", marked, "--rejects", rejects, "-q")
    assert list(marks_of(marked)) == ["storm", "storm-again", "storm-twin", "harvest", "bridge"]


def test_names_have_a_prefix_on_request(nearsim: CommandLine, stories: Path, marked: Path) -> None:
    nearsim.succeed("dedupe", stories, "--mark", "--mark-prefix", "dup_", "-o", marked, "-q")
    row = json.loads(marked.read_text().splitlines()[0])
    assert list(row) == ["id", "text", *(f"dup_{name}" for name in NAMES)]


@pytest.mark.parametrize("at", [0, 1])
def test_a_record_with_a_key_of_that_name_is_refused(
    nearsim: CommandLine, tmp_path: Path, marked: Path, at: int
) -> None:
    records: list[dict[str, object]] = [{"id": "a", "text": STORM}, {"id": "b", "text": STORM}]
    records[at]["cluster"] = None
    file = write_jsonl(tmp_path / "a.jsonl", records)
    error = nearsim.fail("dedupe", file, "--mark", "-o", marked, "-q")
    assert (
        error
        == f"error: {file} has 'cluster' already; name the marks otherwise, as by --mark-prefix nearsim_"
    )
    assert not marked.exists()


def test_a_column_of_that_name_is_refused(nearsim: CommandLine, tmp_path: Path) -> None:
    (tmp_path / "a.csv").write_text(f"id,text,similarity\na,{STORM},1\n")
    error = nearsim.fail("dedupe", tmp_path / "a.csv", "--mark", "-o", tmp_path / "o.csv", "-q")
    assert "has 'similarity' already" in error


@pytest.mark.parametrize("output", ["o.txt", "out/"])
def test_lines_of_text_have_no_marks(nearsim: CommandLine, tmp_path: Path, output: str) -> None:
    (tmp_path / "a.txt").write_text(f"{STORM}\n{STORM}\n")
    error = nearsim.fail(
        *(
            "dedupe",
            tmp_path / "a.txt",
            "--input-format",
            "lines",
            "--mark",
            "-o",
            f"{tmp_path}/{output}",
            "-q",
        )
    )
    assert "lines of text have no room for marks; write JSON lines: --output NAME.jsonl" in error


def test_lines_of_text_become_json_lines_with_marks(
    nearsim: CommandLine, tmp_path: Path, marked: Path
) -> None:
    (tmp_path / "a.txt").write_text(f"{STORM}\n{HARVEST}\n")
    nearsim.succeed("dedupe", tmp_path / "a.txt", "--input-format", "lines", "--mark", "-o", marked, "-q")
    assert [list(json.loads(line)) for line in marked.read_text().splitlines()] == [["text", *NAMES]] * 2


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["--mark-prefix", "x"], "--mark-prefix requires --mark"),
        (["--mark", "--cut"], "--mark cannot be combined with --cut"),
    ],
)
def test_options_that_exclude_each_other(
    nearsim: CommandLine, stories: Path, marked: Path, options: list[str], message: str
) -> None:
    assert message in nearsim.fail("dedupe", stories, "-o", marked, *options, exit_code=2)


def test_the_summary_counts_records_with_marks(nearsim: CommandLine, stories: Path, marked: Path) -> None:
    summary = nearsim.succeed("dedupe", stories, "--mark", "-o", marked, "--json").document()
    assert [summary[name] for name in ("read", "marked", "unique", "duplicates")] == [5, 5, 3, 2]
