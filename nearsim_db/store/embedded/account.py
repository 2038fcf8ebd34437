"""The operating system user that runs the embedded server, and the path of the server's socket.

This is the current user, or a special user if nearsim runs as root.
"""

import os
import pwd
import stat
import subprocess
from collections.abc import Iterable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import quote

from nearsim_db.errors import ServerError

SUPERUSER = "nearsim"
PORT = 5432
_ACCOUNTS_FOR_ROOT = ("postgres", "nearsim")


def connection_uri(socket_directory: Path, database: str = SUPERUSER) -> str:
    """Return the URI of a database behind a socket, for libpq or, with another scheme, for SQLAlchemy."""
    return f"postgresql://{SUPERUSER}@/{database}?host={quote(str(socket_directory), safe='')}&port={PORT}"


def socket_path(socket_directory: Path) -> Path:
    """Return the path of the socket that a server creates in its socket directory."""
    return socket_directory / f".s.PGSQL.{PORT}"


@dataclass(frozen=True, slots=True)
class Account:
    """An operating system user that runs the server's programs."""

    name: str
    user_id: int
    group_id: int

    @property
    def is_current(self) -> bool:
        """Whether this process runs as this user."""
        return self.user_id == os.geteuid()

    def run(
        self, arguments: Sequence[str], *, text: str = "", open_descriptors: Iterable[int] = ()
    ) -> subprocess.CompletedProcess[str]:
        """Run a program as this user, in the folder / and with a minimal environment, and wait for it to end.

        `open_descriptors` stay open in the program and its children. Raises OSError if it cannot be run.
        """
        # No variables are inherited, because PGDATA, PGOPTIONS and others would change what PostgreSQL's programs do.
        return subprocess.run(
            arguments,
            input=text,
            capture_output=True,
            text=True,
            errors="replace",
            check=False,
            cwd="/",
            env={"PATH": "/usr/local/bin:/usr/bin:/bin", "LC_ALL": "C"},
            pass_fds=tuple(open_descriptors),
            user=None if self.is_current else self.user_id,
            group=None if self.is_current else self.group_id,
            extra_groups=None if self.is_current else [],
        )

    def give(self, path: Path) -> None:
        """Make this user the owner of a file or folder that nearsim created."""
        if not self.is_current:
            os.chown(path, self.user_id, self.group_id, follow_symlinks=False)

    def make_folder(self, folder: Path) -> None:
        """Create a folder and its missing parents so that this user can enter them; after an error, remove them again.

        New folders are private, unless root creates them for this user: then every user may enter them. Raises OSError,
        and ServerError in two cases: this user may not enter a folder that exists, or root would create folders inside
        a folder of another user, who could then replace them, but not use them.
        """
        missing = [path for path in (folder, *folder.parents) if not path.exists()]
        self.require_entry(missing[-1].parent if missing else folder)
        if missing:
            self._refuse_folder_of_user(missing[-1].parent)

        created: list[Path] = []
        try:
            for path in reversed(missing):
                # Another process may create the folder at the same time.
                with suppress(FileExistsError):
                    path.mkdir()
                    created.append(path)
                path.chmod(0o700 if self.is_current else 0o755)
            self.require_entry(folder)
        except (OSError, ServerError):
            for path in reversed(created):
                with suppress(OSError):
                    path.rmdir()
            raise

    def _refuse_folder_of_user(self, folder: Path) -> None:
        owner = folder.stat().st_uid
        if not self.is_current and owner not in (0, self.user_id):
            raise ServerError(
                f"{folder} belongs to another user, and the server of root would lock that user out. Run nearsim as "
                "that user, or choose a NEARSIM_HOME of root (/var/lib/nearsim is the default)."
            )

    def can_enter(self, folder: Path) -> bool:
        """Whether this user may enter a folder and all of its parents."""
        return self.run(["/bin/sh", "-c", 'test -x "$1"', "sh", str(folder)]).returncode == 0

    def require_name(self) -> None:
        """Raise ServerError unless this user has a name, because initdb looks it up."""
        if self.run(["/usr/bin/env", "id", "-un"]).returncode != 0:
            raise ServerError(
                f"PostgreSQL cannot create the embedded server for user ID {self.user_id}, which has no entry in "
                "/etc/passwd. Add one (in a container: run as a user of the image), or set NEARSIM_DATABASE_URL to a "
                "server of yours."
            )

    def require_entry(self, folder: Path) -> None:
        """Raise ServerError unless this user may enter `folder`; the message names the outermost closed folder."""
        if self.is_current or self.can_enter(folder):
            return
        closed = next(path for path in (*reversed(folder.parents), folder) if not self.can_enter(path))
        raise ServerError(
            f"The server runs as user {self.name}, who may not enter {closed}. Choose a NEARSIM_HOME that "
            "every user may enter (for root, /var/lib/nearsim is the default), or run nearsim as an ordinary user."
        )

    def require_private(self, folder: Path) -> None:
        """Raise ServerError unless `folder` is a folder that only this user may enter."""
        state = folder.lstat()
        if not stat.S_ISDIR(state.st_mode) or state.st_uid != self.user_id or state.st_mode & 0o077:
            raise ServerError(f"{folder} is not a private folder of user {self.name}. Remove it.")


def server_account() -> Account:
    """Return the user that runs the server: the current user or, for root, `postgres` or else `nearsim`.

    PostgreSQL refuses to run as root. If neither user exists, `nearsim` is created. Raises ServerError if this fails.
    """
    if os.geteuid() != 0:
        return Account(str(os.geteuid()), os.geteuid(), os.getegid())
    return _existing_account() or _created_account()


def _existing_account() -> Account | None:
    for name in _ACCOUNTS_FOR_ROOT:
        try:
            entry = pwd.getpwnam(name)
        except KeyError:
            continue
        return Account(name, entry.pw_uid, entry.pw_gid)
    return None


def _created_account() -> Account:
    command = [
        "useradd",
        "--system",
        "--user-group",
        "--no-create-home",
        "--shell",
        "/usr/sbin/nologin",
        "nearsim",
    ]
    try:
        completed = subprocess.run(command, capture_output=True, text=True, check=False)
        reason = completed.stderr.strip()
    except OSError as error:
        reason = str(error)

    # Another process may have created the user at the same time, so only the result counts.
    account = _existing_account()
    if account is None:
        raise ServerError(
            f"PostgreSQL does not run as root, and user nearsim could not be created for it ({reason}). "
            "Create a system user named nearsim, run as an ordinary user, or set NEARSIM_DATABASE_URL."
        )
    return account
