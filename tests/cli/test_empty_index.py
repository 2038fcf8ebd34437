"""Commands on an index without documents: they answer with nothing."""

from pathlib import Path

import pytest

from tests.builders.command_line import HARVEST, CommandLine, write_jsonl
from tests.builders.selection import some

# Each with what it prints.
QUERIES = {
    "pairs --format jsonl --min-similarity 0.1": "",
    "clusters --json": "[]\n",
    "similar --text words --json": "[]\n",
    "check --text words --format csv --exit-code": None,
    "export --format jsonl": "",
    "events --format jsonl": "",
    "verdict list --format jsonl": "",
    "stats --json": None,
    "doctor": None,
    "verify-index": "",
    "worker --once": None,
}


PROFILED = [
    *("pairs", "clusters", "clusters --show x", "similar x", "similar --text words", "check --text words"),
    *(
        "export --format jsonl",
        "stats",
        "verify-index",
        "events",
        "report --json",
        "why a b",
        "reindex status",
    ),
]


@pytest.mark.parametrize("prepared", some(["profile create default", None], "either way"))
def test_queries_of_an_empty_index_answer_with_nothing(
    nearsim: CommandLine, tmp_path: Path, prepared: str | None
) -> None:
    if prepared is not None:
        nearsim.succeed(*prepared.split())
        nearsim.succeed("report", "-p", "default", "--output", tmp_path / "report.html")
    for query, printed in QUERIES.items():
        outcome = nearsim.succeed(*query.split())
        assert printed is None or outcome.out == printed, query
    stats = nearsim.succeed("stats", "--json").document()
    assert (stats["documents"], stats["recipe"]["match"]["threshold"]) == (0, 0.7)
    assert "has no document 'x'" in nearsim.fail("similar", "x")
    for command in ("pairs", "clusters", "stats", "export --format jsonl", "verify-index"):
        assert "'typo' does not exist" in nearsim.fail(*command.split(), "-c", "typo")
    unknown = "collection 'default' does not exist" if prepared is None else "has no profile 'typo'"
    for command in PROFILED:
        assert unknown in nearsim.fail(*command.split(), "-p", "typo"), command
    file = write_jsonl(tmp_path / "one.jsonl", [{"id": "a", "text": HARVEST}])
    (checked,) = nearsim.succeed("check", file, "--format", "jsonl").rows()
    assert (checked["id"], checked["duplicate"], checked["matches"]) == ("a", False, [])
