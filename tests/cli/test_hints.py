"""Hints of what an index found that suggests another recipe, in statistics and summaries."""

import json
import random
from pathlib import Path

from nearsim_db import Document, Index, presets
from nearsim_db.search.statistics import Hint
from nearsim_db.similarity.recipe import override
from tests.builders.command_line import CommandLine

DRAW = random.Random(3)


def text(words: int) -> str:
    return " ".join(DRAW.choice("abcdefghijklmnop") + str(DRAW.random()) for _ in range(words))


def hints(index: Index) -> list[Hint]:
    found: list[Hint] = index.stats()["hints"]
    return found


def test_an_index_that_finds_almost_nothing_names_a_preset(nearsim: CommandLine, database_url: str) -> None:
    for words, preset in ((8, "records"), (100, "reworded")):
        with Index.connect(database_url, collection=preset) as index:
            index.add(Document(str(number), None, text(words)) for number in range(99))
            assert hints(index) == []
            index.add([Document("99", None, text(words))])
            (hint,) = hints(index)
            assert (hint["kind"], hint["preset"]) == ("few-pairs", preset)
            assert hint["message"].startswith("only 0 near-duplicates among 100 documents")
    assert f"hint: profile default: {hint['message']}" in nearsim.succeed("stats", "-c", "reworded").out
    (profile,) = nearsim.succeed("build", "-c", "reworded", "--json").document()["profiles"]
    assert profile["hints"] == [hint]


def test_pairs_within_one_source_only(database_url: str) -> None:
    with Index.connect(database_url) as index:
        for number in range(25):
            own, source = text(30), "AB"[number % 2]
            index.add(Document(f"{number}-{copy}", None, own + " more" * copy, source) for copy in range(2))
        (hint,) = hints(index)
        assert (hint["kind"], hint["preset"]) == ("within-source", "records")
        assert "all 25 pairs looked at" in hint["message"] and "there are 2" in hint["message"]
        index.add([Document("across", None, own + " more more more", "another")])
        assert hints(index) == []


def test_numbers_that_keep_most_pairs_apart(nearsim: CommandLine, database_url: str, tmp_path: Path) -> None:
    titles = [f"storm closes ferry harbour road {number // 2} day" for number in range(6)]
    recipe = override(presets.load("headlines"), ['fields=["body"]'])
    with Index.connect(database_url) as index:
        index.create_profile("default", recipe)
        index.add((str(number), title) for number, title in enumerate(titles))
        (hint,) = hints(index)
        assert hint["kind"] == "numbers-apart" and len(list(index.clusters())) == 3
        assert "keep-apart leaves 3 of 3 pairs out of clusters" in hint["message"]
    file = tmp_path / "titles.jsonl"
    file.write_text("".join(json.dumps({"id": title, "text": title}) + "\n" for title in titles))
    command = ("dedupe", str(file), "--dry-run", "--preset", "headlines", "--set", 'fields=["body"]')
    assert hint["message"] in nearsim.succeed(*command).err
    assert "keep-apart" not in nearsim.succeed(*command, "--set", "cluster.numbers_differ=link").err
