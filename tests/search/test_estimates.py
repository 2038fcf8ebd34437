"""Estimates are called so wherever a pair or a match is shown: in SQL, in Python and by the commands."""

import json
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any, LiteralString

import psycopg
import pytest

from nearsim_db import Document, Index
from nearsim_db.similarity.recipe import Recipe, override
from tests.builders.command_line import CommandLine
from tests.builders.workers import running
from tests.servers.databases import Server

TEXT = "one two three four five six"
GIVEN = [Document(str(at), body=f"{TEXT} {last}") for at, last in enumerate(("seven", "eight", "seven"))]
PROFILES = {
    "exact": True,
    "estimate": False,
    "bands": False,
}  # by match.verify: whether pairs of other words are verified
SETTINGS = ["match.threshold=0.5", "shingle.k=1"]


def fill(url: str) -> None:
    with Index.connect(url, collection="own") as index:
        for name in PROFILES:
            index.create_profile(name, override(Recipe(), [*SETTINGS, f"match.verify={name}"]))
        index.add(GIVEN)


@pytest.fixture(scope="module")
def url(server: Server) -> Iterator[str]:
    """Profiles of each way to verify, over the same three documents, the first and the last of which are twins."""
    with server.database(fill) as url:
        yield url


def ask(url: str, query: LiteralString, **values: object) -> Any:
    with psycopg.connect(url, autocommit=True) as connection:
        return connection.execute(query, values).fetchall()


@pytest.mark.parametrize("profile", PROFILES)
def test_sql_shows_what_is_verified(url: str, profile: str) -> None:
    is_exact = PROFILES[profile]
    found = ask(
        url,
        "SELECT left_external_id, right_external_id, verified FROM nearsim.pairs "
        "WHERE profile = %(name)s ORDER BY 1, 2",
        name=profile,
    )
    assert found == [("0", "1", is_exact), ("0", "2", True), ("1", "2", is_exact)]
    queries: list[LiteralString] = [
        "SELECT external_id, verified FROM nearsim.similar_to('0', profile => %(name)s) ORDER BY 1",
        "SELECT external_id, verified FROM nearsim.similar_by_profiles('0', ARRAY[%(name)s]) ORDER BY 1",
        "SELECT other, (SELECT verified FROM nearsim.why('0', other, %(name)s)) FROM unnest(ARRAY['1', '2']) AS other",
        "SELECT CAST(other - 1 AS text), (SELECT verified FROM nearsim.dedupe(ARRAY[1, other], profile => %(name)s) "
        "WHERE NOT keep) FROM unnest(ARRAY[2, 3]) AS other",
    ]
    for query in queries:
        assert ask(url, query, name=profile) == [("1", is_exact), ("2", True)]


def test_profiles_together_are_verified_if_each_is(url: str) -> None:
    found = ask(
        url, "SELECT left_external_id, right_external_id, verified FROM nearsim.combined_pairs ORDER BY 1, 2"
    )
    assert found == [("0", "1", False), ("0", "2", True), ("1", "2", False)]


def test_lookup_requests_are_answered_with_what_is_verified(url: str) -> None:
    with running(url):
        for profile, is_exact in PROFILES.items():
            ((answer,),) = ask(
                url,
                "CALL nearsim.similar_to_text(%(body)s, profile => %(name)s, deadline => '1 minute')",
                body=GIVEN[0].body,
                name=profile,
            )
            found = [(one["external_id"], one["verified"]) for one in answer]
            assert found == [("0", True), ("2", True), ("1", is_exact)]
    counted = ask(url, "SELECT verified, count(*) FROM nearsim.probe_match GROUP BY 1 ORDER BY 1")
    assert counted == [(False, 2), (True, 7)]


@pytest.mark.parametrize("profile", PROFILES)
def test_python_shows_what_is_verified(url: str, profile: str) -> None:
    is_exact = PROFILES[profile]
    with Index.connect(url, collection="own", profile=profile) as index:
        pairs = {(one.left, one.right): one for one in index.pairs()}
        assert {ends: one.verified for ends, one in pairs.items()} == {
            ("0", "1"): is_exact,
            ("1", "2"): is_exact,
            ("0", "2"): True,
        }
        assert (pairs["0", "1"].similarity == 6 / 8) is is_exact
        assert is_exact or pairs["0", "1"].similarity == pytest.approx(pairs["0", "1"].estimate, abs=1e-6)
        assert {one.external_id: one.verified for one in index.similar("1")} == {"0": is_exact, "2": is_exact}
        for limit in (None, 5):
            checked = index.check(Document("new", body=GIVEN[0].body), limit=limit)
            assert {one.external_id: one.verified for one in checked} == {
                "0": True,
                "2": True,
                "1": is_exact,
            }
        members = {one.external_id: one.verified for one in index.cluster("0")}
        assert members == {"0": None, "1": is_exact, "2": True}


@pytest.mark.parametrize("profile", PROFILES)
def test_commands_show_what_is_verified(url: str, profile: str, tmp_path: Path) -> None:
    is_exact = PROFILES[profile]
    nearsim = CommandLine({"NEARSIM_DATABASE_URL": url, "NEARSIM_BACKEND": "numpy"})
    own = ("--collection", "own", "--profile", profile)
    path = tmp_path / "new.jsonl"
    path.write_text(json.dumps({"id": "new", "text": f"{TEXT} eight"}))
    for command, expected in (
        (["pairs"], [is_exact, True, is_exact]),
        (["similar", "1"], [is_exact, is_exact]),
        (["clusters", "--show", "0"], [None, True, is_exact]),
        (["check", path], [True]),
    ):
        rows = nearsim.succeed(*command, *own, "--format", "jsonl").rows()
        assert Counter(one["verified"] for one in rows) == Counter(expected)
        table = nearsim.succeed(*command, *own).out
        assert ("verified" in table.splitlines()[0]) is (False in expected)
    (checked,) = nearsim.succeed("check", path, *own, "--format", "jsonl").rows()
    assert {one["id"]: one["verified"] for one in checked["matches"]} == {
        "0": is_exact,
        "1": True,
        "2": is_exact,
    }
    pairs = tmp_path / "pairs.jsonl"
    settings = [word for one in (*SETTINGS, f"match.verify={profile}") for word in ("--set", one)]
    stories = tmp_path / "stories.jsonl"
    stories.write_text("\n".join(json.dumps({"id": one.external_id, "text": one.body}) for one in GIVEN))
    nearsim.succeed("dedupe", stories, "-o", tmp_path / "unique.jsonl", "--pairs", pairs, *settings, "-q")
    written = [json.loads(line) for line in pairs.read_text().splitlines()]
    assert {(one["left"], one["right"]): one["verified"] for one in written} == {
        ("0", "1"): is_exact,
        ("1", "2"): is_exact,
        ("0", "2"): True,
    }
