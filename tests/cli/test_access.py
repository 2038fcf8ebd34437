"""nearsim db grant, revoke and isolation, and commands run by readers and writers."""

from collections.abc import Iterator
from pathlib import Path

import psycopg
import pytest

from tests.builders.command_line import STORM, CommandLine, write_jsonl
from tests.builders.logins import login, user_of


def as_user(nearsim: CommandLine, url: str) -> CommandLine:
    """The same command line as another user."""
    return CommandLine({**nearsim.environment, "NEARSIM_DATABASE_URL": url})


@pytest.fixture
def url(filled: CommandLine) -> str:
    """The address of a database with the stories in it."""
    return filled.environment["NEARSIM_DATABASE_URL"]


@pytest.fixture
def user(url: str) -> Iterator[str]:
    """The same address as a user who was granted nothing."""
    with login(url) as given:
        yield given


READING = [
    ["pairs", "--format", "jsonl"],
    ["clusters", "--format", "jsonl"],
    ["similar", "storm", "--format", "jsonl"],
    ["similar", "--text", STORM, "--format", "jsonl"],
    ["check", "--text", STORM, "--format", "jsonl"],
    ["get", "storm"],
    ["stats", "--json"],
    ["profile", "list", "--json"],
    ["profile", "show", "default", "--json"],
    ["collection", "list", "--json"],
    ["work", "list", "--json"],
    ["events", "--format", "jsonl"],
    ["verdict", "list", "--format", "jsonl"],
    ["db", "isolation", "status", "--json"],
    ["db", "status", "--json"],
]
WRITING = [
    ["delete", "storm", "--yes"],
    ["build"],
    ["worker", "--once"],
    ["collection", "create", "mine"],
    ["collection", "delete", "default", "--yes"],
    ["profile", "create", "mine"],
    ["work", "discard", "--all", "--yes"],
    ["verdict", "pin", "storm", "bridge", "--why", "x"],
    ["verdict", "veto", "storm", "bridge", "--why", "x"],
    ["db", "grant", "somebody", "reader"],
    ["db", "isolation", "off"],
]


def test_readers_see_what_the_owner_sees_and_cannot_write(filled: CommandLine, user: str, url: str) -> None:
    reader = as_user(filled, user)
    refused = reader.fail("pairs")
    assert "permission denied for schema nearsim" in refused and "nearsim db grant USER reader" in refused
    filled.succeed("db", "grant", user_of(user), "reader")
    for command in READING:
        reported = reader.succeed(*command).out
        assert reported == as_user(filled, user).succeed(*command).out
        if command[0] != "stats":
            assert reported == filled.succeed(*command).out, command
    for command in WRITING:
        refused = reader.fail(*command)
        assert "permission denied" in refused or "must be owner" in refused, command
        needed = "nearsim_writer" if command[0] == "verdict" else "nearsim_admin"
        assert f"{needed}; an administrator grants it: nearsim db grant USER" in refused, command
    assert len(filled.succeed("pairs", "--format", "jsonl").rows()) == 3


def test_grant_and_revoke(filled: CommandLine, user: str) -> None:
    name = user_of(user)
    granted = filled.succeed("db", "grant", name, "nearsim_writer", "--json").document()
    assert granted == {"user": name, "role": "nearsim_writer", "new": True, "collections": []}
    assert filled.succeed("db", "grant", name, "writer").err == f"{name} is already a nearsim_writer\n"
    with psycopg.connect(user) as connection:
        assert connection.execute("UPDATE nearsim.document SET title = 'x'").rowcount == 5
    assert filled.succeed("db", "revoke", name, "writer").err == f"revoked nearsim_writer from {name}\n"
    again = filled.succeed("db", "revoke", name, "writer", "--json").document()
    assert again == {"user": name, "role": "nearsim_writer", "revoked": False, "collections": []}
    with psycopg.connect(user) as connection, pytest.raises(psycopg.errors.InsufficientPrivilege):
        connection.execute("SELECT FROM nearsim.document")


def test_reader_of_a_collection_no_longer_writes_it(filled: CommandLine, user: str, url: str) -> None:
    def may_write(collection: str) -> bool:
        with psycopg.connect(user) as connection, psycopg.connect(url) as admin:
            numbers = admin.execute(
                "SELECT collection_id FROM nearsim.collection WHERE name = %s", [collection]
            )
            try:
                connection.execute(
                    "INSERT INTO nearsim.document (collection_id, external_id, body) VALUES (%s, %s, '')",
                    [*(numbers.fetchone() or ()), f"new in {collection}"],
                )
            except psycopg.errors.InsufficientPrivilege:
                return False
            connection.rollback()
            return True

    name = user_of(user)
    filled.succeed("collection", "create", "other")
    filled.succeed("db", "isolation", "on", "--quiet")
    filled.succeed("db", "grant", name, "writer", "-c", "default", "-c", "other", "--quiet")
    assert may_write("default") and may_write("other")
    reported = filled.succeed("db", "grant", name, "reader", "-c", "default").err
    assert f"{name} is now a nearsim_reader, of default" in reported
    assert f"{name} is a nearsim_writer, and so may do more than a nearsim_reader" in reported
    assert not may_write("default") and may_write("other")
    for answer in ("now", "already"):
        reported = filled.succeed("db", "grant", name, "writer", "-c", "default").err
        assert reported == f"{name} is {answer} a nearsim_writer, of default\n"
    assert may_write("default")
    with login(url, "nearsim_writer") as group:
        with psycopg.connect(url) as admin:
            admin.execute(f'GRANT "{user_of(group)}" TO "{name}"'.encode())
        filled.succeed("db", "grant", user_of(group), "writer", "-c", "default", "--quiet")
        reported = filled.succeed("db", "grant", name, "reader", "-c", "default").err
        assert f"may write 'default' as a member of {user_of(group)}" in reported
        assert may_write("default")
        reported = filled.succeed("db", "revoke", name, "writer").err
        assert f"{name} is a nearsim_writer" in reported
        assert may_write("default") and not may_write("other")
    assert not may_write("default")
    with login(url, "nearsim_admin") as admin_url:
        warned = filled.succeed("db", "grant", user_of(admin_url), "reader", "--quiet").err
        assert f"{user_of(admin_url)} is a nearsim_admin" in warned
        assert (
            "nearsim_admin" not in filled.succeed("db", "revoke", user_of(admin_url), "admin", "--quiet").err
        )


def test_documents_of_a_writer_are_indexed_by_a_worker(
    filled: CommandLine, user: str, stories: Path, tmp_path: Path
) -> None:
    filled.succeed("db", "grant", user_of(user), "writer")
    writer = as_user(filled, user)
    more = write_jsonl(tmp_path / "more.jsonl", [{"id": "again", "text": STORM}])
    for command in (
        ["ingest", more],
        ["verdict", "pin", "storm", "bridge", "--why", "one event"],
        ["delete", "storm-twin", "--yes"],
    ):
        assert "waits for a worker: this user may not index it" in writer.succeed(*command).err, command
    assert "permission denied" in writer.fail("build")
    filled.succeed("worker", "--once", "--quiet")
    found = {
        frozenset((row["left"], row["right"])) for row in writer.succeed("pairs", "--format", "jsonl").rows()
    }
    assert found == {
        frozenset(one) for one in (("storm", "storm-again"), ("storm", "again"), ("storm-again", "again"))
    }
    (cluster,) = writer.succeed("clusters", "--format", "jsonl").rows()
    assert set(cluster["members"]) == {"storm", "storm-again", "again", "bridge"}


def test_administrators_let_users_in_but_make_no_administrators(
    filled: CommandLine, user: str, url: str
) -> None:
    name = user_of(user)
    with login(url, "nearsim_admin") as admin:
        second = as_user(filled, admin)
        second.succeed("db", "grant", name, "writer", "--collection", "default")
        assert "WITH ADMIN OPTION" in second.fail("db", "grant", name, "admin")
        filled.succeed("db", "grant", name, "reader")
    # Whoever granted what, it can be taken back.
    for role in ("reader", "writer"):
        filled.succeed("db", "revoke", name, role)
    assert filled.succeed("db", "isolation", "status", "--json").document()["access"] == []


def test_isolation_is_enabled_and_shown(filled: CommandLine, user: str, url: str, tmp_path: Path) -> None:
    name = user_of(user)
    other = write_jsonl(tmp_path / "other.jsonl", [{"id": "a", "text": STORM}, {"id": "b", "text": STORM}])
    filled.succeed("ingest", other, "--collection", "other", "--quiet")
    filled.succeed("db", "grant", name, "reader", "--collection", "other", "--quiet")
    assert "not isolated" in filled.succeed("db", "isolation", "status").out
    shown = filled.succeed("db", "isolation", "on").out
    assert "collections are isolated" in shown and f"other        {name}" in shown
    status = filled.succeed("db", "isolation", "status", "--json").document()
    # The roles are those of the server, so that other tests may have some there.
    assert name not in status.pop("ungranted")
    assert status == {
        "isolated": True,
        "access": [{"collection": "other", "role": name, "may_write": False}],
    }
    reader = as_user(filled, user)
    collections = reader.succeed("collection", "list", "--json").document()
    assert [one["collection"] for one in collections] == ["other"]
    assert "collection 'default' does not exist; existing collections: other" in reader.fail("pairs")
    assert reader.succeed("get", "a", "--collection", "other").document()["id"] == "a"
    assert len(reader.succeed("profile", "list", "--collection", "other", "--json").document()) == 1
    for asked in (["events", "--format", "jsonl"], ["verdict", "list"], ["profile", "show", "default"]):
        reader.succeed(*asked, "--collection", "other")
    (pair,) = reader.succeed("pairs", "--collection", "other", "--format", "jsonl").rows()
    assert {pair["left"], pair["right"]} == {"a", "b"}
    (cluster,) = reader.succeed("clusters", "--collection", "other", "--format", "jsonl").rows()
    assert sorted(cluster["members"]) == ["a", "b"]
    checked = reader.succeed("check", other, "--collection", "other", "--format", "jsonl").rows()
    assert [(one["id"], one["duplicate_of"]) for one in checked] == [("a", "b"), ("b", "a")]
    for command in (["similar", "a"], ["stats"], ["work", "list"]):
        refused = reader.fail(*command, "--collection", "other")
        assert "permission denied" in refused
        assert "use the views and functions of SQL instead (docs/access.md)" in refused
    assert "every reader sees all" in filled.succeed("db", "isolation", "off").out
    assert len(reader.succeed("pairs", "--format", "jsonl").rows()) == 3


def test_users_without_any_access_are_listed(filled: CommandLine, user: str, url: str) -> None:
    def listed() -> set[str]:
        return set(filled.succeed("db", "isolation", "status", "--json").document()["ungranted"])

    with (
        login(url, "nearsim_reader") as group,
        login(url, user_of(group)) as member,
        login(url, "nearsim_admin") as admin,
        login(url, "nearsim_writer", attributes="BYPASSRLS") as above,
    ):
        filled.succeed("db", "grant", user_of(user), "writer", "--quiet")
        names = {user_of(one) for one in (user, group, member)}
        assert listed() == set()
        warned = filled.succeed("db", "isolation", "on").err
        assert "without a granted collection" in warned and all(name in warned for name in names)
        assert names <= listed() and not {user_of(admin), user_of(above)} & listed()
        own = as_user(filled, member).succeed("db", "isolation", "status", "--json").document()
        assert own["ungranted"] == [user_of(member)]
        filled.succeed("db", "grant", user_of(group), "reader", "--collection", "default", "--quiet")
        assert listed() & names == {user_of(user)}
        own = as_user(filled, member).succeed("db", "isolation", "status", "--json").document()
        assert own["ungranted"] == []


def findings(outcome: object) -> dict[str, tuple[str, str, str]]:
    """The findings of doctor by name of the check."""
    assert isinstance(outcome, dict)
    return {one["check"]: (one["verdict"], one["finding"], one["advice"]) for one in outcome["checks"]}


def test_doctor_checks_roles(filled: CommandLine, user: str, url: str) -> None:
    verdict, finding, _ = findings(filled.succeed("doctor", "--json").document())["roles"]
    assert verdict == "ok" and "readers see all collections" in finding
    filled.succeed("db", "grant", user_of(user), "reader")
    reader = as_user(filled, user)
    found = findings(reader.succeed("doctor", "--json").document())
    assert found["rights"][:2] == ("ok", "member of nearsim_reader; building indexes requires nearsim_admin")
    assert found["workers"][0] == "ok"
    with psycopg.connect(url) as connection:
        connection.execute("REVOKE SELECT ON nearsim.document FROM nearsim_reader")
        connection.execute("CREATE TABLE nearsim.foreign_table (a int)")
    verdict, _, advice = findings(filled.succeed("doctor", "--json").document())["roles"]
    assert verdict == "warning" and "nearsim.grant_rights()" in advice


def test_doctor_of_an_isolated_reader(filled: CommandLine, user: str) -> None:
    filled.succeed("db", "grant", user_of(user), "reader")
    filled.succeed("db", "isolation", "on", "--quiet")
    found = findings(as_user(filled, user).succeed("doctor", "--json").document())
    assert "readers see their collections only" in found["roles"][1] and "workers" not in found
