"""Where `dedupe` writes: below its output folder only, and over an input only where that is the input's own place."""

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from nearsim_db.analysis.dedupe_shards import COMPLETE
from nearsim_db.errors import InputError
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


WRITING = """
import os, signal, sys
from pathlib import Path
from nearsim_db.analysis.dedupe_shards import COMPLETE
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


def test_files_of_killed_runs_are_swept_where_they_need_names(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As on network file systems, which have no files without names."""
    monkeypatch.setattr("os.O_TMPFILE", os.O_DIRECTORY)
    target, left = tmp_path / "unique.jsonl", tmp_path / f".unique.jsonl.{'0' * 16}.part"
    left.write_text("half of the texts")
    with open_output(target) as writing:
        assert not left.exists()
        writing.write(b"all\n")
        with open_output(target) as later:
            later.write(b"later\n")
        assert target.read_text() == "later\n"
    assert (target.read_text(), list(tmp_path.iterdir())) == ("all\n", [target])


def test_a_mark_says_that_the_folder_is_complete(
    nearsim: CommandLine, project: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    nearsim.succeed("dedupe", "train.jsonl", "-o", "../clean/", "-q")
    assert (project / "clean" / COMPLETE).read_bytes() == b""

    def fail(*given: object) -> None:
        raise InputError("the disk is full")

    with monkeypatch.context() as patch:
        patch.setattr("nearsim_db.analysis.dedupe_shards.copy_unique", fail)
        nearsim.fail("dedupe", "train.jsonl", "-o", "../clean/")
    assert not (project / "clean" / COMPLETE).exists()


def test_files_of_an_earlier_run_are_named(nearsim: CommandLine, project: Path) -> None:
    nearsim.succeed("dedupe", "train.jsonl", "../extra.jsonl", "-o", "../clean/", "-q")
    said = nearsim.succeed("dedupe", "../extra.jsonl", "-o", "../clean/").err
    assert "clean/data/train.jsonl besides what is written now" in said
