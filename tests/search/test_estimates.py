"""Estimates are called so wherever a pair or a match is shown: in SQL, in Python and by the commands."""

import json
from collections import Counter
from pathlib import Path
from typing import Any, LiteralString

import psycopg
import pytest

from nearsim_db import Document, Index
from nearsim_db.analysis.report import Options, gather
from nearsim_db.similarity.recipe import Recipe, override
from tests.builders.command_line import CommandLine
from tests.builders.filled import address_of
from tests.builders.relations import leaves_of
from tests.builders.scrambling import INSERT_PAIR, UPDATE_HEAD, change
from tests.builders.selection import some
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
FAR = "one two three four five far away from"
STRICT = [
    "match.threshold=0.9",
    "bands.count=42",
    "bands.rows=3",
    "shingle.k=1",
]  # the first two share 20, others 2


def fill_below(url: str) -> None:
    with Index.connect(url, collection="own") as index:
        index.create_profile("certain", override(Recipe(), [*STRICT, "match.certain_shared_bands=3"]))
        by_bands = [*STRICT, "match.verify=bands", "match.min_shared_bands=3"]
        index.create_profile("bands", override(Recipe(), by_bands))
        index.add([*GIVEN[:2], Document("far", body=FAR)])


def fill(url: str) -> None:
    with Index.connect(url, collection="own") as index:
        for name in PROFILES:
            index.create_profile(name, override(Recipe(), [*SETTINGS, f"match.verify={name}"]))
        index.add(GIVEN[:1])
        index.add(GIVEN[1:])


# Profiles of each way to verify, over the same three documents, the first and the last of which are twins.
url = address_of(fill, "module")


def ask(url: str, query: LiteralString, **values: object) -> Any:
    with psycopg.connect(url, autocommit=True) as connection:
        return connection.execute(query, values).fetchall()


@pytest.mark.parametrize("profile", some(list(PROFILES), "every profile"))
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


@pytest.mark.slow("several builds")
@pytest.mark.usefixtures("either_tables")
def test_events_keep_what_is_verified(index: Index, database_url: str) -> None:
    """Events of changes after the first build, also after their generation is dropped."""
    profiles = {"estimate": False, **PROFILES, "certain": True}
    for name in profiles:
        certain = [*STRICT, "match.certain_shared_bands=3"]
        settings = certain if name == "certain" else [*SETTINGS, f"match.verify={name}"]
        index.create_profile(name, override(Recipe(), settings))
    index.add(GIVEN[:1])
    index.add(GIVEN[1:2])
    index.add([GIVEN[2], Document("3", body=f"{TEXT} nine")])
    found = (
        "SELECT left_id, right_id, verified FROM nearsim.events"
        " WHERE generation_id = %(id)s AND kind = 'pair_found' ORDER BY event_id"
    )
    numbers = [one.generation_id for one in leaves_of(database_url)]
    for generation_id, is_exact in zip(numbers, profiles.values(), strict=True):
        added = [(1, 2, is_exact), (1, 3, True), (1, 4, is_exact), (2, 4, is_exact)]
        assert ask(database_url, found, id=generation_id) == added
    with psycopg.connect(database_url) as writing:
        change(writing, UPDATE_HEAD, True, 3, 3)
        change(writing, INSERT_PAIR, True, 1, 3, 1)
    index.delete_profile("estimate")
    both = [row for row in ask(database_url, found, id=numbers[0]) if row[:2] == (1, 3)]
    assert both == [(1, 3, True), (1, 3, False)]


@pytest.mark.slow("starts a worker")
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


@pytest.mark.parametrize("profile", some(list(PROFILES), "every profile"))
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
        (["events"], [None, is_exact, True, None]),
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


@pytest.mark.slow("several builds")
@pytest.mark.parametrize("profile", ["certain", "bands"])
def test_pairs_below_the_threshold_are_found(server: Server, profile: str) -> None:
    with server.database(fill_below) as url:
        nearsim = CommandLine({"NEARSIM_DATABASE_URL": url, "NEARSIM_BACKEND": "numpy"})
        own = ("--collection", "own", "--profile", profile)
        for command, found in ((["pairs"], 1), (["similar", "0"], 1), (["check", "--text", TEXT], 1)):
            listed = nearsim.succeed(*command, *own, "--min-similarity", "0.3", "--format", "jsonl")
            assert (len(listed.rows()), listed.err) == (found, "")
        kept = "SELECT keep, duplicate_of, similarity < 0.9 FROM nearsim.dedupe(%(ids)s, 0.3, %(name)s)"
        assert ask(url, kept, ids=[1, 2], name=profile) == [(True, None, None), (False, 1, True)]
        with Index.connect(url, collection="own", profile=profile) as index:
            (pair,) = index.pairs()
            assert pair.similarity < 0.9 and pair.shared_bands >= 3
            report = gather(index.database, "own", profile, Options()).index
            assert report is not None
            assert (report.similarities.least, report.similarities.threshold) == (pair.similarity, 0.9)
            assert report.similarities.steps[0].similarity == pytest.approx(pair.similarity, abs=1e-6)
            assert [one.verified for one in report.comparisons] == [profile == "certain"]
            absent = index.why("0", "far")
            kinds = [one.kind for one in absent.reasons]
            ((reason,),) = ask(url, "SELECT reason FROM nearsim.why_not('0', 'far', %(name)s)", name=profile)
            if profile == "certain":
                assert kinds == ["below_threshold"]
                assert "fewer than match.certain_shared_bands = 3" in absent.reasons[0].text
                assert "below the threshold of 0.9; they share 2 of the 3 buckets that suffice" in reason
            else:
                assert kinds == ["too_few_shared_bands"]
                assert reason.startswith("they share 2 of the 3 buckets that the recipe requires")
            ask(url, "DELETE FROM nearsim.similar_pair RETURNING left_id")
            (lost,) = index.why("0", "1").reasons
            assert lost.kind == "unexplained" and lost.text.startswith(
                f"they share {pair.shared_bands} bands, but"
            )
        ((reason,),) = ask(url, "SELECT reason FROM nearsim.why_not('0', '1', %(name)s)", name=profile)
        assert reason == f"they share {pair.shared_bands} buckets, but the pair is not stored"


def test_why_calls_the_similarity_of_a_pair_an_estimate(url: str) -> None:
    nearsim = CommandLine({"NEARSIM_DATABASE_URL": url, "NEARSIM_BACKEND": "numpy"})
    for profile, is_exact in PROFILES.items():
        command = ("why", "0", "1", "--collection", "own", "--profile", profile)
        found, shown = nearsim.succeed(*command, "--json").document(), nearsim.succeed(*command).out
        assert (found["verified"], found["similarity"]) == (is_exact, 6 / 8)
        assert ("stored similarity" in shown, "estimated at" in shown) == (not is_exact, not is_exact)
        ((reason,),) = ask(url, "SELECT reason FROM nearsim.why_not('0', '1', %(name)s)", name=profile)
        assert ("estimate" in shown.splitlines()[0], "estimated" in reason) == (not is_exact, not is_exact)
