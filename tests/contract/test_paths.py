"""The files that the main operations run through, compared with golden files so that their growth is seen."""

from pathlib import Path

import pytest

from tests.builders.called_files import called_files
from tests.builders.command_line import CommandLine, write_jsonl
from tests.builders.workers import application
from tests.contract.test_contract import compare

pytestmark = pytest.mark.slow("commands under a profiler")

NUMBA = {"NEARSIM_BACKEND": "numba", "NEARSIM_THREADS": "1"}  # as in any longer run, however short the texts


def text_of(number: int) -> str:
    """A text whose only near-duplicate is that of its neighbour."""
    words = [f"word{number // 2}x{position}" for position in range(12)]
    return " ".join(words + ["more"] * (number % 2))


def write_texts(path: Path, count: int) -> Path:
    """Write a file of `count` records, half of which are near-duplicates of the record before them."""
    return write_jsonl(path, ({"id": f"d{number}", "text": text_of(number)} for number in range(count)))


@pytest.fixture
def environment(database_url: str) -> dict[str, str]:
    """The environment of commands on a fresh database."""
    return {**NUMBA, "NEARSIM_DATABASE_URL": database_url}


@pytest.fixture
def indexed(environment: dict[str, str], tmp_path: Path) -> dict[str, str]:
    """The environment of commands on a database with a small index."""
    CommandLine(environment).succeed("ingest", write_texts(tmp_path / "texts.jsonl", 100))
    return environment


def test_files_of_dedupe(request: pytest.FixtureRequest, tmp_path: Path) -> None:
    texts = write_texts(tmp_path / "texts.jsonl", 2_000)
    arguments = "dedupe", texts, "-o", tmp_path / "unique.jsonl"
    compare(request, "path_dedupe.txt", called_files(tmp_path, NUMBA, *arguments))


def test_files_of_a_first_ingest(
    request: pytest.FixtureRequest, environment: dict[str, str], tmp_path: Path
) -> None:
    texts = write_texts(tmp_path / "texts.jsonl", 20_000)
    compare(request, "path_ingest.txt", called_files(tmp_path, environment, "ingest", texts))


def test_files_of_similar(request: pytest.FixtureRequest, indexed: dict[str, str], tmp_path: Path) -> None:
    compare(request, "path_similar.txt", called_files(tmp_path, indexed, "similar", "--text", text_of(1)))


def test_files_of_a_changed_row(
    request: pytest.FixtureRequest, indexed: dict[str, str], tmp_path: Path
) -> None:
    with application(indexed["NEARSIM_DATABASE_URL"]) as connection:
        connection.execute("UPDATE nearsim.document SET body = body || ' again' WHERE external_id = 'd1'")
    compare(request, "path_worker.txt", called_files(tmp_path, indexed, "worker", "--once"))
