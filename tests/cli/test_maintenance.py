"""Maintenance: verify-index, and attach, sweep and detach."""

from collections.abc import Iterator

import psycopg
import pytest

from tests.builders.command_line import BRIDGE, HARVEST, STORM, STORM_AGAIN, CommandLine


def test_faults_exit_with_3_until_repaired(filled: CommandLine, database_url: str) -> None:
    with psycopg.connect(database_url) as connection:
        connection.execute("DELETE FROM nearsim_index.similar_pair_shared")
        connection.execute("UPDATE nearsim_index.signature_shared SET revision = 99 WHERE doc_id = 5")
    outcome = filled.run("verify-index")
    assert outcome.exit_code == 3
    shown = [line.split()[0] for line in outcome.out.splitlines()[-4:-1]]
    assert shown == ["outdated", "missing_pair", "wrong_cluster"] and "--repair" in outcome.out
    sampled = filled.run("verify-index", "--sample", "2", "--json").document()
    assert sampled["checked"]["documents"] == 2
    reported = filled.run("verify-index", "--all", "--json")
    assert reported.exit_code == 3
    kinds = {fault["kind"]: fault["examples"] for fault in reported.document()["faults"]}
    assert kinds["outdated"] == [["bridge"]] and kinds["missing_pair"] == [["storm", "storm-again"]]
    repaired = filled.succeed("verify-index", "--repair", "--json").document()
    assert repaired["repaired"] and repaired["left"] == [] and repaired["rebuilt"] is None
    assert filled.succeed("verify-index", "--all", "--json").document()["faults"] == []


@pytest.mark.usefixtures("own_tables")
def test_damaged_index_is_replaced(filled: CommandLine, database_url: str) -> None:
    with psycopg.connect(database_url) as connection:
        connection.execute("DROP TABLE nearsim_index.band_100000001")
    outcome = filled.run("verify-index", "--quiet")
    assert outcome.exit_code == 3
    assert "profile default differs; to repair it: nearsim verify-index --repair\n" in outcome.err
    outcome = filled.run("verify-index", "-g", 100000001, "--sample", 5, "--quiet")
    assert outcome.err.endswith("nearsim verify-index --generation 100000001 --sample 5 --repair\n")
    repaired = filled.succeed("verify-index", "--repair")
    assert "differed and was replaced by generation 100000002\n" in repaired.out
    assert filled.succeed("verify-index", "--all", "--json").document()["generation"] == 100000002


TABLE = """
CREATE SCHEMA news;
CREATE TABLE news.story (story_id uuid DEFAULT gen_random_uuid() PRIMARY KEY, slug text UNIQUE, headline text,
    body text, agency text, link text, day date)
"""


@pytest.fixture
def app(database_url: str) -> Iterator["psycopg.Connection[tuple[object, ...]]"]:
    """The application, with two stories that are similar and one that is not."""
    with psycopg.connect(database_url, autocommit=True) as connection:
        connection.execute(TABLE.encode())
        for slug, text in {"storm": STORM, "storm-again": STORM_AGAIN, "harvest": HARVEST}.items():
            connection.execute(
                "INSERT INTO news.story (slug, headline, body, agency, link, day) "
                "VALUES (%s, 'x', %s, 'DPA', 'u', '2026-03-01')",
                (slug, text),
            )
        yield connection


ATTACH = ("table", "attach", "news.story", "--id", "slug", "--text", "body", "--title", "headline")


@pytest.mark.slow("several builds")
def test_from_attach_to_detach(nearsim: CommandLine, app: "psycopg.Connection[tuple[object, ...]]") -> None:
    more = ("--source", "agency", "--url", "link", "--published-at", "day", "--set", "match.threshold=0.6")
    begun = nearsim.succeed(*ATTACH, *more, "--json").document()
    assert begun["collection"] == "story" and begun["table"] == "news.story" and begun["new"] == 3
    assert begun["columns"]["published_at"] == "day" and begun["profiles"][0]["pairs"] == 1
    got = nearsim.succeed("document", "get", "storm", "-c", "story").document()
    assert (got["body"], got["source"], got["url"]) == (STORM, "DPA", "u")
    assert got["published_at"].startswith("2026-03-01T00:00:00+00:00")
    app.execute("UPDATE news.story SET body = %s WHERE slug = 'harvest'", (STORM,))
    app.execute("INSERT INTO news.story (slug, body) VALUES ('bridge', %s)", (BRIDGE,))
    nearsim.succeed("worker", "--once", "--quiet")
    rows = nearsim.succeed("pairs", "-c", "story", "--format", "jsonl").rows()
    assert {frozenset((row["left"], row["right"])) for row in rows} == {
        frozenset(pair)
        for pair in (("storm", "storm-again"), ("storm", "harvest"), ("storm-again", "harvest"))
    }
    (shown,) = nearsim.succeed("table", "list", "--json").document()
    assert shown["collection"] == "story" and shown["table"] == "news.story" and shown["trouble"] is None
    (listed,) = nearsim.succeed("collection", "list", "--json").document()
    assert listed["follows"] == "news.story" and listed["documents"] == 4
    swept = nearsim.succeed("table", "sweep", "story", "--json").document()
    assert swept == {
        "collection": "story",
        "new": 0,
        "changed": 0,
        "gone": 0,
        "unusable": 0,
        "collections": 1,
    }
    kept = nearsim.succeed("table", "detach", "story", "--keep", "--json").document()
    assert kept == {"collection": "story", "kept": True, "documents": 4, "collections": ["story"]}
    app.execute("DROP TABLE news.story")
    assert nearsim.succeed("document", "get", "storm", "-c", "story").document()["body"] == STORM
    assert len(nearsim.succeed("pairs", "-c", "story", "--format", "jsonl").rows()) == 3
    assert (
        nearsim.succeed("table", "list").out
        == "no collection is attached to a table; see: nearsim table attach --help\n"
    )
