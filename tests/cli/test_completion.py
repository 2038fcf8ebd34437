"""Tab completion, as a shell asks for it."""

import pytest
from typer.testing import CliRunner

from nearsim_db.cli.app import app
from nearsim_db.similarity import presets
from tests.builders.command_line import CommandLine


def completed(environment: dict[str, str], line: str) -> tuple[int, list[str], str]:
    """The exit code, the completions of the last word of a line, and what is on standard error."""
    asked = {"_NEARSIM_COMPLETE": "complete_bash", "COMP_WORDS": line, "COMP_CWORD": str(line.count(" "))}
    ended = CliRunner().invoke(app, [], prog_name="nearsim", env={**environment, **asked})
    return ended.exit_code, ended.stdout.split(), ended.stderr


def test_collections_and_profiles_are_completed(filled: CommandLine) -> None:
    filled.succeed("profile", "create", "strict", "--threshold", 0.9, "-q")
    filled.succeed("collection", "create", "news", "-q")
    for line, expected in {
        "nearsim pairs --collection ": ["default", "news"],
        "nearsim collection rename n": ["news"],
        "nearsim pairs -p s": ["strict"],
        "nearsim pairs -c news -p ": [],
        "nearsim reindex start ": ["default", "strict"],
        "nearsim profile show d": ["default"],
    }.items():
        assert completed(filled.environment, line) == (0, expected, ""), line
    elsewhere = {**filled.environment, "NEARSIM_COLLECTION": "news"}
    assert completed(elsewhere, "nearsim pairs -p ") == (0, [], "")


def test_presets_and_recipe_keys_are_completed() -> None:
    assert completed({}, "nearsim ingest --preset ")[1] == presets.names()
    assert completed({}, "nearsim tune --set match.t")[1] == ["match.threshold="]
    assert {"sketch.k=", "shingle.k="} <= set(completed({}, "nearsim ingest --set ")[1])


@pytest.mark.parametrize("url", ["postgresql://nobody@127.0.0.1:1/nothing", "mysql://x", "", "::"])
def test_completion_without_a_database_says_nothing(
    url: str, tmp_path_factory: pytest.TempPathFactory
) -> None:
    """No server is started for it."""
    home = tmp_path_factory.mktemp("home") / "none"
    environment = {"NEARSIM_DATABASE_URL": url, "NEARSIM_HOME": str(home)}
    assert completed(environment, "nearsim pairs -c ") == (0, [], "")
    assert not home.exists()
