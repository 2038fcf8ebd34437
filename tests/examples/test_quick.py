"""The tests that `make quick` chooses, and what pytest says where it chooses none."""

import os
import subprocess
import sys

import pytest

from tests.quick import ROOT, affected


def test_a_change_runs_the_tests_of_the_rooms_that_may_import_it() -> None:
    assert affected(["nearsim_db/cli/app.py"]) == [
        "tests/cli", "tests/contract", "tests/examples",
    ]  # fmt: skip
    assert affected(["nearsim_db/admin/doctor/checks.py", "tests/readers/test_rows.py"]) == [
        "tests/admin", "tests/analysis", "tests/cli", "tests/contract", "tests/deduplication", "tests/examples",
        "tests/readers",
    ]  # fmt: skip
    below = affected(["nearsim_db/similarity/profile.py"])
    assert {"tests/similarity", "tests/store", "tests/sql", "tests/worker", "tests/cli"} <= set(below)
    assert affected(["migrations/schema/views/pairs.sql"]) == [
        one for one in below if one != "tests/similarity"
    ]
    assert affected(["docs/reference/files.md"]) == ["tests/examples"]
    assert affected(["Makefile"]) == []


@pytest.mark.slow("starts pytest")
def test_a_run_without_tests_says_what_left_them_out() -> None:
    command = [sys.executable, "-m", "pytest", "-q", "-n0", "-p", "no:cacheprovider", "tests/scale_out"]
    without = {name: value for name, value in os.environ.items() if name != "NEARSIM_CITUS_PG"}
    ended = subprocess.run(command, cwd=ROOT, env=without, capture_output=True, text=True, check=False)
    assert ended.returncode == pytest.ExitCode.NO_TESTS_COLLECTED
    assert "--all runs them" in ended.stdout and "NEARSIM_CITUS_PG does not name" in ended.stdout
