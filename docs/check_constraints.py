"""Check that constraints.txt, with which the container image is built, fits pyproject.toml. `make lint` runs this."""

import re
import sys
import tomllib
from collections.abc import Iterator
from importlib import metadata
from pathlib import Path

from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

ROOT = Path(__file__).parents[1]
EXTRAS = ("fast",)

_PIN = re.compile(
    r"(?P<name>[a-z0-9-]+)==(?P<version>[^ ]+)(?P<marker> ; .+)?(?: --hash=sha256:[0-9a-f]{64})+"
)


def problems(project: str, constraints: str) -> Iterator[str]:
    """Yield what is wrong in constraints.txt. The arguments are the texts of pyproject.toml and constraints.txt."""
    pins: dict[str, str] = {}
    for line in re.sub(r" \\\n +", " ", constraints).splitlines():
        if pin := _PIN.fullmatch(line):
            pins[pin["name"]] = pin["version"]
        else:
            yield f"not a version with hashes: {line[:60]!r}"
    wanted = list(_direct(tomllib.loads(project)))
    seen = set()
    while wanted:
        requirement = wanted.pop()
        name = canonicalize_name(requirement.name)
        if str(requirement) in seen:
            continue
        seen.add(str(requirement))
        if name not in pins:
            yield f"{requirement} is missing"
        elif not requirement.specifier.contains(pins[name], prereleases=True):
            yield f"{name}=={pins[name]} is not {requirement}"
        else:
            wanted += _needed_by(name, pins[name], requirement.extras)


def _direct(project: dict[str, dict[str, object]]) -> Iterator[Requirement]:
    """Return the requirements that the image names itself, without their dependencies."""
    table: dict[str, list[str]] = project["project"]["optional-dependencies"]  # type: ignore[assignment]
    lines: list[str] = [*project["project"]["dependencies"]]  # type: ignore[misc]
    lines += [line for extra in EXTRAS for line in table[extra]]
    lines += project["dependency-groups"]["image"]  # type: ignore[arg-type]
    return map(Requirement, lines)


def _needed_by(name: str, version: str, extras: set[str]) -> Iterator[Requirement]:
    """Yield the requirements of a package, if this version of the package is installed here."""
    try:
        installed = metadata.distribution(name)
    except metadata.PackageNotFoundError:
        return
    if installed.version != version:
        return
    for requirement in map(Requirement, installed.requires or ()):
        marker = requirement.marker
        if marker is None or any(marker.evaluate({"extra": extra}) for extra in ("", *extras)):
            yield requirement


if __name__ == "__main__":
    listed = list(problems((ROOT / "pyproject.toml").read_text(), (ROOT / "constraints.txt").read_text()))
    sys.exit("\n".join(["constraints.txt is out of date; run: make constraints", *listed]) if listed else 0)
