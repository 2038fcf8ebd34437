"""pytest fixtures for applications that use nearsim.

To use them, write `pytest_plugins = ["nearsim_db.testing"]` in a test module or in conftest.py.
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
    """The URL of a new database on a temporary embedded server, which is stopped after the last test.

    Requires the extra `embedded`. To use another server, define a fixture with this name.
    """
    # Not in pytest's folder: its path may be too long for a socket, and the server's user may not be able to read it.
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
    """The index of a new, empty collection, which is deleted after the test."""
    with Index.connect(nearsim_url, collection=f"test-{uuid.uuid4().hex}") as index:
        index.create_collection()
        yield index
        delete_collection(index.database, index.collection)
