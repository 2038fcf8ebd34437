"""Ctrl-C while several threads build: the command ends, and the same command completes the work."""

import os
import signal
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import psycopg
import pytest

from tests.builders.command_line import CommandLine, write_jsonl
from tests.builders.workers import wait_until

pytestmark = pytest.mark.slow("stops processes")

# A shell has processes that it starts in the background ignore SIGINT.
PROGRAM = (
    "import signal; signal.signal(signal.SIGINT, signal.default_int_handler); "
    "from nearsim_db.cli import main; main()"
)
WAITS = (
    "SELECT EXISTS (SELECT FROM pg_locks "
    "WHERE NOT granted AND relation = CAST('nearsim_index.build_slice' AS regclass))"
)
COUNT = 300


@pytest.fixture
def copies(tmp_path: Path) -> Path:
    """Different texts, each twice."""
    texts = [
        f"text {number} of {number * number} words about {number % 7} subjects" for number in range(COUNT)
    ]
    records = [{"id": f"{part}{at}", "text": text} for part in "ab" for at, text in enumerate(texts)]
    return write_jsonl(tmp_path / "copies.jsonl", records)


@pytest.fixture
def interrupt(nearsim: CommandLine, database_url: str) -> Callable[..., str]:
    """Run a command, interrupt it within a build as a terminal does; return its standard error."""

    def run(*arguments: object) -> str:
        with (
            psycopg.connect(database_url, autocommit=True) as asking,
            psycopg.connect(database_url) as holding,
        ):
            holding.execute("LOCK TABLE nearsim_index.build_slice IN EXCLUSIVE MODE")
            with subprocess.Popen(
                [sys.executable, "-c", PROGRAM, *map(str, arguments), "--jobs", "2"],
                env={**os.environ, **nearsim.environment},
                stdout=subprocess.DEVNULL,
                stderr=subprocess.PIPE,
                start_new_session=True,
                text=True,
            ) as process:
                try:
                    wait_until(asking, WAITS)
                    os.killpg(process.pid, signal.SIGINT)
                except BaseException:
                    os.killpg(process.pid, signal.SIGKILL)
                    raise
                holding.rollback()
                assert process.stderr is not None
                reported = process.stderr.read()
            assert process.returncode == 130
        return reported

    return run


def test_ingest_is_completed_by_the_same_command(
    nearsim: CommandLine, interrupt: Callable[..., str], copies: Path
) -> None:
    *_, last = interrupt("ingest", copies).splitlines()
    assert last == "interrupted; completed work is kept, run the same command again to resume"
    summary = nearsim.succeed("ingest", copies, "--json", "--jobs", "2").document()
    assert summary["unchanged"] == summary["profiles"][0]["documents"] == 2 * COUNT
    assert len(nearsim.succeed("clusters", "--format", "jsonl", "--limit", "10000").rows()) >= COUNT


def test_a_connection_lost_within_copy_is_one_error(
    nearsim: CommandLine, database_url: str, tmp_path: Path
) -> None:
    """The driver then fails to end the COPY, too, as it does after a second Ctrl-C."""
    nearsim.succeed("collection", "create", "news")
    with psycopg.connect(database_url, autocommit=True) as connection:
        connection.execute(
            "CREATE FUNCTION public.leave() RETURNS trigger LANGUAGE plpgsql AS "
            "'BEGIN PERFORM pg_terminate_backend(pg_backend_pid()); RETURN NEW; END'"
        )
        connection.execute(
            "CREATE TRIGGER leave BEFORE INSERT ON nearsim.document FOR EACH ROW EXECUTE FUNCTION public.leave()"
        )
    texts = write_jsonl(
        tmp_path / "long.jsonl", [{"id": str(at), "text": f"word{at} " * 20_000} for at in range(100)]
    )
    ended = subprocess.run(
        [sys.executable, "-m", "nearsim_db", "ingest", texts, "-c", "news", "--quiet"],
        env={**os.environ, **nearsim.environment},
        capture_output=True,
        text=True,
        check=False,
    )
    assert ended.returncode == 1
    assert ended.stderr.startswith("error: ") and ended.stderr.count("\n") == 1, ended.stderr
