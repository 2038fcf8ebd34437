"""Commands suggested in messages."""

from nearsim_db.errors import suggested_command


def test_suggested_command_can_be_pasted_into_a_shell() -> None:
    assert suggested_command("reindex diff", "default", "default") == "nearsim reindex diff"
    assert suggested_command("reindex diff", "news", "body") == "nearsim reindex diff -p body -c news"
    assert suggested_command("profile delete", "news", "default") == "nearsim profile delete default -c news"
    promote = suggested_command("reindex promote", "two words", "default", "-g", "3")
    assert promote == "nearsim reindex promote -c 'two words' -g 3"
    verify = suggested_command("verify-index", "default", "it's", "--repair")
    assert verify == """nearsim verify-index -p 'it'"'"'s' --repair"""
