"""Print the folders of tests that can be affected by uncommitted changes, or by commits that main does not have.

A change in a package of nearsim_db can affect that package and all packages that the layers of import-linter allow to
import it.
"""

import subprocess
import tomllib
from collections.abc import Iterable
from pathlib import Path

ROOT = Path(__file__).parents[1]
# For each folder of tests that is not named after a package, the package whose tests it completes.
PACKAGE_OF = {"schema": "store", "sql": "store", "examples": "cli", "contract": "cli"}


def layers() -> list[set[str]]:
    """Return the packages of each layer, the highest layer first."""
    settings = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))
    return [
        {package.strip().removeprefix("nearsim_db.") for package in layer.split("|")}
        for layer in settings["tool"]["importlinter"]["contracts"][0]["layers"]
    ]


def affected(changed: Iterable[str]) -> list[str]:
    """Return the folders of tests for changed files. Paths are relative to the root of the repository."""
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
    folders |= {folder for folder in (*packages, *PACKAGE_OF) if PACKAGE_OF.get(folder, folder) in packages}
    return sorted(
        f"tests/{folder}"
        for folder in folders - {"builders", "servers"}
        if (ROOT / "tests" / folder).is_dir()
    )


def main() -> None:
    """Print the folders for the changes of this checkout, or tests/similarity if nothing has changed."""
    commands = [["diff", "--name-only", "main"], ["ls-files", "--others", "--exclude-standard"]]
    runs = (
        subprocess.run(["git", *command], cwd=ROOT, check=True, capture_output=True, text=True)
        for command in commands
    )
    changed = [line for run in runs for line in run.stdout.splitlines()]
    print(*(affected(changed) or ["tests/similarity"]))


if __name__ == "__main__":
    main()
