"""The commands of docs/how-to/upgrading.md, run as they are written."""

import json
import os
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import psycopg
import pytest

from nearsim_db import Index
from nearsim_db.store.embedded import ensure_running
from nearsim_db.store.embedded.binaries import installed_binaries
from tests.servers.homes import server_home

PAGE = Path(__file__).parents[2] / "docs" / "how-to" / "upgrading.md"
ROWS: list[dict[str, object]] = [
    {"id": "b \\n %s '$HOME'", "title": 'a "quoted" \\ title', "text": "one\ntwo\tthree \u2028 é 字 `x`"},
    {"id": "a", "text": "a text", "source": "s", "url": "http://x/?a=1&b=2", "lang": "en"},
    {"id": "dated", "text": "t", "published_at": "2024-02-29T23:59:59.123456+05:30"},
    {"id": "nested", "text": "t", "extra": {"n": 1.5, "deep": [1, None, {"text": "x"}]}},
    {"id": "vector", "vector": [0.1, 2.5, -3e-8]},
    {"id": "empty", "title": None, "text": ""},
]


@pytest.fixture
def home() -> Iterator[Path]:
    with server_home() as folder:
        yield folder


def commands(heading: str) -> str:
    """The commands of the first console block of a section of the page, without what they print."""
    section = PAGE.read_text(encoding="utf-8").partition(f"## {heading}\n")[2]
    block = section.partition("```console\n")[2].partition("```")[0]
    return "\n".join(
        line.removeprefix("$ ") for line in block.splitlines() if line.startswith(("$ ", "    "))
    )


def run(script: str, folder: Path, home: Path) -> None:
    programs = [Path(sys.executable).parent, installed_binaries().directory]
    environment = {
        **os.environ,
        "PATH": ":".join([*map(str, programs), os.environ["PATH"]]),
        "NEARSIM_HOME": str(home),
        "NEARSIM_DATABASE_URL": "",
    }
    done = subprocess.run(
        ["bash", "-euo", "pipefail", "-c", script],
        cwd=folder,
        env=environment,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr


def stored(address: str) -> dict[str, tuple[object, ...]]:
    with psycopg.connect(address) as connection:
        rows = connection.execute(
            "SELECT external_id, title, body, vector, source, url, published_at, attributes FROM nearsim.document"
        ).fetchall()
    return {str(row[0]): tuple(row[1:]) for row in rows}


@pytest.mark.slow("starts the commands of a page, on a server of their own")
def test_documents_survive_the_export_from_a_refused_schema(home: Path, tmp_path: Path) -> None:
    address = ensure_running(home, overrides={"fsync": "off"})
    (tmp_path / "rows.jsonl").write_text("".join(json.dumps(row) + "\n" for row in ROWS), encoding="utf-8")
    run("nearsim ingest rows.jsonl --collection tour -q", tmp_path, home)
    before = stored(address)
    assert len(before) == len(ROWS)
    with psycopg.connect(address) as connection:
        connection.execute("UPDATE nearsim_index.schema_floor SET baseline_digest = repeat('0', 64)")
    script = commands("Before the first release")
    assert re.search(r"^psql .*tour\.jsonl$", script, re.DOTALL | re.MULTILINE)
    run(script, tmp_path, home)
    assert stored(address) == before
    with Index.connect(address, collection="tour") as index:
        assert index.stats()["documents"] == len(ROWS)
