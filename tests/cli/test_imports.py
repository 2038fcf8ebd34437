"""What a process imports to answer a question: neither the libraries of an index nor those of migrations and help."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from nearsim_db import Document, Index
from nearsim_db.similarity.profile import make_family
from nearsim_db.similarity.recipe import Recipe, override
from nearsim_db.similarity.recipe.sections import METRIC_OF_FAMILY
from nearsim_db.similarity.sketch import FAMILIES
from tests.servers.databases import Server

HEAVY = [
    *("alembic", "sqlalchemy", "numpy", "numba", "rich", "pydantic", "tenacity", "psutil", "matplotlib"),
    *("nearsim_db.index", "nearsim_db.indexing.build", "nearsim_db.similarity.sketch", "nearsim_db.readers.source"),
]  # fmt: skip
QUESTIONS = [
    *(
        ["collection", "list"],
        ["profile", "list"],
        ["pairs"],
        ["pairs", "--format", "jsonl"],
        ["export", "--quiet"],
    ),
    *(
        ["clusters", "--format", "csv"],
        ["clusters", "--show", "a"],
        ["similar", "a"],
        ["document", "get", "a"],
        ["events"],
    ),
    *(
        ["export", "--format", "csv", "--quiet"],
        ["work", "list"],
        ["verdict", "list"],
        ["server", "status"],
        ["server", "url"],
    ),
]
CURVES = [["stats"], ["profile", "show", "default"], ["reindex", "status"], ["doctor"]]
NEEDED_FOR_CURVES = {"numpy", "nearsim_db.similarity.sketch"}
PROBE = """
import json, sys
from nearsim_db.cli.app import app
for question in json.loads(sys.argv[1]):
    app(question, standalone_mode=False)
    found = sorted(set(json.loads(sys.argv[2])) & set(sys.modules))
    if found:
        sys.exit(f"{question} imports {found}")
"""


def fill(url: str) -> None:
    """Two near-duplicates."""
    text = "a story of some length that is told in exactly the same words twice"
    with Index.connect(url) as index:
        index.add([Document("a", body=f"{text} over"), Document("b", body=f"{text} more")])


def test_help_imports_nothing_heavy() -> None:
    heavy = ["numpy", "numba", "sqlalchemy", "psycopg", "alembic", "rich.progress"]
    command = [sys.executable, "-c", PROBE, json.dumps([["--help"]]), json.dumps(heavy)]
    assert subprocess.run(command, capture_output=True, check=False).returncode == 0


@pytest.mark.parametrize(
    ("questions", "heavy"),
    [(QUESTIONS, HEAVY), (CURVES, [one for one in HEAVY if one not in NEEDED_FOR_CURVES])],
    ids=["stored answers", "curves"],
)
def test_questions_import_nothing_heavy(server: Server, questions: list[list[str]], heavy: list[str]) -> None:
    with server.database(fill) as url:
        command = [sys.executable, "-c", PROBE, json.dumps(questions), json.dumps(heavy)]
        environment = {**os.environ, "NEARSIM_DATABASE_URL": url}
        ended = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
    assert (ended.returncode, ended.stderr) == (0, "")


def test_a_small_corpus_is_deduplicated_without_numba(tmp_path: Path) -> None:
    texts = ["a story of some length that is told in exactly the same words twice"] * 2
    source, unique = tmp_path / "in.jsonl", tmp_path / "out.jsonl"
    source.write_text("".join(f'{{"id": "{at}", "text": "{text}"}}\n' for at, text in enumerate(texts)))
    dedupe = [["dedupe", str(source), "--output", str(unique)]]
    heavy = ["numba", "sqlalchemy", "psycopg"]
    command = [sys.executable, "-c", PROBE, json.dumps(dedupe), json.dumps(heavy)]
    environment = {name: one for name, one in os.environ.items() if name != "NEARSIM_BACKEND"}
    ended = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
    assert ended.returncode == 0, ended.stderr
    assert len(unique.read_text().splitlines()) == 1


def test_numba_starts_without_scipy(tmp_path: Path) -> None:
    source = tmp_path / "in.jsonl"
    source.write_text('{"id": "a", "text": "a story of some length"}\n')
    probe = """
import sys
from nearsim_db.cli import main
try:
    main()
except SystemExit as end:
    sys.exit("numba is not there" if "numba" not in sys.modules else bool(sys.modules.get("scipy")) or end.code)
"""
    command = [sys.executable, "-c", probe, "dedupe", str(source), "--dry-run"]
    environment = {**os.environ, "NEARSIM_BACKEND": "numba"}
    ended = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
    assert ended.returncode == 0, ended.stderr


def test_metrics_by_name_are_those_of_the_families() -> None:
    found = {
        family: make_family(override(Recipe(), [f"sketch.family={family}"])).metric for family in FAMILIES
    }
    assert found == METRIC_OF_FAMILY
