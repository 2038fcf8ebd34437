"""nearsim review: what it serves to whom, and decisions that are verdicts at once."""

import re
import stat
from collections.abc import Iterator
from pathlib import Path

import pytest

from nearsim_db import Index
from nearsim_db.admin import access
from nearsim_db.store.database import Database
from tests.builders.command_line import CommandLine, write_jsonl
from tests.builders.logins import login, user_of
from tests.builders.review_desk import Desk, desk, unopened_desk
from tests.builders.workers import application, ask, wait_until

WORDS = " ".join(f"word{at}" for at in range(30))

# As the desk names its collection and documents.
PLACE = "Collection default"
FIRST = "d0 “&lt;script&gt;alert(1)&lt;/script&gt;”"
SECOND, THIRD = "d1 “Second”", "d2 “Third”"


@pytest.fixture
def reviewed(nearsim: CommandLine, tmp_path: Path) -> CommandLine:
    """An index of three texts that differ in a number, the first with a title full of markup."""
    titles = ["<script>alert(1)</script>", "Second", "Third"]
    rows = (
        {"id": f"d{at}", "title": title, "text": f"{WORDS} {at}", "url": "javascript:alert(2)"}
        for at, title in enumerate(titles)
    )
    nearsim.succeed("ingest", write_jsonl(tmp_path / "rows.jsonl", rows), "-q")
    return nearsim


@pytest.fixture
def served(reviewed: CommandLine) -> Iterator[Desk]:
    """The desk over these texts."""
    with desk(reviewed, "--by", "anna") as opened:
        yield opened


def shown(page: str) -> dict[str, str]:
    """The hidden values of the form that sends a decision."""
    return dict(re.findall(r'<input type="hidden" name="(\w+)" value="([^"]*)">', page))


def verdicts(nearsim: CommandLine) -> list[tuple[str, str]]:
    listed = nearsim.succeed("verdict", "list", "--json").document()["verdicts"]
    return [(one["verdict"], one["by"]) for one in listed]


def judge(opened: Desk, answer: str) -> dict[str, str]:
    """Answer the next pair whose numbers differ; return the values of its form."""
    values = shown(opened.request("/queue/numbers").body)
    sent = opened.request("/decide", values | {"answer": answer})
    about = f"about={values['document']}-{values['listed']}-{answer}&decided=1"
    assert (sent.status, sent.headers["location"]) == (303, f"/queue/numbers?done={answer}&{about}")
    return values


def test_decisions_are_verdicts_and_outlive_the_process(reviewed: CommandLine, database_url: str) -> None:
    with desk(reviewed, "--by", "anna") as opened:
        first = judge(opened, "same")
        assert verdicts(reviewed) == [("pinned", "anna")]
        second = judge(opened, "different")
        assert first != second
        assert verdicts(reviewed) == [("vetoed", "anna"), ("pinned", "anna")]
        assert "2 decided" in opened.request("/queue/numbers").body
        with application(database_url) as connection:
            wait_until(connection, "SELECT documents = 2 FROM nearsim.clusters")
        assert opened.stop() == 130
    with desk(reviewed, "--by", "anna") as opened:
        listed = opened.request("/disagreements").body
        assert "1 of 2 verdicts in force" in listed and "vetoed; a pair of" in listed
        assert f'href="/pair/{second["document"]}/{second["listed"]}"' in listed
        undone = opened.request("/undo", {})
        pair = f"{second['document']}-{second['listed']}"
        path = f"/pair/{second['document']}/{second['listed']}?queue=numbers&done=undone"
        path += f"&about={pair}-different&decided=1"
        assert (undone.status, undone.headers["location"]) == (303, path)
        assert "Undone; it is open again." in opened.request(path).body
        assert verdicts(reviewed) == [("pinned", "anna")]


def test_an_old_link_shows_the_cluster_that_now_has_its_first_document(served: Desk) -> None:
    """The number of a cluster is its first document: 3, until documents 1 and 2 joined it."""
    page = served.request("/cluster/3")
    assert page.status == 200
    assert 'data-live="/cluster/1?of=3"' in page.body


@pytest.mark.slow("starts a process")
def test_labels_follow_each_decision(reviewed: CommandLine, tmp_path: Path) -> None:
    labels = tmp_path / "labels.csv"
    with desk(reviewed, "--labels", str(labels)) as opened:
        assert labels.read_text() == "id_a,id_b,label\n"
        judge(opened, "same")
        assert [line[-2:] for line in labels.read_text().splitlines()[1:]] == [",1"]
        judge(opened, "different")
        assert [line[-2:] for line in labels.read_text().splitlines()[1:]] == [",1", ",0"]
        opened.request("/undo", {})
        assert len(labels.read_text().splitlines()) == 2
    again = reviewed.succeed("verdict", "import", labels, "--json").document()
    assert (again["unchanged"], again["pinned"], again["vetoed"]) == (1, 0, 0)


@pytest.mark.slow("starts a process")
def test_a_document_and_its_shortlist_are_one_decision(reviewed: CommandLine) -> None:
    with desk(reviewed, "--by", "anna") as opened:
        page = opened.request("/documents/numbers").body
        listed = re.findall(r'name="listed" value="(\d+)"', page)
        assert len(listed) == 2 and "what differs" in page
        form = [*shown(page).items(), ("answer", "same"), ("ticked", listed[1])]
        form = [*(one for one in form if one[0] != "listed"), *(("listed", one) for one in listed)]
        address = opened.request("/decide", form).headers["location"]
        names = {"1": FIRST, "2": SECOND, "3": THIRD}
        document = shown(page)["document"]
        same, other = (" and ".join(names[one] for one in sorted((document, two))) for two in listed)
        (said,) = re.findall(r'<p id="done".*', opened.request(address).body)
        assert f"Marked as the same. {PLACE}: {same}; {other} (marked as different)." in said
        assert sorted(verdicts(reviewed)) == [("pinned", "anna"), ("vetoed", "anna")]
        address = opened.request("/undo", {}).headers["location"]
        assert address.startswith("/documents/numbers?done=undone&")
        assert verdicts(reviewed) == []


@pytest.mark.slow("starts a process")
def test_a_document_is_kept_and_that_is_undone(reviewed: CommandLine, database_url: str) -> None:
    survivor = "SELECT survivor_external_id = '{}' FROM nearsim.clusters"
    ((cluster, kept),) = [
        (one["cluster"], one["survivor"]) for one in reviewed.succeed("clusters", "--format", "jsonl").rows()
    ]
    with desk(reviewed, "--by", "anna") as opened, application(database_url) as connection:
        for document, name in ((2, "d1"), (3, "d2")):
            opened.request("/keep", {"document": document, "cluster": cluster})
            wait_until(connection, survivor.format(name))
        opened.request("/keep", {"document": 3, "cluster": cluster})
        for left in ("d2", "d1", kept):
            assert opened.request("/undo", {}).headers["location"].startswith("/cluster/")
            wait_until(connection, survivor.format(left))
        assert "/?done=nothing" in opened.request("/undo", {}).headers["location"]
        page = opened.request("/pair/1/2").body
        assert "Cluster of left and right" in page and "Third" in page
    reviewed.succeed("verdict", "keep", "d1", "--why", "the first", "-q")
    reviewed.succeed("verdict", "keep", "d1", "--why", "not the first", "--undo", "-q")
    assert reviewed.succeed("clusters", "--format", "jsonl").rows()[0]["survivor"] == kept
    assert "was not chosen" in reviewed.fail("verdict", "keep", "d1", "--why", "x", "--undo")


@pytest.mark.slow("starts a process")
def test_passages_of_contained_texts_are_shown(nearsim: CommandLine, tmp_path: Path) -> None:
    own = " ".join(f"own{at}" for at in range(40))
    rows = [{"id": "part", "text": WORDS}, {"id": "whole", "text": f"{own} {WORDS} {own}"}]
    rows.append({"id": "other part", "text": f"{WORDS} {own[:20]}"})
    nearsim.succeed("profile", "create", "default", "--preset", "embedded-stories", "-q")
    nearsim.succeed("ingest", write_jsonl(tmp_path / "parts.jsonl", rows), "-q")
    with desk(nearsim) as opened:
        page = opened.request("/pair/1/2").body
        assert "Passages that both have" in page and f'<q dir="auto">{WORDS}</q>' in page
        page = opened.request("/documents/sample").body
        assert page.count("<summary>passages that both have</summary>") == 2
        assert page.count(f'<q dir="auto">{WORDS}</q>') == 2


def test_only_a_browser_with_the_token_is_answered(reviewed: CommandLine) -> None:
    with desk(reviewed) as opened:
        attributes = opened.headers["set-cookie"].lower()
        assert "httponly" in attributes and "samesite=strict" in attributes
        page = opened.request("/")
        assert page.status == 200
        assert "default-src 'none'" in page.headers["content-security-policy"]
        values = shown(opened.request("/queue/numbers").body) | {"answer": "same"}
        for headers in (
            {"Cookie": None},
            {"Cookie": opened.cookie[:-1]},
            {"Host": "attacker.example"},
            {"Origin": "http://attacker.example"},
            {"Origin": "null"},
            {"Origin": None},
        ):
            assert opened.request("/decide", values, headers).status == 403, headers
        for headers in ({"Cookie": None}, {"Host": "attacker.example"}):
            refused = opened.request("/queue/numbers", headers=headers)
            assert (refused.status, "word1" in refused.body) == (403, False)
        assert opened.request("/?token=wrong", headers={"Cookie": None}).status == 403
        assert verdicts(reviewed) == []


@pytest.mark.slow("starts a process")
def test_titles_are_text_and_other_schemes_no_links(reviewed: CommandLine) -> None:
    with desk(reviewed) as opened:
        page = opened.request("/pair/1/2").body
        assert "&lt;script&gt;alert(1)" in page
        assert "<script>alert" not in page
        assert "javascript:" not in page
        for path, status in (
            ("/pair/1/99", 404), ("/queue/gone", 404), ("/nothing", 404), ("/queue/numbers?since=soon", 400),
        ):  # fmt: skip
            assert opened.request(path).status == status, path
        assert opened.request("/decide", {"answer": "same", "document": "x", "listed": "2"}).status == 400
        assert opened.request("/decide", {"answer": "perhaps", "document": "1", "listed": "2"}).status == 400


@pytest.mark.slow("starts a process")
def test_readers_read_and_take_no_leases(reviewed: CommandLine, database_url: str) -> None:
    with login(database_url, "nearsim_reader") as reader:
        as_reader = CommandLine(reviewed.environment | {"NEARSIM_DATABASE_URL": reader})
        with desk(as_reader) as opened:
            page = opened.request("/queue/numbers").body
            assert "word1" in page and "read only" in page and "<form" not in page
            decided = opened.request("/decide", {"answer": "same", "document": "1", "listed": "2"})
            assert decided.status == 403
            assert "access grant" in decided.body
        assert verdicts(reviewed) == []


@pytest.mark.slow("switches isolation on")
def test_a_tenant_judges_its_own_collection(reviewed: CommandLine, database_url: str) -> None:
    with Index.connect(database_url, collection="secret") as index:
        index.add([{"id": "s", "text": "what nobody else may see"}])
    with login(database_url, "nearsim_writer") as tenant:
        with Database.connect(database_url) as database:
            access.grant(database, user_of(tenant), "writer", ["default"])
            access.set_isolation(database, wanted=True)
        as_tenant = CommandLine(reviewed.environment | {"NEARSIM_DATABASE_URL": tenant})
        with desk(as_tenant, "--by", "anna") as opened:
            judge(opened, "same")
            assert "clusters wait for a worker" in opened.request("/").body
            assert opened.request("/state").body == '{"state":"waiting"}'
            with Index.connect(database_url) as index:
                index.build()
            assert opened.request("/state").body == '{"state":"current"}'
            assert opened.request("/pair/1/4").status == 404
        assert verdicts(as_tenant) == [("pinned", "anna")]


def test_the_token_opens_the_desk_once(reviewed: CommandLine) -> None:
    with desk(reviewed) as opened:
        again = opened.request(opened.opening_path, headers={"Cookie": None})
        assert (again.status, "valid once" in again.body, "set-cookie" in again.headers) == (403, True, False)
        assert opened.request(opened.opening_path).status == 200


@pytest.mark.slow("starts a process")
def test_a_preview_of_the_url_does_not_open_it(reviewed: CommandLine) -> None:
    with unopened_desk(reviewed, "--no-browser") as waiting:
        assert waiting.request(waiting.opening_path, method="HEAD").status == 403
        assert "set-cookie" in waiting.request(waiting.opening_path).headers


@pytest.mark.slow("starts a process")
def test_the_desk_redirects_to_no_other_host(reviewed: CommandLine) -> None:
    with unopened_desk(reviewed, "--no-browser") as waiting:
        query = waiting.opening_path.partition("?")[2]
        answer = waiting.request(f"//evil.example/?{query}")
        assert "location" not in answer.headers
        assert "evil.example" not in answer.body


def test_a_browser_is_started_without_the_token_in_its_arguments(
    reviewed: CommandLine, tmp_path: Path
) -> None:
    command = tmp_path / "browser"
    command.write_text(
        f'#!/bin/sh\ncp -p "${{1#file://}}" {tmp_path}/opened.html\nprintf %s "$*" >{tmp_path}/arguments\n'
    )
    command.chmod(0o700)
    started = CommandLine(reviewed.environment | {"BROWSER": str(command)})
    with unopened_desk(started) as waiting:
        # The desk answers after the browser was started.
        assert waiting.request("/").status == 403
        token = waiting.opening_path.rpartition("=")[2]
        page = tmp_path / "opened.html"
        assert token in page.read_text() and token not in (tmp_path / "arguments").read_text()
        assert stat.S_IMODE(page.stat().st_mode) == 0o600


def test_addresses_that_cannot_be_meant_are_not_understood(served: Desk) -> None:
    paths = (
        "/queue/%00",
        "/documents/numbers?text=%00",
        "/queue/numbers?source=a%00b",
        "/queue/numbers?since=%00",
        f"/pair/1/{'9' * 21}",
        f"/pair/{'9' * 5000}/1",
        f"/cluster/{'9' * 21}",
        f"/cluster/1?of={'9' * 21}",
        "/pair/one/two",
        "/cluster/-1",
    )
    assert {path: served.request(path).status for path in paths} == dict.fromkeys(paths, 400)


def test_forms_that_cannot_be_meant_are_not_understood(served: Desk) -> None:
    for form in (
        {"answer": "same", "document": "9" * 21, "listed": "1"},
        {"answer": "same", "document": "1", "listed": "9" * 21},
        {"answer": "same", "document": "1", "listed": "2", "why": "a\0b"},
        {"answer": "same\0", "document": "1", "listed": "2"},
        {"answer": "same", "document": "1", "listed": "2", "cluster": "9" * 21},
    ):
        assert served.request("/decide", form).status == 400, form


def test_another_collection_is_answered_like_none(served: Desk, database_url: str) -> None:
    with Index.connect(database_url, collection="other") as index:
        index.add([{"id": name, "text": "what another desk may judge"} for name in "abc"])

    requests: list[tuple[str, dict[str, str] | None]] = [
        ("/decide", {"answer": "different", "document": "1", "listed": "?"}),
        ("/decide", {"answer": "same", "document": "?", "listed": "1", "cluster": "1"}),
        ("/keep", {"document": "?", "cluster": "1"}),
        ("/take-out", {"document": "?", "cluster": "1"}),
        ("/pair/1/?", None),
        ("/cluster/?", None),
    ]
    for path, form in requests:
        answers = []
        for doc_id in ("4", "9999"):
            values = (
                None if form is None else {name: value.replace("?", doc_id) for name, value in form.items()}
            )
            answer = served.request(path.replace("?", doc_id), values)
            message = answer.body.partition("<main")[2]
            answers.append((answer.status, message.replace(doc_id, "?")))
        assert answers[0] == answers[1]
        assert answers[0][0] == 404

    with application(database_url) as connection:
        written = (
            "SELECT (SELECT count(*) FROM nearsim.verdict) + (SELECT count(*) FROM nearsim.survivor_pin)"
        )
        assert ask(connection, written) == 0


@pytest.mark.slow("starts a process")
def test_hosts_beyond_this_machine_need_a_token(reviewed: CommandLine) -> None:
    assert "needs --token" in reviewed.fail("review", "--host", "0.0.0.0", "--no-browser", exit_code=2)
    assert "at least 16" in reviewed.fail("review", "--token", "short", "--no-browser", exit_code=2)


@pytest.mark.slow("starts a process")
def test_a_desk_at_every_address_answers_under_the_allowed_names(reviewed: CommandLine) -> None:
    arguments = ("--host", "0.0.0.0", "--token", "x" * 16)
    assert "--allow-host" in reviewed.fail("review", "--no-browser", *arguments, exit_code=2)
    names = ("Desk.example", "192.0.2.7")
    with unopened_desk(
        reviewed, "--no-browser", *arguments, *(f"--allow-host={name}" for name in names)
    ) as waiting:
        host, _, port = waiting.place.partition(":")
        assert host == "desk.example"
        waiting.url = waiting.url.replace(host, "127.0.0.1")
        allowed = {"Host": f"desk.example:{port}", "Origin": f"http://desk.example:{port}"}
        answer = waiting.request(waiting.opening_path, headers=allowed)
        waiting.cookie = answer.headers["set-cookie"].split(";")[0]
        for name, status in (("desk.example", 200), ("192.0.2.7", 200), ("attacker.example", 403)):
            assert waiting.request("/", headers={"Host": f"{name}:{port}"}).status == status, name
        judged = {"answer": "next", "queue": "numbers"}
        assert waiting.request("/decide", judged, allowed).status == 303
