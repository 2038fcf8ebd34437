"""Text files and folders of them: one document per file."""

import gzip
import os
import socket
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from nearsim_db.errors import InputError
from nearsim_db.readers import Fields, Reading, Source
from nearsim_db.readers.input_file import InputFile
from nearsim_db.readers.source import text_document
from nearsim_db.records import Document, ReadDocument, Reject


def test_a_text_file_is_one_document(tmp_path: Path) -> None:
    path = tmp_path / "story.txt"
    path.write_bytes(b"\xef\xbb\xbfFirst line\r\nsecond\n")
    expected = ReadDocument(Document("story.txt", body="First line\r\nsecond\n"), str(path), 0)
    assert list(Source([path], Fields(id="key", title="t", body="content"))) == [expected]


def test_text_files_of_a_folder_are_read_in_order(tmp_path: Path) -> None:
    contents = {
        "b.md": "1",
        "z.TXT": "2",
        "a/y.html": "3",
        "a/z.txt.gz": "4",
        "a/deep/er/x.htm": "5",
        "c d/é.text": "6",
    }
    for name, content in contents.items():
        path = tmp_path / "in" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(gzip.compress(content.encode()) if name.endswith(".gz") else content.encode())
    others = ["README", "data.bin", "a/picture.jpg"]
    for other in (".hidden.txt", *others):
        (tmp_path / "in" / other).write_text("of another kind, or hidden")
    (tmp_path / "in" / ".git").mkdir()
    (tmp_path / "in" / ".git" / "x.txt").write_text("ignored")
    source = Source([tmp_path / "in"])
    reads = list(source)
    assert source.other_files == tuple(tmp_path / "in" / other for other in others)
    documents = [read.document for read in reads if isinstance(read, ReadDocument)]
    assert [(document.external_id, document.body) for document in documents] == list(contents.items())
    assert str(tmp_path / "in" / "a" / "y.html") in [read.file for read in reads]
    assert source.bytes_read == source.total_bytes


def test_unreadable_files_are_rejected_and_the_folder_continues(tmp_path: Path) -> None:
    unreadable = {
        os.fsdecode(b"caf\xe9.txt"): b"x",
        "bad.txt.gz": b"no gzip",
        "cut.txt.gz": gzip.compress(b"a text", mtime=0)[:-4],
        "d" * 250 + "/" + "/".join(["d" * 250] * 3) + "/" + "n" * 100 + ".txt": b"x",
        "picture.txt": b"\x89PNG\r\n\x1a\n\0\0\0\rIHDR",
        "wide.txt": "wide".encode("utf-16"),
    }
    for name, content in unreadable.items():
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_bytes(content)
    (tmp_path / "gone.txt").symlink_to(tmp_path / "gone")
    (tmp_path / "z.txt").write_text("good")
    reads = list(Source([tmp_path]))
    rejects = {read.file: read.reason for read in reads if isinstance(read, Reject)}
    names = [name.replace("\udce9", "\ufffd") for name in (*unreadable, "gone.txt")]
    assert rejects.keys() == {str(tmp_path / name) for name in names}
    assert "utf-16" in rejects[str(tmp_path / "wide.txt")]
    assert contents(reads) == {"z.txt": "good"}


def test_a_text_beyond_the_limit_is_rejected(tmp_path: Path) -> None:
    path = tmp_path / "long.txt"
    path.write_bytes(b"x" * 101)
    assert text_document(InputFile(path, limit=100), "long") == Reject(
        str(path), 0, "longer than 100 bytes, the maximum for one document"
    )
    assert isinstance(text_document(InputFile(path, limit=101), "long"), ReadDocument)


def test_a_folder_without_text_files_is_an_error(tmp_path: Path) -> None:
    (tmp_path / "data.xml").write_text("{}")
    with pytest.raises(InputError, match=r"\.txt"):
        Source([tmp_path])


@pytest.fixture
def linked(tmp_path: Path) -> Path:
    """A folder with a text, links out of it, to its own files and to itself, and special files."""
    outside = tmp_path / "outside"
    outside.mkdir()
    (outside / "secret.txt").write_text("not to be read")
    folder = tmp_path / "in"
    (folder / "sub").mkdir(parents=True)
    (folder / "a.txt").write_text("x")
    (folder / "sub" / "b.txt").write_text("y")
    (folder / "file.txt").symlink_to(outside / "secret.txt")
    (folder / "gone.txt").symlink_to(outside / "gone")
    (folder / "loop").symlink_to(folder)
    (folder / "more").symlink_to(outside)
    (folder / "more-again").symlink_to(outside)
    (folder / "own.txt").symlink_to("a.txt")
    os.mkfifo(folder / "pipe.txt")
    (folder / "pipe-link.txt").symlink_to("pipe.txt")
    (folder / "zero.txt").symlink_to("/dev/zero")
    with socket.socket(socket.AF_UNIX) as listening:
        listening.bind(str(folder / "socket.txt"))
    return folder


def contents(reads: list[ReadDocument | Reject]) -> dict[str, str]:
    """The texts by id."""
    documents = [read.document for read in reads if isinstance(read, ReadDocument)]
    return {one.external_id: one.body or "" for one in documents}


def reasons(folder: Path, reads: list[ReadDocument | Reject]) -> dict[str, str]:
    """Why files were rejected, by their path within the folder."""
    return {read.file.removeprefix(f"{folder}/"): read.reason for read in reads if isinstance(read, Reject)}


def test_only_regular_files_of_a_folder_are_read(linked: Path) -> None:
    source = Source([linked])
    reads = list(source)
    assert contents(reads) == {"a.txt": "x", "sub/b.txt": "y"}
    link = "a symbolic link; --follow-links reads its target"
    links = ["file.txt", "gone.txt", "loop", "more", "more-again", "own.txt", "pipe-link.txt", "zero.txt"]
    assert reasons(linked, reads) == {
        **dict.fromkeys(links, link),
        "pipe.txt": "a FIFO, not a regular file",
        "socket.txt": "a socket, not a regular file",
    }
    assert source.bytes_read == source.total_bytes == 2


def test_links_in_folders_are_followed_on_request(linked: Path) -> None:
    source = Source([linked], reading=Reading(follow_links=True))
    reads = list(source)
    secret = "not to be read"
    assert contents(reads) == {
        **{"a.txt": "x", "sub/b.txt": "y", "own.txt": "x"},
        **{"file.txt": secret, "more/secret.txt": secret},
    }
    assert reasons(linked, reads) == {
        "gone.txt": "cannot be read: No such file or directory",
        **dict.fromkeys(["pipe.txt", "pipe-link.txt"], "a FIFO, not a regular file"),
        "socket.txt": "a socket, not a regular file",
        "zero.txt": "a device, not a regular file",
        **dict.fromkeys(
            ["loop", "more-again"],
            "a folder that was already read through a link, or a link to such a folder",
        ),
    }
    assert source.bytes_read == source.total_bytes


@pytest.mark.parametrize("make", [os.mkfifo, lambda path: path.symlink_to("/etc/hostname")])
def test_a_file_that_is_replaced_after_it_was_listed_is_not_opened(
    tmp_path: Path, make: Callable[[Path], None]
) -> None:
    path = tmp_path / "b.txt"
    make(path)
    read = text_document(InputFile(path, is_regular=True, follow_links=False), "b.txt")
    assert isinstance(read, Reject)
    assert f"cannot read {path}: " in read.reason


def test_link_given_as_path_is_read(linked: Path) -> None:
    assert contents(list(Source([linked / "file.txt"]))) == {"file.txt": "not to be read"}
    assert contents(list(Source([linked / "more"]))) == {"secret.txt": "not to be read"}


def test_pipe_given_as_path_is_read(tmp_path: Path) -> None:
    path = tmp_path / "pipe.jsonl"
    os.mkfifo(path)
    with ThreadPoolExecutor(1) as pool:
        writing = pool.submit(path.write_text, '{"id": "a", "text": "x"}\n')
        assert contents(list(Source([path]))) == {"a": "x"}
        assert writing.result() > 0


def test_a_subfolder_that_cannot_be_listed_is_rejected(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "closed").mkdir()
    (tmp_path / "a.txt").write_text("x")
    scandir = os.scandir

    def closed_to_us(path: str) -> object:
        if str(path).endswith("closed"):
            raise PermissionError(13, "Permission denied", str(path))
        return scandir(path)

    monkeypatch.setattr(os, "scandir", closed_to_us)
    reads = list(Source([tmp_path]))
    assert [type(read) for read in reads] == [ReadDocument, Reject]
    assert reads[1] == Reject(str(tmp_path / "closed"), 0, "cannot be read: Permission denied")
