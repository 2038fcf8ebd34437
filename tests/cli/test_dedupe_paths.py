"""Where `dedupe` writes: below its output folder only, and over an input only where that is the input's own place."""

import os
import signal
import subprocess
import sys
from pathlib import Path

import pyarrow
import pyarrow.parquet
import pytest

from nearsim_db.deduplication.folders import COMPLETE
from nearsim_db.errors import InputError
from nearsim_db.readers.leftovers import lock, part_of, sweep_parts, temporary_copies
from nearsim_db.readers.output import open_output
from tests.builders.command_line import CommandLine, write_jsonl

ALIKE = "a dozen words that are the same in each of the records of this file"


@pytest.fixture
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder data with train.jsonl, which is the working directory, beside extra.jsonl, each with a copy."""
    (tmp_path / "data").mkdir()
    write_jsonl(tmp_path / "data" / "train.jsonl", [{"text": ALIKE}, {"text": ALIKE}])
    write_jsonl(tmp_path / "extra.jsonl", [{"text": ALIKE}, {"text": "other words"}])
    monkeypatch.chdir(tmp_path / "data")
    return tmp_path


def written(folder: Path) -> dict[str, int]:
    """The number of lines of each file below a folder."""
    files = (path for path in folder.rglob("*") if path.is_file() and path.name != COMPLETE)
    return {path.relative_to(folder).as_posix(): len(path.read_text().splitlines()) for path in files}


def test_inputs_above_the_working_directory_are_written_below_the_output_folder(
    nearsim: CommandLine, project: Path
) -> None:
    nearsim.succeed("dedupe", "train.jsonl", "../extra.jsonl", "-o", "../clean/", "-q")
    assert written(project / "clean") == {"data/train.jsonl": 1, "extra.jsonl": 1}
    assert written(project / "data") == {"train.jsonl": 2}
    assert len((project / "extra.jsonl").read_text().splitlines()) == 2


def test_a_folder_may_be_named_through_another(nearsim: CommandLine, project: Path) -> None:
    nearsim.succeed("dedupe", "../data/../data", "../extra.jsonl", "-o", "../clean/", "-q")
    assert written(project / "clean") == {"data/train.jsonl": 1, "extra.jsonl": 1}


def test_the_folder_of_the_inputs_is_rewritten_in_place_if_it_is_named(
    nearsim: CommandLine, project: Path
) -> None:
    nearsim.succeed("dedupe", "train.jsonl", "-o", "../data/../data/", "-q")
    assert written(project / "data") == {"train.jsonl": 1}


def test_a_link_in_the_output_folder_is_not_followed_out_of_it(nearsim: CommandLine, project: Path) -> None:
    (project / "clean").mkdir()
    (project / "clean" / "train.jsonl").symlink_to(project / "extra.jsonl")
    assert "outside of" in nearsim.fail("dedupe", "train.jsonl", "-o", "../clean/")
    assert len((project / "extra.jsonl").read_text().splitlines()) == 2


def test_an_input_is_not_replaced_through_a_link_from_another_folder(
    nearsim: CommandLine, project: Path
) -> None:
    (project / "train.jsonl").symlink_to("data/train.jsonl")
    assert "would replace the input" in nearsim.fail("dedupe", "train.jsonl", "-o", "../")
    assert written(project / "data") == {"train.jsonl": 2}


def test_the_folder_of_the_inputs_is_not_rewritten_by_another_name(
    nearsim: CommandLine, project: Path
) -> None:
    (project / "clean").symlink_to("data")
    assert "would replace the input" in nearsim.fail("dedupe", "../data", "-o", "../clean/")
    assert written(project / "data") == {"train.jsonl": 2}
    nearsim.succeed("dedupe", "../clean", "-o", "../clean/", "-q")
    assert written(project / "data") == {"train.jsonl": 1}


@pytest.mark.parametrize("options", [(), ("--cut",)])
def test_an_input_is_not_replaced_by_another_name(
    nearsim: CommandLine, project: Path, options: tuple[str, ...]
) -> None:
    Path("link.jsonl").symlink_to("train.jsonl")
    said = nearsim.fail("dedupe", "train.jsonl", "-o", "link.jsonl", *options)
    assert "both input and output" in said
    nearsim.succeed("dedupe", "./train.jsonl", "-o", "../data/train.jsonl", "-q", *options)


def test_tables_that_are_only_compared_with_are_not_replaced(nearsim: CommandLine, project: Path) -> None:
    for name, texts in (("old", [ALIKE, "other words"]), ("new", ["new words"])):
        Path(name).mkdir()
        pyarrow.parquet.write_table(pyarrow.table({"text": texts}), f"{name}/part.parquet")
    said = nearsim.fail("dedupe", "new", "--against", "old", "-o", "old/")
    assert "both input and output" in said
    assert pyarrow.parquet.read_table("old/part.parquet").num_rows == 2


def test_vectors_are_not_replaced(nearsim: CommandLine, project: Path) -> None:
    pyarrow.parquet.write_table(pyarrow.table({"id": ["1"], "text": [ALIKE]}), "texts.parquet")
    pyarrow.parquet.write_table(pyarrow.table({"id": ["1"], "vector": [[1.0, 2.0]]}), "vectors.parquet")
    given = ("--preset", "embeddings", "--vectors", "vectors.parquet")
    said = nearsim.fail("dedupe", "texts.parquet", *given, "-o", "vectors.parquet")
    assert "both input and output" in said
    assert pyarrow.parquet.read_table("vectors.parquet").column_names == ["id", "vector"]


@pytest.mark.parametrize("option", ["--recipe", "--config"])
def test_files_of_options_are_not_replaced(nearsim: CommandLine, project: Path, option: str) -> None:
    Path("options.toml").touch()
    given = (option, "options.toml", "-o", "../clean.jsonl", "--pairs", "options.toml")
    assert "both input and output" in nearsim.fail("dedupe", "train.jsonl", *given)


@pytest.mark.parametrize("command", [("dedupe", "-o", "../clean.jsonl"), ("ingest",)])
@pytest.mark.parametrize("folder", ["texts", "records"])
def test_rejects_replace_no_file_of_a_folder(
    nearsim: CommandLine, project: Path, command: tuple[str, ...], folder: str
) -> None:
    name, *options = command
    for path in ("texts/0.txt", "records/0.jsonl"):
        Path(path).parent.mkdir()
        write_jsonl(Path(path), [{"text": ALIKE}])
    rejects = next(Path(folder).iterdir())
    assert "both input and output" in nearsim.fail(name, folder, *options, "--rejects", rejects)
    assert ALIKE in rejects.read_text()


def test_arrow_is_not_rewritten_beside_itself(nearsim: CommandLine, project: Path) -> None:
    table = pyarrow.table({"text": [ALIKE]})
    with pyarrow.ipc.new_file("a.arrow", table.schema) as writer:
        writer.write_table(table)
    assert "would lie beside" in nearsim.fail("dedupe", "a.arrow", "-o", "../data/")
    assert not Path("a.parquet").exists()


def test_a_file_of_the_folder_replaces_no_other_input(nearsim: CommandLine, project: Path) -> None:
    nested = project / "data" / "data"
    nested.mkdir()
    write_jsonl(nested / "train.jsonl", [{"text": "more words"}])
    said = nearsim.fail("dedupe", "train.jsonl", "data/train.jsonl", "../extra.jsonl", "-o", "../data/")
    assert "would replace the input data/train.jsonl" in said
    assert written(project / "data") == {"train.jsonl": 2, "data/train.jsonl": 1}


@pytest.mark.parametrize("option", ["--pairs", "--clusters", "--rejects"])
def test_a_file_of_the_folder_is_no_other_output(nearsim: CommandLine, project: Path, option: str) -> None:
    said = nearsim.fail("dedupe", "train.jsonl", "-o", "../clean/", option, "../clean/train.jsonl")
    assert "would be written twice" in said
    assert not (project / "clean" / "train.jsonl").exists()


@pytest.mark.parametrize("other", ["./train.jsonl", "link.jsonl", "hard.jsonl", "tr*.jsonl"])
def test_a_file_is_named_once(nearsim: CommandLine, project: Path, other: str) -> None:
    Path("link.jsonl").symlink_to("train.jsonl")
    os.link("train.jsonl", "hard.jsonl")
    said = nearsim.fail("dedupe", "train.jsonl", other, "-o", "../clean.jsonl")
    assert "name it once" in said or "name each file once" in said


@pytest.mark.parametrize("other", ["train.jsonl", "../data/train.jsonl", "link.jsonl"])
def test_a_file_is_not_compared_with_itself(nearsim: CommandLine, project: Path, other: str) -> None:
    Path("link.jsonl").symlink_to("train.jsonl")
    said = nearsim.fail("dedupe", "train.jsonl", "--against", other, "-o", "../clean.jsonl")
    assert "leave --against out" in said
    assert not (project / "clean.jsonl").exists()


@pytest.mark.parametrize(("folder", "name"), [("texts", "0.txt"), ("tables", "0.parquet")])
def test_a_file_of_a_folder_is_named_once(
    nearsim: CommandLine, project: Path, folder: str, name: str
) -> None:
    Path(folder).mkdir()
    path = Path(folder, name)
    if folder == "texts":
        path.write_text(ALIKE)
    else:
        pyarrow.parquet.write_table(pyarrow.table({"text": [ALIKE]}), path)
    for given in ((folder, path), (path, folder)):
        assert "named twice" in nearsim.fail("dedupe", *given, "-o", "../clean.jsonl")
        one, other = given
        said = nearsim.fail("dedupe", one, "--against", other, "-o", "../clean.jsonl")
        assert "leave --against out" in said


WRITING = """
import os, signal, sys
from pathlib import Path
from nearsim_db.deduplication.folders import COMPLETE
from nearsim_db.errors import InputError
from nearsim_db.readers.output import open_output
with open_output(Path(sys.argv[1])) as stream:
    stream.write(b"half of the texts")
    stream.flush()
    os.kill(os.getpid(), signal.SIGKILL)
"""


def test_a_killed_run_leaves_no_file(tmp_path: Path) -> None:
    ended = subprocess.run([sys.executable, "-c", WRITING, tmp_path / "unique.jsonl"], check=False)
    assert ended.returncode == -signal.SIGKILL
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    ("name", "value"),
    [("os.O_TMPFILE", os.O_DIRECTORY), ("nearsim_db.readers.output._OPENED", Path("/nowhere"))],
    ids=["network file systems", "no /proc"],
)
def test_files_of_killed_runs_are_swept_where_they_need_names(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str, value: object
) -> None:
    monkeypatch.setattr(name, value)
    target, left = tmp_path / "unique.jsonl", tmp_path / f".unique.jsonl.{'0' * 16}.part"
    left.write_text("half of the texts")
    with open_output(target) as writing:
        assert not left.exists()
        writing.write(b"all\n")
        with open_output(target) as later:
            later.write(b"later\n")
        assert target.read_text() == "later\n"
    assert (target.read_text(), list(tmp_path.iterdir())) == ("all\n", [target])


def test_files_of_killed_runs_are_swept_by_the_next_run(nearsim: CommandLine, project: Path) -> None:
    left = [project / f"{folder}.other.jsonl.{'0' * 16}.part" for folder in ("", "clean/")]
    for path in left:
        path.parent.mkdir(exist_ok=True)
        path.write_text("half of the texts")
        nearsim.succeed("dedupe", "train.jsonl", "-o", f"{path.parent}/", "-q")
        assert not path.exists()


def test_a_file_that_is_being_written_is_not_swept(tmp_path: Path) -> None:
    with part_of(tmp_path / "unique.jsonl").open("wb") as writing:
        lock(writing.fileno())
        sweep_parts(tmp_path)
        assert len(list(tmp_path.iterdir())) == 1
    sweep_parts(tmp_path)
    assert list(tmp_path.iterdir()) == []


def test_copies_of_killed_runs_are_deleted_by_the_next_run(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    (left := tmp_path / "nearsim-copies-left").mkdir()
    (left / "input.jsonl").write_text("texts")
    with temporary_copies() as copies:
        assert list(tmp_path.iterdir()) == [copies]
        with temporary_copies():
            assert copies.is_dir()
    assert list(tmp_path.iterdir()) == []


def test_other_outputs_may_lie_in_the_output_folder(nearsim: CommandLine, project: Path) -> None:
    lists = ("--pairs", "../clean/pairs.jsonl", "--rejects", "../clean/rejects.jsonl")
    said = nearsim.succeed("dedupe", "train.jsonl", "-o", "../clean/", *lists).err
    assert written(project / "clean") == {"train.jsonl": 1, "pairs.jsonl": 1, "rejects.jsonl": 0}
    assert "besides what is written" not in said


def test_files_without_records_are_not_of_an_earlier_run(nearsim: CommandLine, project: Path) -> None:
    (project / "data" / "README.md").write_text("About the data.")
    assert "besides what is written" not in nearsim.succeed("dedupe", "../data", "-o", "../data/").err


def test_a_mark_says_that_the_folder_is_complete(
    nearsim: CommandLine, project: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    nearsim.succeed("dedupe", "train.jsonl", "-o", "../clean/", "-q")
    assert (project / "clean" / COMPLETE).read_bytes() == b""

    def fail(*given: object) -> None:
        raise InputError("the disk is full")

    with monkeypatch.context() as patch:
        patch.setattr("nearsim_db.deduplication.folders.copy_unique", fail)
        nearsim.fail("dedupe", "train.jsonl", "-o", "../clean/")
    assert not (project / "clean" / COMPLETE).exists()


def test_the_mark_is_no_other_output(nearsim: CommandLine, project: Path) -> None:
    given = ("-o", "../clean/", "--pairs", f"../clean/{COMPLETE}")
    assert "name another output file" in nearsim.fail("dedupe", "train.jsonl", *given)


def test_the_mark_of_an_earlier_run_is_no_input(nearsim: CommandLine, project: Path) -> None:
    nearsim.succeed("dedupe", "train.jsonl", "-o", "../clean/", "-q")
    given = ("--input-format", "jsonl", "-o", "../cleaner/", "-q")
    assert nearsim.succeed("dedupe", "../clean", *given).err == ""
    assert written(project / "cleaner") == {"train.jsonl": 1}


def test_files_of_an_earlier_run_are_named(nearsim: CommandLine, project: Path) -> None:
    nearsim.succeed("dedupe", "train.jsonl", "../extra.jsonl", "-o", "../clean/", "-q")
    said = nearsim.succeed("dedupe", "../extra.jsonl", "-o", "../clean/").err
    assert "clean/data/train.jsonl besides what is written now" in said
