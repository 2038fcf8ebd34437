"""The fixtures that applications use in their tests."""

import subprocess
import sys
from pathlib import Path

import pytest

TESTS = """
from nearsim_db import Document, Index

pytest_plugins = ["nearsim_db.testing"]

def test_an_index_is_empty(nearsim_index):
    assert list(nearsim_index.pairs()) == []
    nearsim_index.add([Document("a", body="the ferry is late"), Document("b", body="the ferry is late")])
    assert len(list(nearsim_index.pairs())) == 1

def test_another_test_sees_nothing_of_it(nearsim_index, nearsim_url):
    assert list(nearsim_index.pairs()) == []
    with Index.connect(nearsim_url) as index:
        assert [one.name for one in index.database.collections()] == [nearsim_index.collection]
"""


@pytest.mark.slow("starts a server")
def test_each_test_has_an_empty_collection(tmp_path: Path) -> None:
    (tmp_path / "test_application.py").write_text(TESTS)
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", str(tmp_path)]
    ended = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False)
    assert "2 passed" in ended.stdout, ended.stdout
