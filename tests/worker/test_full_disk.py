"""A disk that is really full: nothing is set aside or lost, work goes on once there is room, and commands say why."""

import os
import subprocess
import tempfile
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import psycopg
import pytest

from nearsim_db import Document, Index
from nearsim_db.admin.reindex import Reindex
from nearsim_db.admin.verify_index import verify_index
from nearsim_db.errors import DatabaseError
from nearsim_db.similarity.recipe import Recipe, override
from nearsim_db.store.database import Database
from nearsim_db.worker.worker import Worker
from tests.builders.command_line import CommandLine, write_jsonl
from tests.builders.reindex_world import words
from tests.builders.workers import application, ask
from tests.servers.databases import Server

pytestmark = pytest.mark.slow("fills a disk")

_ROUNDS = 8  # more than the attempts after which a document is set aside
_PAGE = 8_192
_WRITE = """
INSERT INTO nearsim.document (collection_id, external_id, body)
SELECT collection_id, 'd' || number, (
    SELECT string_agg('family' || number / 4 || 'word' || at, ' ') || ' own' || number
    FROM generate_series(1, 40) AS at)
FROM nearsim.collection, generate_series(1, 4000) AS number
"""
_ATTEMPTS = "SELECT coalesce(max(attempts), 0) + count(set_aside_at) FROM nearsim.work"
_LEASED = "SELECT count(lease_id) > 0 FROM nearsim.work"
_SIGNED = """
SELECT array_agg(signed) FROM (SELECT count(*) AS signed FROM nearsim.signature GROUP BY generation_id) AS generation
"""


class SmallDisk:
    """A file system of 64 MB in memory, which can be filled."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self._filler = folder / "filler"

    def fill(self, spare_bytes: int = 0) -> None:
        """Write until there is no space but this."""
        with self._filler.open("ab") as file, suppress(OSError):
            while True:
                os.write(file.fileno(), bytes(4096))
        os.truncate(self._filler, self._filler.stat().st_size - spare_bytes)

    def free(self) -> None:
        """Make room."""
        self._filler.unlink()


@pytest.fixture
def disk(server: Server) -> Iterator[SmallDisk]:
    """A small disk for a tablespace of the server; needs root and the right to mount."""
    folder = Path(tempfile.mkdtemp(prefix="nearsim-full-"))
    mounted = subprocess.run(
        ["mount", "-t", "tmpfs", "-o", "size=64m,mode=0755", "none", folder], capture_output=True, check=False
    )
    if mounted.returncode:
        folder.rmdir()
        pytest.skip("this user may not mount a small file system")
    try:
        space, owner = folder / "space", server.cluster.data_directory.stat()
        space.mkdir()
        os.chown(space, owner.st_uid, owner.st_gid)
        folder.chmod(0o755)
        yield SmallDisk(folder)
    finally:
        subprocess.run(["umount", "-l", folder], check=True)
        folder.rmdir()


def fill(url: str) -> None:
    """An index of a few documents."""
    with Index.connect(url) as index:
        index.create_profile("default", override(Recipe(), ["sketch.k=32", "match.threshold=0.5"]))
        index.add([Document("first", body="the first of all")])
        index.build()


@pytest.fixture
def url(server: Server, disk: SmallDisk) -> Iterator[str]:
    """A database on the small disk."""
    maintenance = server.cluster.dsn("postgres")
    with server.database(fill) as url:
        name = url.partition("?")[0].rpartition("/")[2]
        with psycopg.connect(maintenance, autocommit=True) as admin:
            admin.execute(f"CREATE TABLESPACE small LOCATION '{disk.folder}/space'".encode())
            admin.execute(f"ALTER DATABASE {name} SET TABLESPACE small".encode())
        yield url
        with psycopg.connect(maintenance, autocommit=True) as admin:
            admin.execute(f"ALTER DATABASE {name} SET TABLESPACE pg_default".encode())
            admin.execute("DROP TABLESPACE small")


def reindex(index: Index) -> object:
    """Build another generation."""
    return Reindex(index.database, "default").start(settings=["match.threshold=0.3"])


def test_a_full_disk_sets_nothing_aside(url: str, disk: SmallDisk) -> None:
    with application(url) as app:
        app.execute(_WRITE.encode())
    leased: list[object] = []
    for number in range(_ROUNDS):
        disk.fill(spare_bytes=_PAGE << number)
        with pytest.raises(DatabaseError, match="disk is full"):
            Worker(url).drain()
        with application(url) as app:
            assert ask(app, _ATTEMPTS) == 0
            leased.append(ask(app, _LEASED))
    assert True in leased  # by a worker that could not release its work
    disk.fill()
    for command in (lambda index: index.build(), lambda index: index.purge(["d1"]), reindex):
        with Index.connect(url) as index, pytest.raises(DatabaseError, match="disk is full"):
            command(index)
    disk.free()
    assert Worker(url).drain() == 0
    with Index.connect(url) as index:
        index.purge(["d1"])
    with Database.connect(url) as database:
        reindexing = Reindex(database, "default")
        reindexing.resume()  # its number was taken before the disk was full
        reindexing.promote()
        assert verify_index(database, sample=None).found.faults == ()
    with application(url) as app:
        assert ask(app, _SIGNED) == [4000, 4000]


def test_dedupe_without_room_for_its_files_says_so(disk: SmallDisk, tmp_path: Path) -> None:
    """Wherever the room ends: before sketches, features, band keys or pairs."""
    texts = ({"id": str(at), "text": f"{words(at)} number {at}"} for at in range(8_000))
    stories = write_jsonl(tmp_path / "in.jsonl", texts)
    command = CommandLine({"TMPDIR": str(disk.folder), "NEARSIM_BACKEND": "numpy"})
    codes = []
    for spare_bytes in (*range(1 << 20, 9 << 20, 1 << 20), 32 << 20):
        disk.fill(spare_bytes)
        given = ("dedupe", stories, "-o", tmp_path / "out.jsonl", "--set", "match.threshold=0.3", "--quiet")
        with command.started(*given) as process:
            _, errors = process.communicate()
        disk.free()
        codes.append(process.returncode)
        assert ("cannot write a temporary file: No space left on device" in errors) == bool(
            process.returncode
        )
    assert codes == sorted(codes, reverse=True)
    assert set(codes) == {0, 1}
