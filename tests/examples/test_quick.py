"""The tests that `make quick` chooses."""

from tests.quick import affected


def test_a_change_runs_the_tests_of_the_rooms_that_may_import_it() -> None:
    assert affected(["nearsim_db/cli/app.py"]) == [
        "tests/cli", "tests/contract", "tests/examples",
    ]  # fmt: skip
    assert affected(["nearsim_db/admin/doctor/checks.py", "tests/readers/test_rows.py"]) == [
        "tests/admin", "tests/analysis", "tests/cli", "tests/contract", "tests/examples", "tests/readers",
    ]  # fmt: skip
    below = affected(["nearsim_db/similarity/profile.py"])
    assert {"tests/similarity", "tests/store", "tests/sql", "tests/worker", "tests/cli"} <= set(below)
    assert affected(["migrations/schema/views/pairs.sql"]) == [
        one for one in below if one != "tests/similarity"
    ]
    assert affected(["docs/files.md"]) == ["tests/examples"]
    assert affected(["Makefile"]) == []
