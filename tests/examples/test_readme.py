"""The README, run from top to bottom as it is written, shows what it says."""

from pathlib import Path

import pytest

from tests.builders.console_pages import Reader, differences, steps
from tests.examples.conftest import EXAMPLES

README = EXAMPLES.parent / "README.md"

pytestmark = pytest.mark.slow("runs all commands of the README in processes of their own")


def test_readme_has_commands_of_every_kind() -> None:
    assert {step.language for step in steps(README)} == {"shell", "sql", "python"}


def test_readme_from_top_to_bottom(own_environment: dict[str, str], clone: Path) -> None:
    with Reader(clone, own_environment) as reader:
        assert not differences(README, reader)
