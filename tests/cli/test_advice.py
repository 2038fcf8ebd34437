"""Commands suggested in messages."""

import pytest

from nearsim_db.errors import suggested_command


@pytest.mark.parametrize(
    ("command", "named", "more", "reported"),
    [
        ("reindex diff", ("default", "default"), (), "nearsim reindex diff"),
        ("reindex diff", ("news", "body"), (), "nearsim reindex diff -p body -c news"),
        (
            "reindex promote",
            ("two words", "default"),
            ("-g", "3"),
            "nearsim reindex promote -c 'two words' -g 3",
        ),
        (
            "verify-index",
            ("default", "it's"),
            ("--repair",),
            """nearsim verify-index -p 'it'"'"'s' --repair""",
        ),
        ("profile delete", ("news", "default"), (), "nearsim profile delete default -c news"),
    ],
)
def test_suggested_command_can_be_pasted_into_a_shell(
    command: str, named: tuple[str, str], more: tuple[str, ...], reported: str
) -> None:
    assert suggested_command(command, *named, *more) == reported
