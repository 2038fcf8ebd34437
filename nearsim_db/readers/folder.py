"""The files of a folder: regular files, and the reasons why other files are left out."""

import os
import stat
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

_KINDS = {
    stat.S_IFIFO: "a FIFO",
    stat.S_IFSOCK: "a socket",
    stat.S_IFCHR: "a device",
    stat.S_IFBLK: "a device",
}
LINK = "a symbolic link; --follow-links reads its target"


@dataclass(frozen=True, slots=True)
class LeftOut:
    """A file or subfolder that is not read, with the reason."""

    path: Path
    reason: str
    of_other_kind: bool = False  # whether it is left out because of its kind only, which is not an error


def list_files(folder: Path, *, follow_links: bool = False) -> Iterator[Path | LeftOut]:
    """Yield the regular files of a folder and its subfolders, and the files and subfolders that are left out.

    The files of a folder come before its subfolders, both sorted by name. Names that begin with a dot are skipped.
    Symbolic links are left out unless `follow_links` is true; each folder is then read once, however many links lead to
    it.
    """
    problems: list[OSError] = []
    seen = {identity_of(folder)}
    for place, subfolders, names in os.walk(folder, onerror=problems.append, followlinks=follow_links):
        yield from map(_unlisted, problems)
        problems.clear()

        for path in _visible(place, names):
            reason = _reason_against(path, follow_links=follow_links)
            yield path if reason is None else LeftOut(path, reason)

        entered = []
        for path in _visible(place, subfolders):
            if path.is_symlink() and not follow_links:
                yield LeftOut(path, LINK)
            elif follow_links and identity_of(path) in seen:
                yield LeftOut(
                    path, "a folder that was already read through a link, or a link to such a folder"
                )
            else:
                seen.add(identity_of(path))
                entered.append(path.name)
        # os.walk enters only the folders that remain in this list.
        subfolders[:] = entered
    yield from map(_unlisted, problems)


def _visible(place: str, names: list[str]) -> Iterator[Path]:
    return (Path(place, name) for name in sorted(names) if not name.startswith("."))


def _unlisted(problem: OSError) -> LeftOut:
    return LeftOut(Path(os.fsdecode(problem.filename)), f"cannot be read: {problem.strerror}")


def identity_of(path: Path) -> tuple[int, int] | None:
    """Return the device and inode of a file or folder, which are the same under all its names.

    Returns None if it cannot be examined.
    """
    try:
        state = path.stat()
    except OSError:
        return None
    return state.st_dev, state.st_ino


def _reason_against(path: Path, *, follow_links: bool) -> str | None:
    """Return why a file is not read; None for a regular file."""
    try:
        kind = stat.S_IFMT(path.lstat().st_mode)
        if kind == stat.S_IFLNK and not follow_links:
            return LINK
        if kind == stat.S_IFLNK:
            kind = stat.S_IFMT(path.stat().st_mode)
    except OSError as error:
        return f"cannot be read: {error.strerror}"
    return None if kind == stat.S_IFREG else f"{_KINDS.get(kind, 'a special file')}, not a regular file"
