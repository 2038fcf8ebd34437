"""Commands for documents, collections, profiles and the database."""

import os
import random
from pathlib import Path

import psycopg
import psycopg.sql
import pytest

from nearsim_db.similarity import presets
from nearsim_db.similarity.recipe import Recipe, load, override, to_toml
from tests.builders.command_line import STORM, STORM_AGAIN, CommandLine, write_jsonl
from tests.builders.word_sets import counts


def test_pending_changes_are_reported(filled: CommandLine, database_url: str) -> None:
    assert filled.succeed("stats", "--json").document()["changes_waiting"] == 0
    with psycopg.connect(database_url) as connection:
        connection.execute("INSERT INTO nearsim.collection (name) VALUES ('own')")
        connection.execute(
            "INSERT INTO nearsim.document (collection_id, external_id)"
            " SELECT collection_id, 'e' FROM nearsim.collection"
        )
        connection.execute("UPDATE nearsim.document SET title = 'anew' WHERE external_id LIKE 'storm%'")
        connection.execute("INSERT INTO nearsim.change DEFAULT VALUES")
    assert filled.succeed("stats", "--json").document()["changes_waiting"] == 5
    assert filled.succeed("work", "list", "--json").document() == {"work": [], "changes_waiting": 6}
    listed = filled.succeed("work", "list", "--collection", "own", "--json").document()
    assert listed == {"work": [], "changes_waiting": 2}
    checks = {one["check"]: one for one in filled.run("doctor", "--json").document()["checks"]}
    assert (checks["workers"]["verdict"], checks["workers"]["advice"]) == (
        *("warning", "nearsim worker, or nearsim build"),
    )
    assert "create one: nearsim build -c own\n" in filled.run("doctor").out
    filled.succeed("build")
    assert filled.succeed("stats", "--json").document()["changes_waiting"] == 0


def test_names_with_spaces_around_or_control_characters_are_refused(
    nearsim: CommandLine, database_url: str
) -> None:
    for name in ("  x ", "two\nlines", "tab\t", "\x1b[31mred", "a\u2028b", "\u00a0x"):
        for command in (["collection", "create", name], ["profile", "create", "p", "-c", name]):
            assert "leave out control characters" in nearsim.fail(*command)
    # One that is there already goes on working.
    with psycopg.connect(database_url) as connection:
        connection.execute("INSERT INTO nearsim.collection (name) VALUES (%s)", ("two\nlines",))
    nearsim.succeed("profile", "create", "p", "-c", "two\nlines")
    nearsim.succeed("collection", "delete", "two\nlines", "-y")
    nearsim.succeed("collection", "create", "two words")


def test_profile_on_a_filled_collection_is_built_at_once(filled: CommandLine) -> None:
    near, every = counts(STORM, STORM_AGAIN)
    assert 0.7 < near / every < 0.99
    filled.succeed("profile", "create", "strict", "--set", "match.threshold=0.99")
    (pair,) = filled.succeed("pairs", "--profile", "strict", "--format", "jsonl").rows()
    assert (pair["left"], pair["right"]) == ("storm", "storm-twin")
    assert len(filled.succeed("pairs", "--format", "jsonl").rows()) == 3
    found = filled.succeed("profile", "list", "--json").document()
    assert [(one["profile"], one["state"], one["threshold"]) for one in found] == [
        ("default", "live", 0.7),
        ("strict", "live", 0.99),
    ]
    filled.succeed("profile", "delete", "strict")
    assert len(filled.succeed("pairs", "--format", "jsonl").rows()) == 3


def test_shown_recipe_creates_the_same_profile(nearsim: CommandLine, tmp_path: Path) -> None:
    changes = [
        "shingle.scheme=char",
        "shingle.k=5",
        "sketch.family=minhash",
        'cluster.keep="source:A,\\"B\\""',
    ]
    nearsim.succeed("profile", "create", "first", *(word for change in changes for word in ("--set", change)))
    path = tmp_path / "first.toml"
    nearsim.succeed("profile", "show", "first", "-o", path)
    assert path.read_text() == nearsim.succeed("profile", "show", "first", "--toml").out
    assert load(path) == override(Recipe(), changes)
    nearsim.succeed("profile", "create", "second", "--recipe", path)
    first, second = (
        nearsim.succeed("profile", "show", name, "--json").document() for name in ("first", "second")
    )
    assert first["fingerprint"] == second["fingerprint"]
    assert first["fingerprint"] in nearsim.succeed("profile", "show", "first").out


def test_the_default_preset_is_the_default_recipe(nearsim: CommandLine) -> None:
    listed = nearsim.succeed("profile", "presets", "--json").document()
    assert [one["preset"] for one in listed] == presets.names()
    assert all(one["purpose"] for one in listed)
    assert nearsim.succeed("profile", "presets", "headlines").out == presets.read("headlines")
    assert presets.load("default") == Recipe()
    nearsim.succeed("profile", "create", "given", "--preset", "default")
    assert nearsim.succeed("profile", "show", "given", "--toml").out == to_toml(Recipe())


def test_doctor_finds_an_unfinished_build(filled: CommandLine, database_url: str) -> None:
    with psycopg.connect(database_url) as connection:
        connection.execute("UPDATE nearsim.generation SET state = 'building', stage = 'pairs'")
    assert "or: nearsim build\n" in filled.succeed("doctor").out
    for command in (["pairs"], ["clusters"], ["similar", "storm"]):
        assert "profile 'default' is being built (stage pairs)" in filled.fail(*command)
    with psycopg.connect(database_url) as connection:
        connection.execute("UPDATE nearsim.alembic_version SET version_num = '9999'")
        connection.execute("UPDATE nearsim_index.schema_floor SET oldest_revision = '9999'")
    outcome = filled.run("doctor", "--json")
    (problem,) = [one for one in outcome.document()["checks"] if one["verdict"] == "problem"]
    assert (outcome.exit_code, outcome.document()["ok"], problem["check"]) == (1, False, "schema")


def test_a_query_of_a_paused_profile_says_how_to_go_on(filled: CommandLine, database_url: str) -> None:
    with psycopg.connect(database_url) as connection:
        connection.execute("UPDATE nearsim.generation SET state = 'paused', stage = 'pairs'")
    refusal = filled.fail("pairs")
    assert "profile 'default' has no live index: generation 1 is paused" in refusal
    assert "to go on: nearsim reindex resume" in refusal


def test_doctor_names_missing_rights(filled: CommandLine, database_url: str) -> None:
    role = f"reader_{os.getpid()}"
    name = psycopg.sql.Identifier(role)
    with psycopg.connect(database_url, autocommit=True) as connection:
        owner = psycopg.sql.Identifier(connection.info.user)
        connection.execute(psycopg.sql.SQL("CREATE ROLE {}").format(name))
        try:
            reported = _as_role(filled, role).run("doctor", "--json")
            (problem,) = [one for one in reported.document()["checks"] if one["verdict"] == "problem"]
            assert (reported.exit_code, problem["check"]) == (1, "rights")
            for right in (
                "USAGE ON SCHEMA nearsim",
                "CREATE ON SCHEMA nearsim",
                "USAGE, CREATE ON SCHEMA nearsim_index",
                "SELECT, INSERT",
            ):
                assert f"GRANT {right}" in problem["advice"]
            for remedy in problem["advice"].removeprefix("ask the owner for: ").split("; "):
                connection.execute(remedy)
            assert _as_role(filled, role).succeed("doctor", "--json").document()["ok"] is True
            connection.execute("DROP SCHEMA nearsim, nearsim_index CASCADE")
            connection.execute(psycopg.sql.SQL("DROP OWNED BY {}").format(name))
            connection.execute(psycopg.sql.SQL("REVOKE {} FROM {}").format(owner, name))
            (problem,) = [
                one
                for one in _as_role(filled, role).run("doctor", "--json").document()["checks"]
                if one["verdict"] == "problem" and one["check"] == "rights"
            ]
            assert "GRANT CREATE ON DATABASE" in problem["advice"]
        finally:
            connection.execute(psycopg.sql.SQL("DROP OWNED BY {}").format(name))
            connection.execute(psycopg.sql.SQL("DROP ROLE {}").format(name))


def _as_role(nearsim: CommandLine, role: str) -> CommandLine:
    url = nearsim.environment["NEARSIM_DATABASE_URL"]
    mark = "&" if "?" in url else "?"
    return CommandLine(
        {**nearsim.environment, "NEARSIM_DATABASE_URL": f"{url}{mark}options=-c%20role%3D{role}"}
    )


@pytest.mark.slow("several builds")
def test_shingles_too_short_for_the_documents_are_warned_of(nearsim: CommandLine, tmp_path: Path) -> None:
    drawn = random.Random(3)
    letters = "abcdefghijklmnopqrst"
    rows = [{"id": str(at), "text": "".join(drawn.choices(letters, k=600))} for at in range(40)]
    nearsim.succeed("profile", "create", "default", "--preset", "background", "-q")
    nearsim.succeed("ingest", write_jsonl(tmp_path / "texts.jsonl", rows), "-q")

    def verdict() -> str:
        checks = {one["check"]: one for one in nearsim.run("doctor", "--json").document()["checks"]}
        return str(checks["shingles"]["verdict"])

    assert verdict() == "ok"
    short = ("--set", "shingle.k=2", "-q")
    created = nearsim.succeed("profile", "create", "short", "--preset", "background", *short).err
    assert created.count("is small for these texts") == 1 and verdict() == "warning"
    assert "shingle.k = 2 is small" in nearsim.succeed("reindex", "start", "default", *short).err
