"""Fixtures of pytest for applications that use nearsim.

A test module or conftest.py names them with `pytest_plugins = ["nearsim_db.testing"]`.
"""

import shutil
import tempfile
import uuid
from collections.abc import Iterator
from pathlib import Path

import pytest

from nearsim_db.index import Index
from nearsim_db.indexing.drop_generation import delete_collection
from nearsim_db.store.database import Database
from nearsim_db.store.embedded import embedded


@pytest.fixture(scope="session")
def nearsim_url() -> Iterator[str]:
    """The URL of a database of its own on a temporary embedded server, which stops with the tests.

    Needs the extra `embedded`. To use a server of yours, define a fixture of this name.
    """
    # Not below pytest's folder: its path may be too long for a socket, and closed to the server's user.
    home = Path(tempfile.mkdtemp(prefix="nearsim-"))
    home.chmod(0o755)
    try:
        url = embedded.start(home)
        Database.initialise(url)
        yield url
    finally:
        embedded.stop(home)
        shutil.rmtree(home)


@pytest.fixture
def nearsim_index(nearsim_url: str) -> Iterator[Index]:
    """An index of an empty collection, which is deleted after the test."""
    with Index.connect(nearsim_url, collection=f"test-{uuid.uuid4().hex}") as index:
        index.create_collection()
        yield index
        delete_collection(index.database, index.collection)
