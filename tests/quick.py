"""Print the folders of tests that uncommitted changes, and commits that main does not have, can affect.

A change in a package of nearsim_db can affect it and the packages that may import it, by the layers of import-linter.
"""

import subprocess
import tomllib
from collections.abc import Iterable
from pathlib import Path

ROOT = Path(__file__).parents[1]
# Folders of tests that are not named after a package, and the package whose tests they complete.
PACKAGE_OF = {"schema": "store", "sql": "store", "examples": "cli", "contract": "cli"}


def layers() -> list[set[str]]:
    """Return the packages in layers, the highest first."""
    settings = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))
    return [
        {package.strip().removeprefix("nearsim_db.") for package in layer.split("|")}
        for layer in settings["tool"]["importlinter"]["contracts"][0]["layers"]
    ]


def affected(changed: Iterable[str]) -> list[str]:
    """Return the folders of tests for changed files, whose paths are relative to the root."""
    order, lowest, folders = layers(), -1, set[str]()
    for path in map(Path, changed):
        top, part = path.parts[0], path.parts[1] if len(path.parts) > 1 else ""
        if top == "tests" and path.suffix == ".py":
            folders |= {part} if (ROOT / "tests" / part).is_dir() else set()
        elif top == "examples" or path.suffix == ".md":
            folders.add("examples")
        elif top in ("nearsim_db", "migrations"):
            package = "store" if top == "migrations" else part.removesuffix(".py")
            lowest = max([lowest, *(at for at, layer in enumerate(order) if package in layer)])
    packages = set[str]().union(*order[: lowest + 1])
    folders |= {one for one in (*packages, *PACKAGE_OF) if PACKAGE_OF.get(one, one) in packages}
    return sorted(
        f"tests/{one}" for one in folders - {"builders", "servers"} if (ROOT / "tests" / one).is_dir()
    )


def main() -> None:
    """Print the folders for the changes of this checkout; tests/similarity if nothing has changed."""
    listed = [["diff", "--name-only", "main"], ["ls-files", "--others", "--exclude-standard"]]
    found = (
        subprocess.run(["git", *one], cwd=ROOT, check=True, capture_output=True, text=True) for one in listed
    )
    changed = [line for one in found for line in one.stdout.splitlines()]
    print(*(affected(changed) or ["tests/similarity"]))


if __name__ == "__main__":
    main()
