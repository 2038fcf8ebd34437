"""nearsim reindex diff, and promotion within limits."""

import json
from pathlib import Path

import pytest

from tests.builders.command_line import STORM, CommandLine, write_jsonl
from tests.builders.report_pages import ATTACK, Elements

EDITED = STORM.replace("Monday", "Tuesday")


@pytest.fixture
def ready(nearsim: CommandLine, tmp_path: Path) -> CommandLine:
    """Two editions of a text, a twin of the first unless case matters, and one without words."""
    texts = {
        "storm": STORM,
        "edited": EDITED,
        "upper": STORM.upper(),
        "<b>bare": f"{STORM} {ATTACK}",
        "none": "!",
    }
    records = ({"id": name, "title": ATTACK, "text": text} for name, text in texts.items())
    nearsim.succeed(
        "profile", "create", "default", "--set", 'fields=["body"]', "--set", "match.threshold=0.5"
    )
    nearsim.succeed("ingest", write_jsonl(tmp_path / "given.jsonl", records), "-q")
    nearsim.succeed("reindex", "start", "--set", "normalise.case=none", "-q")
    return nearsim


@pytest.mark.slow("several builds")
def test_exceeded_limits_prevent_promotion(ready: CommandLine, tmp_path: Path) -> None:
    page = tmp_path / "diff.html"
    found = ready.succeed("reindex", "diff", "--json", "--output", page).document()
    assert found["recipe"] == {"normalise.case": ["casefold", "none"]}
    documents = ("documents", "with_features", "without_features", "heads")
    assert [found["documents"]["new"][name] for name in documents] == [5, 4, 1, 4]
    pairs, clusters = found["pairs"], found["clusters"]
    assert (pairs["live"], pairs["new"], pairs["lost"], pairs["gained"]) == (6, 3, 3, 0)
    assert pairs["lost_share"] == 0.5
    assert (clusters["live"], clusters["new"], clusters["shrunk"]) == (1, 1, 1)
    assert found["waiting"] == dict.fromkeys(("live", "new", "live_set_aside", "new_set_aside", "changes"), 0)
    ids = {frozenset((one["left"]["id"], one["right"]["id"])) for one in found["samples"]["lost"]}
    assert frozenset(("storm", "upper")) in ids and all("upper" in pair for pair in ids)
    twins = next(one for one in found["samples"]["lost"] if one["live"]["twins"])
    assert twins["why"].startswith("before: identical features; now: similarity 0.0000 is below")
    assert (twins["new"]["pair"], twins["new"]["twins"], twins["new"]["similarity"]) == (False, False, 0.0)
    assert twins["left"]["text"] == STORM
    shown = Elements(page.read_text())
    assert ATTACK in shown.text and "<b>bare" in shown.text
    assert [tag for tag, _ in shown.found].count("script") == 2
    assert "img" not in {tag for tag, _ in shown.found}

    reported = ready.run("reindex", "diff", "--max-lost", "49.9%", "--max-gained", "300%")
    assert reported.exit_code == 3
    rows = [line.split() for line in reported.out.splitlines()]
    assert ["lost", "49.9%", "3", "(50", "%)", "exceeded"] in rows
    assert ["gained", "300%", "0", "(0", "%)", "kept"] in rows
    assert "3 of 6" in ready.fail("reindex", "promote", "--max-lost", "2", exit_code=3)
    counted = ready.run("reindex", "promote", "--max-lost", "2", "--max-gained", "0", "--json")
    assert counted.exit_code == 3
    lost = {"limit": "lost", "allowed": "2", "found": 3, "live": 6, "found_share": 0.5, "exceeded": True}
    gained = {"limit": "gained", "allowed": "0", "found": 0, "live": 6, "found_share": 0.0, "exceeded": False}
    assert (counted.document()["promoted"], counted.document()["limits"]) == (False, [lost, gained])
    states = {one["state"] for one in json.loads(ready.succeed("reindex", "status", "--json").out)}
    assert states == {"live", "ready"}
    promoted = ready.succeed("reindex", "promote", "--max-lost", "50%", "--max-rescored", 0, "--json")
    assert (promoted.document()["live"], promoted.document()["retired"]) == (2, 1)
    back = ready.succeed("reindex", "diff", "--generation", 1, "--json", "--samples", 0).document()
    assert (back["new"]["state"], back["pairs"]["gained"], back["samples"]["gained"]) == ("retired", 3, [])
    assert "is the live one" in ready.fail("reindex", "diff", "--generation", 2)
