"""nearsim access grant, revoke and isolation, and commands run by readers and writers."""

from collections.abc import Iterator
from pathlib import Path

import psycopg
import pytest

from tests.builders.command_line import STORM, CommandLine, write_jsonl
from tests.builders.logins import login, user_of


def as_user(nearsim: CommandLine, url: str) -> CommandLine:
    """The same command line as another user."""
    return CommandLine({**nearsim.environment, "NEARSIM_DATABASE_URL": url})


def findings(outcome: object) -> dict[str, tuple[str, str, str]]:
    """The findings of doctor by name of the check."""
    assert isinstance(outcome, dict)
    return {one["check"]: (one["verdict"], one["finding"], one["advice"]) for one in outcome["checks"]}


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
    *(
        "pairs --format jsonl",
        "clusters --format jsonl",
        "similar storm --format jsonl",
        "document get storm",
    ),
    *("check --text words --format jsonl", "similar --text words --format jsonl", "events --format jsonl"),
    *("stats --json", "profile list --json", "profile show default --json", "collection list --json"),
    *(
        "work list --json",
        "verdict list --format jsonl",
        "access isolation status --json",
        "server status --json",
    ),
]
WRITING = [
    *(
        "document delete storm --yes",
        "build",
        "worker --once",
        "collection create mine",
        "profile create mine",
    ),
    *("collection delete default --yes", "work discard --all --yes", "access isolation off"),
    *(
        "verdict pin storm bridge --why x",
        "verdict veto storm bridge --why x",
        "access grant somebody reader",
    ),
]


@pytest.mark.slow("every query")
def test_readers_see_what_the_owner_sees_and_cannot_write(filled: CommandLine, user: str) -> None:
    reader = as_user(filled, user)
    assert "nearsim access grant USER reader" in reader.fail("pairs")
    filled.succeed("access", "grant", user_of(user), "reader")
    for command in READING:
        reported = reader.succeed(*command.split()).out
        assert command.startswith("stats") or reported == filled.succeed(*command.split()).out, command
    for command in WRITING:
        needed = "nearsim_writer" if command.startswith("verdict") else "nearsim_admin"
        assert f"{needed}; an administrator grants it" in reader.fail(*command.split()), command
    assert len(filled.succeed("pairs", "--format", "jsonl").rows()) == 3


def test_the_list_has_who_has_which_role(filled: CommandLine, user: str) -> None:
    name = user_of(user)
    filled.succeed("access", "grant", name, "writer", "--quiet")
    listed = filled.succeed("access", "list", "--json").document()
    # The roles are those of the server, so that other tests may have some there.
    assert {"user": name, "role": "nearsim_writer"} in listed["members"]
    assert (listed["isolated"], listed["access"]) == (False, [])
    filled.succeed("access", "revoke", name, "writer", "--quiet")
    members = filled.succeed("access", "list", "--json").document()["members"]
    assert name not in {member["user"] for member in members}


def test_grant_and_revoke(filled: CommandLine, user: str) -> None:
    name = user_of(user)
    granted = filled.succeed("access", "grant", name, "nearsim_writer", "--json").document()
    assert granted == {"user": name, "role": "nearsim_writer", "new": True, "collections": []}
    with psycopg.connect(user) as connection:
        assert connection.execute("UPDATE nearsim.document SET title = 'x'").rowcount == 5
    for revoked in (True, False):
        again = filled.succeed("access", "revoke", name, "writer", "--json").document()
        assert again == {"user": name, "role": "nearsim_writer", "revoked": revoked, "collections": []}
    with psycopg.connect(user) as connection, pytest.raises(psycopg.errors.InsufficientPrivilege):
        connection.execute("SELECT FROM nearsim.document")


INSERT = """
INSERT INTO nearsim.document (collection_id, external_id, body)
SELECT collection_id, 'new', '' FROM nearsim.collection WHERE name = %s
"""


@pytest.mark.slow("several builds")
def test_reader_of_a_collection_no_longer_writes_it(filled: CommandLine, user: str, url: str) -> None:
    def may_write(collection: str) -> bool:
        with psycopg.connect(user) as connection:
            try:
                connection.execute(INSERT, [collection])
            except psycopg.errors.InsufficientPrivilege:
                return False
            connection.rollback()
            return True

    name = user_of(user)
    filled.succeed("collection", "create", "other")
    filled.succeed("access", "isolation", "on", "--quiet")
    filled.succeed("access", "grant", name, "writer", "-c", "default", "-c", "other", "--quiet")
    assert may_write("default") and may_write("other")
    assert (
        f"{name} is a nearsim_writer"
        in filled.succeed("access", "grant", name, "reader", "-c", "default").err
    )
    assert not may_write("default") and may_write("other")
    for answer in ("now", "already"):
        assert f"is {answer} a" in filled.succeed("access", "grant", name, "writer", "-c", "default").err
    assert may_write("default")
    with login(url, "nearsim_writer") as group:
        with psycopg.connect(url) as admin:
            admin.execute(f'GRANT "{user_of(group)}" TO "{name}"'.encode())
        filled.succeed("access", "grant", user_of(group), "writer", "-c", "default", "--quiet")
        reported = filled.succeed("access", "grant", name, "reader", "-c", "default").err
        assert f"as a member of {user_of(group)}" in reported and may_write("default")
        assert f"{name} is a nearsim_writer" in filled.succeed("access", "revoke", name, "writer").err
        assert may_write("default") and not may_write("other")
    assert not may_write("default")


def test_documents_of_a_writer_are_indexed_by_a_worker(
    filled: CommandLine, user: str, tmp_path: Path
) -> None:
    filled.succeed("access", "grant", user_of(user), "writer")
    writer = as_user(filled, user)
    more = write_jsonl(tmp_path / "more.jsonl", [{"id": "again", "text": STORM}])
    for command in (
        ["ingest", more],
        ["verdict", "pin", "storm", "bridge", "--why", "one event"],
        ["document", "delete", "storm-twin", "--yes"],
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
        second.succeed("access", "grant", name, "writer", "--collection", "default")
        assert "WITH ADMIN OPTION" in second.fail("access", "grant", name, "admin")
        filled.succeed("access", "grant", name, "reader")
    # Whoever granted what, it can be taken back.
    for role in ("reader", "writer"):
        filled.succeed("access", "revoke", name, role)
    assert filled.succeed("access", "isolation", "status", "--json").document()["access"] == []


def test_isolation_is_enabled_and_shown(filled: CommandLine, user: str, tmp_path: Path) -> None:
    name = user_of(user)
    other = write_jsonl(tmp_path / "other.jsonl", [{"id": "a", "text": STORM}, {"id": "b", "text": STORM}])
    filled.succeed("ingest", other, "--collection", "other", "--quiet")
    filled.succeed("access", "grant", name, "reader", "--collection", "other", "--quiet")
    filled.succeed("access", "isolation", "on", "--quiet")
    status = filled.succeed("access", "isolation", "status", "--json").document()
    # The roles are those of the server, so that other tests may have some there.
    assert name not in status.pop("ungranted")
    assert status == {"isolated": True, "access": [{"collection": "other", "role": name, "may_write": False}]}
    reader = as_user(filled, user)
    (collection,) = reader.succeed("collection", "list", "--json").document()
    assert collection["collection"] == "other"
    assert "existing collections: other" in reader.fail("pairs", "-c", "default")
    assert reader.succeed("pairs", "--json").out == reader.succeed("pairs", "-c", "other", "--json").out
    at = CommandLine({**reader.environment, "NEARSIM_COLLECTION": "other"})
    assert at.succeed("document", "get", "a").document()["id"] == "a"
    assert len(at.succeed("profile", "list", "--json").document()) == 1
    for asked in (["events", "--format", "jsonl"], ["verdict", "list"], ["profile", "show", "default"]):
        at.succeed(*asked)
    (pair,) = at.succeed("pairs", "--format", "jsonl").rows()
    assert {pair["left"], pair["right"]} == {"a", "b"}
    assert len(at.succeed("clusters", "--format", "jsonl").rows()) == 1
    checked = at.succeed("check", other, "--format", "jsonl").rows()
    assert [(one["id"], one["duplicate_of"]) for one in checked] == [("a", "b"), ("b", "a")]
    (similar,) = at.succeed("similar", "a", "--format", "jsonl").rows()
    assert similar["id"] == "b"
    assert at.succeed("stats", "--json").document()["documents"] == 2
    assert at.succeed("work", "list", "--format", "jsonl").rows() == []
    found = findings(at.succeed("doctor", "--json").document())
    assert "readers see their collections only" in found["roles"][1] and "workers" not in found
    filled.succeed("access", "isolation", "off")
    assert len(reader.succeed("pairs", "--format", "jsonl").rows()) == 3


def test_users_without_any_access_are_listed(filled: CommandLine, user: str, url: str) -> None:
    def listed() -> set[str]:
        return set(filled.succeed("access", "isolation", "status", "--json").document()["ungranted"])

    with (
        login(url, "nearsim_reader") as group,
        login(url, user_of(group)) as member,
        login(url, "nearsim_admin") as admin,
        login(url, "nearsim_writer", attributes="BYPASSRLS") as above,
    ):
        filled.succeed("access", "grant", user_of(user), "writer", "--quiet")
        names = {user_of(one) for one in (user, group, member)}
        assert listed() == set()
        warned = filled.succeed("access", "isolation", "on").err
        assert "without a granted collection" in warned and all(name in warned for name in names)
        assert names <= listed() and not {user_of(admin), user_of(above)} & listed()
        own = as_user(filled, member).succeed("access", "isolation", "status", "--json").document()
        assert own["ungranted"] == [user_of(member)]
        filled.succeed("access", "grant", user_of(group), "reader", "--collection", "default", "--quiet")
        assert listed() & names == {user_of(user)}
        own = as_user(filled, member).succeed("access", "isolation", "status", "--json").document()
        assert own["ungranted"] == []


def test_doctor_checks_roles(filled: CommandLine, user: str, url: str) -> None:
    verdict, finding, _ = findings(filled.succeed("doctor", "--json").document())["roles"]
    assert verdict == "ok" and "readers see all collections" in finding
    filled.succeed("access", "grant", user_of(user), "reader")
    reader = as_user(filled, user)
    found = findings(reader.succeed("doctor", "--json").document())
    assert found["rights"][:2] == ("ok", "member of nearsim_reader; building indexes requires nearsim_admin")
    assert found["workers"][0] == "ok"
    with psycopg.connect(url) as connection:
        connection.execute("REVOKE SELECT ON nearsim.document FROM nearsim_reader")
        connection.execute("CREATE TABLE nearsim.foreign_table (a int)")
    found = findings(filled.run("doctor", "--json").document())
    assert found["objects"][0] == "problem" and "nearsim.document" in found["objects"][1]
    verdict, _, advice = found["roles"]
    assert verdict == "warning" and "nearsim.grant_rights()" in advice
