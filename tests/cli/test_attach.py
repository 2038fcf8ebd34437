"""nearsim attach, sweep and detach."""

from collections.abc import Iterator

import psycopg
import pytest

from tests.builders.command_line import BRIDGE, HARVEST, STORM, STORM_AGAIN, CommandLine

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


ATTACH = ("attach", "news.story", "--id", "slug", "--text", "body", "--title", "headline")


def test_from_attach_to_detach(nearsim: CommandLine, app: "psycopg.Connection[tuple[object, ...]]") -> None:
    more = ("--source", "agency", "--url", "link", "--published-at", "day", "--set", "match.threshold=0.6")
    begun = nearsim.succeed(*ATTACH, *more, "--json").document()
    assert begun["collection"] == "story" and begun["table"] == "news.story" and begun["new"] == 3
    assert begun["columns"]["published_at"] == "day" and begun["profiles"][0]["pairs"] == 1
    got = nearsim.succeed("get", "storm", "-c", "story").document()
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
    (shown,) = nearsim.succeed("attach", "--list", "--json").document()
    assert shown["collection"] == "story" and shown["table"] == "news.story" and shown["trouble"] is None
    (listed,) = nearsim.succeed("collection", "list", "--json").document()
    assert listed["follows"] == "news.story" and listed["documents"] == 4
    swept = nearsim.succeed("sweep", "story", "--json").document()
    assert swept == {
        "collection": "story",
        "new": 0,
        "changed": 0,
        "gone": 0,
        "unusable": 0,
        "collections": 1,
    }
    kept = nearsim.succeed("detach", "story", "--keep", "--json").document()
    assert kept == {"collection": "story", "kept": True, "documents": 4, "collections": ["story"]}
    app.execute("DROP TABLE news.story")
    assert nearsim.succeed("get", "storm", "-c", "story").document()["body"] == STORM
    assert len(nearsim.succeed("pairs", "-c", "story", "--format", "jsonl").rows()) == 3
    assert (
        nearsim.succeed("attach", "--list").out
        == "no collection is attached to a table; see: nearsim attach --help\n"
    )
