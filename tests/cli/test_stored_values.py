"""Every value that plain SQL can store is refused by a constraint, or read back exactly by every command."""

import json
import math
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from decimal import Decimal
from pathlib import Path
from typing import Any

import psycopg
import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

from nearsim_db import Index
from tests.builders.command_line import STORM, CommandLine, write_jsonl
from tests.builders.workers import Application, application
from tests.servers.databases import Server

INSERT = (
    "INSERT INTO nearsim.document (collection_id, external_id, title, body, source, url, published_at, created_at, "
    "updated_at, attributes, vector) SELECT collection_id, %(id)s, %(title)s, %(body)s, %(source)s, %(url)s, "
    "CAST(%(published_at)s AS timestamptz), CAST(%(created_at)s AS timestamptz), CAST(%(updated_at)s AS timestamptz), "
    "CAST(%(attributes)s AS jsonb), CAST(%(vector)s AS real[]) FROM nearsim.collection WHERE name = 'default'"
)
MOMENTS = (
    *(
        "infinity",
        "-infinity",
        "0044-03-15 00:00:00+00 BC",
        "0001-01-01 00:00:00+00",
        "0001-01-01 00:00:00+01",
    ),
    *("9999-12-31 23:59:59.999999+00", "9999-12-31 23:59:59-01", "10000-01-01 00:00:00+00"),
    *("294276-12-31 00:00:00+00", "2026-03-29 02:30:00.000001+01"),
)
OF_PYTHON = {"0001-01-01 00:00:00+00", "9999-12-31 23:59:59.999999+00", "2026-03-29 02:30:00.000001+01"}
SHOWN = {
    "0001-01-01 00:00:00+01": "0001-12-31 23:00:00+00 BC",
    "9999-12-31 23:59:59-01": "10000-01-01 00:59:59+00",
}
# jsonb keeps all digits of a number.
NUMBERS = (
    *(
        "1e1000",
        "-1e1000",
        "1e-400",
        "1.5e400",
        "7" * 5000,
        "18446744073709551616",
        "-9223372036854775809",
        "1.10",
    ),
    *("0.1", "12345678901234567890.12345678901234567890", "0.30000000000000004", "1e131000", "-0.0"),
)
DEEPEST = 100
VECTORS = (
    *(
        "{NaN,1}",
        "{Infinity,-Infinity}",
        "{NULL,1}",
        "{}",
        "{{1,2},{3,4}}",
        "[0:1]={1,2}",
        "{1e38,1e-45}",
        None,
    ),
)
TEXTS = st.text(st.characters(blacklist_categories=["Cs"], blacklist_characters="\0"), max_size=20)
JSON = st.recursive(
    st.sampled_from(NUMBERS)
    | TEXTS.map(json.dumps)
    | st.sampled_from(["null", "true", '"\\u202e"', '"NaN"']),
    lambda inner: (
        st.lists(inner, max_size=3).map(lambda values: f"[{', '.join(values)}]")
        | st.dictionaries(TEXTS, inner, max_size=3).map(
            lambda values: "{" + ", ".join(f"{json.dumps(name)}: {one}" for name, one in values.items()) + "}"
        )
    ),
    max_leaves=6,
)


def nested(levels: int, opening: str, closing: str) -> str:
    """JSON of so many levels."""
    return opening * levels + "1" + closing * levels


DEEP = st.sampled_from([99, 100, 101, 102, 254, 255, 1_000, 3_000]).flatmap(
    lambda levels: st.sampled_from([nested(levels, "[", "]"), nested(levels, '{"a":', "}")])
)


@dataclass(frozen=True)
class Row:
    """A document as SQL writes it."""

    title: str | None
    source: str | None
    url: str | None
    published_at: str | None
    created_at: str
    updated_at: str
    attributes: str
    vector: str | None

    def is_admitted(self) -> bool:
        """Whether programs can read it."""
        levels = max(self.attributes.count("["), self.attributes.count('{"a":'))
        return levels <= DEEPEST


MOMENT = st.sampled_from(sorted(OF_PYTHON)) | st.sampled_from(MOMENTS)
ROWS = st.builds(
    Row,
    st.none() | TEXTS,
    st.none() | TEXTS,
    st.none() | TEXTS,
    st.none() | MOMENT,
    MOMENT,
    MOMENT,
    JSON | JSON | DEEP,
    st.sampled_from(VECTORS),
)

FIRST, LAST = "0001-01-01 00:00:00+00", "294276-12-31 00:00:00+00"
# Their distance exceeds an interval.
FARTHEST = [Row(None, None, None, moment, FIRST, FIRST, "{}", None) for moment in (FIRST, LAST)]


def exact(value: object) -> object:
    """A JSON value with its numbers as decimals."""
    match value:
        case bool() | None | str():
            return value
        case dict():
            return {name: exact(one) for name, one in value.items()}
        case list():
            return [exact(one) for one in value]
        case float():
            return Decimal(repr(value))
        case _:
            return Decimal(str(value))


def parsed(text: str) -> Any:
    """JSON with its numbers as decimals."""
    return json.loads(text, parse_int=Decimal, parse_float=Decimal)


def write(app: Application, rows: list[Row]) -> dict[str, Row]:
    """Insert the rows; return those that were admitted, and assert that they are the readable ones."""
    admitted = {}
    for number, row in enumerate(rows):
        id = f"{number} %s"
        try:
            app.execute(INSERT, {**row.__dict__, "id": id, "body": f"{STORM} {number % 3}"})
            admitted[id] = row
        except psycopg.errors.CheckViolation as error:
            assert error.diag.constraint_name == "document_attributes_at_most_100_levels"
        assert (id in admitted) == row.is_admitted(), row
    return admitted


def assert_shown(shown: Mapping[str, Any], row: Row, attributes: str) -> None:
    """Assert that a document is shown as it is stored."""
    assert [shown["title"], shown["source"], shown["url"]] == [row.title, row.source, row.url]
    assert exact(shown["attributes"]) == parsed(attributes)
    for name in ("published_at", "created_at", "updated_at"):
        stored, found = getattr(row, name), shown[name]
        assert (stored is None) == (found is None)
        if stored is not None and stored in OF_PYTHON:
            moment = found if isinstance(found, datetime) else datetime.fromisoformat(found)
            assert moment == datetime.fromisoformat(str(stored)).astimezone(UTC)
        elif stored is not None:
            assert found == SHOWN.get(stored, stored)


def read_back(nearsim: CommandLine, url: str, admitted: Mapping[str, Row], folder: Path) -> None:
    """Read the documents by every command and by the Python API."""
    nearsim.succeed("worker", "--once", "--quiet")
    with application(url) as app, Index.connect(url) as index:
        for id, row in admitted.items():
            (attributes,) = app.execute(
                "SELECT CAST(attributes AS text) FROM nearsim.document WHERE external_id = %s", (id,)
            ).fetchone() or ("",)
            assert_shown(parsed(nearsim.succeed("document", "get", id).out), row, str(attributes))
            assert_shown(index.get(id), row, str(attributes))
        one = next(iter(admitted), None)
        assert one is None or nearsim.succeed("document", "get", one, "--format", "table").out
        known = {match.external_id for match in index.similar(one)} if one else set()
    given = write_jsonl(folder / "given.jsonl", [{"id": "given", "text": STORM}])
    queries = [("pairs",), ("clusters",), ("check", given), *([("similar", one)] if one else [])]
    for query in queries:
        for format in ("jsonl", "csv", "table"):
            printed = nearsim.succeed(*query, "--format", format).out
            if query[0] == "similar" and format == "jsonl":
                assert {json.loads(line)["id"] for line in printed.split("\n") if line} == known
    nearsim.succeed("report", "--output", folder / "report.html")
    for command in (
        ("report", "--json"),
        ("stats", "--json"),
        ("verify-index", "--all"),
        ("events", "--format", "csv"),
    ):
        nearsim.succeed(*command)
    nearsim.succeed("collection", "list", "--json")
    if admitted:
        nearsim.succeed("document", "purge", *admitted, "--yes")


@pytest.mark.slow("many commands for each example")
def test_what_sql_stores_is_read_back(server: Server, tmp_path: Path) -> None:
    with server.database() as url, application(url) as app:
        nearsim = CommandLine({"NEARSIM_DATABASE_URL": url, "NEARSIM_HOME": str(tmp_path / "home")})
        nearsim.succeed("profile", "create", "default", "--set", "match.threshold=0.5")
        app.execute("SET TimeZone = 'UTC'")

        @example([FARTHEST[0], FARTHEST[1], FARTHEST[1]])
        @given(st.lists(ROWS, min_size=3, max_size=6))
        @settings(max_examples=8, suppress_health_check=list(HealthCheck))
        def trial(rows: list[Row]) -> None:
            app.execute("DELETE FROM nearsim.document")
            read_back(nearsim, url, write(app, rows), tmp_path)

        trial()


@pytest.mark.slow("every query")
def test_numbers_beyond_json_are_shown(server: Server, tmp_path: Path) -> None:
    with server.database() as url, application(url) as app:
        nearsim = CommandLine({"NEARSIM_DATABASE_URL": url, "NEARSIM_HOME": str(tmp_path / "home")})
        nearsim.succeed("collection", "create", "default")
        values = {"title": None, "body": STORM, "source": None, "url": None, "published_at": None}
        values |= dict.fromkeys(("created_at", "updated_at"), "2026-03-01")
        for id, number in enumerate(NUMBERS):
            attributes = f'{{"n": {number}}}'
            app.execute(
                INSERT, {**values, "id": str(id), "attributes": attributes, "vector": "{NaN,-Infinity,2}"}
            )
            shown = parsed(nearsim.succeed("document", "get", str(id)).out)
            assert shown["attributes"] == {"n": Decimal(number)}
            assert shown["vector"] == ["NaN", "-Infinity", Decimal(2)]
            with Index.connect(url) as index:
                found = index.get(str(id))
            assert exact(found["attributes"]) == {"n": Decimal(number)}
            assert math.isnan(found["vector"][0])
            assert nearsim.succeed("document", "get", str(id), "--format", "table").out
