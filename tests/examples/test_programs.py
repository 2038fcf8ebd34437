"""The example programs run as their files say."""

import configparser
import csv
import gzip
import os
import shlex
import signal
import socket
import subprocess
import sys
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from tests.examples.conftest import EXAMPLES

PATIENCE_SECONDS = 60


def run(path: Path, url: str, *arguments: str) -> list[str]:
    """The lines that a program prints."""
    ended = subprocess.run(
        [sys.executable, str(path), *arguments],
        env=os.environ | {"NEARSIM_DATABASE_URL": url, "NEARSIM_BACKEND": "numpy"},
        capture_output=True,
        text=True,
        check=False,
    )
    assert (ended.returncode, ended.stderr) == (0, "")
    return ended.stdout.splitlines()


@pytest.mark.slow("starts a process")
def test_python_script_prints_each_copy_once(database_url: str) -> None:
    read, *drops = run(EXAMPLES / "python" / "find_copies.py", database_url, str(EXAMPLES / "stories.jsonl"))
    assert read == "read 113, rejected 0"
    assert "drop story-038, keep story-036 (0.966)" in drops
    dropped = [line.split()[1] for line in drops]
    assert len(dropped) == len(set(dropped)) > 20


@pytest.mark.slow("starts a process")
def test_python_script_writes_each_text_once(demo_url: str, tmp_path: Path) -> None:
    output = tmp_path / "unique.csv.gz"
    (line,) = run(EXAMPLES / "python" / "write_unique.py", demo_url, str(output))
    with gzip.open(output, "rt", newline="") as stream:
        rows = list(csv.DictReader(stream))
    assert line == f"{output}: {len(rows)} documents, {113 - len(rows)} copies left out"
    assert {"id", "title", "text"} == rows[0].keys() and 20 < len(rows) < 93
    assert len({row["text"] for row in rows}) == len(rows)


@pytest.mark.slow("starts a process")
def test_sqlalchemy_application_finds_its_copy(database_url: str) -> None:
    lines = run(EXAMPLES / "sqlalchemy" / "app.py", database_url, database_url)
    assert lines == ["news: article-1 is a copy of article-0"]


def unused_instance() -> int:
    """The number of an instance of the service whose port is free: 9180 + 0 to 9."""
    for number in range(10):
        with socket.socket() as probe:
            if probe.connect_ex(("127.0.0.1", 9180 + number)) != 0:
                return number
    raise AssertionError("ports 9180 to 9189 are all in use")


def service_arguments(instance: str) -> list[str]:
    """The arguments of nearsim that the shell of the service makes for an instance."""
    unit = configparser.ConfigParser(interpolation=None)
    unit.read(EXAMPLES / "systemd" / "nearsim-worker@.service")
    line = unit["Service"]["ExecStart"].replace("%i", instance).replace("%%", "%").replace("$$", "$")
    shell = shlex.split(line)
    assert shell[:2] == ["/bin/sh", "-c"] and shell[2].startswith("exec /opt/nearsim/bin/nearsim ")
    command = shell[2].replace("exec /opt/nearsim/bin/nearsim", "echo")
    return subprocess.run([*shell[:2], command], capture_output=True, text=True, check=True).stdout.split()


def test_every_instance_of_the_service_has_a_valid_port() -> None:
    for instance, port in (("1", 9181), ("10", 9190), ("08", 9188), ("50000", 9180), ("123456", 32636)):
        assert service_arguments(instance) == ["worker", "--http", str(port)]


@contextmanager
def service(url: str, number: int) -> Iterator[subprocess.Popen[str]]:
    """The command of the service, as an instance of this number."""
    environment = os.environ | {"NEARSIM_DATABASE_URL": url, "NEARSIM_BACKEND": "numpy"}
    command = [sys.executable, "-m", "nearsim_db", *service_arguments(str(number))]
    worker = subprocess.Popen(command, env=environment, stderr=subprocess.PIPE, text=True)
    try:
        yield worker
    finally:
        worker.kill()
        worker.communicate()


@pytest.mark.slow("starts a worker")
def test_service_is_healthy_and_ends_when_systemd_stops_it(database_url: str) -> None:
    number = unused_instance()
    with service(database_url, number) as worker:
        assert worker.stderr is not None
        for line in worker.stderr:
            if f"918{number}" in line:
                break
        with urllib.request.urlopen(
            f"http://127.0.0.1:918{number}/metrics", timeout=PATIENCE_SECONDS
        ) as page:
            assert b"nearsim_info" in page.read()
        worker.send_signal(signal.SIGTERM)
        assert worker.wait(PATIENCE_SECONDS) == 0
