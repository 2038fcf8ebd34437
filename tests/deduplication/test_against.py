"""Records that are compared with another corpus, or across the values of a field: what brute force finds."""

import json
import random
from collections.abc import Callable, Sequence
from itertools import combinations
from pathlib import Path
from typing import Any

import networkx
import pytest

from nearsim_db.deduplication import lists
from nearsim_db.deduplication.files import DedupeSummary, dedupe
from nearsim_db.deduplication.output import Outputs
from nearsim_db.readers import Fields, Source
from nearsim_db.similarity.recipe import from_mapping
from tests.builders.command_line import write_jsonl
from tests.builders.selection import some
from tests.builders.word_sets import similarity
from tests.deduplication.test_accounts import THRESHOLD, draw_texts

Record = dict[str, Any]
FIELDS = Fields(ids="optional")


def draw_records(rng: random.Random) -> tuple[list[Record], list[Record]]:
    """An old and a new corpus, which share texts, of four sources; some records have none."""
    texts = [*draw_texts(rng), *draw_texts(rng)]
    texts += rng.choices(texts, k=20)
    rng.shuffle(texts)
    half = len(texts) // 2
    return tuple(
        [{"text": text, "source": rng.choice(["a", "b", "c", None])} for text in part]
        for part in (texts[:half], texts[half:])
    )  # type: ignore[return-value]


def run(
    folder: Path, new: Sequence[Record], old: Sequence[Record] | None, keep: str = "earliest", **more: Any
) -> tuple[DedupeSummary, list[int], list[Record]]:
    """De-duplicate the records; return the counts, the numbers of the kept ones, and the pairs."""
    numbered = [{**one, "n": at} for at, one in enumerate(new)]
    source = Source([write_jsonl(folder / "new.jsonl", numbered)], FIELDS)
    against = [] if old is None else [Source([write_jsonl(folder / "old.jsonl", old)], FIELDS)]
    outputs = Outputs(folder / "unique.jsonl", folder / "pairs.jsonl")
    match = {"threshold": THRESHOLD, "within": more.pop("within", "none")}
    recipe = from_mapping({"match": match, "cluster": {"keep": keep, **more.pop("cluster", {})}})
    summary = dedupe(source, recipe, outputs, against=against, **more)
    kept, pairs = (
        [json.loads(line) for line in path.read_text().splitlines()]
        for path in (folder / "unique.jsonl", folder / "pairs.jsonl")
    )
    return summary, [one["n"] for one in kept], pairs


def ends(pair: Record) -> tuple[tuple[str, int], ...]:
    return tuple(
        (Path(pair[side]["file"]).stem, pair[side]["record"] - 1) for side in ("left_place", "right_place")
    )


def are_pair(one: Record, other: Record, *, rule: str | None) -> bool:
    if similarity(one["text"], other["text"]) < THRESHOLD:
        return False
    is_of_one_source: bool = one["source"] == other["source"]
    return {None: True, "across": not is_of_one_source, "within": is_of_one_source}[rule]


@pytest.mark.parametrize("rule", [None, "across", "within"])
@pytest.mark.parametrize("only_against", [False, True])
@pytest.mark.parametrize("keep", some(["earliest", "highest:n", "longest"], "every keep policy"))
@pytest.mark.parametrize("seed", some(range(5), "every seed"))
def test_what_has_a_match_in_another_corpus_is_removed(
    tmp_path: Path, rule: str | None, only_against: bool, keep: str, seed: int
) -> None:
    old, new = draw_records(random.Random(seed))
    found = {("old", at): one for at, one in enumerate(old)} | {
        ("new", at): one for at, one in enumerate(new)
    }
    rank: dict[str, Callable[[int], Any]] = {
        "earliest": lambda at: at,
        "highest:n": lambda at: -at,
        "longest": lambda at: (-len(new[at]["text"]), at),
    }
    matches: dict[int, set[tuple[str, int]]] = {}
    for at, one in enumerate(new):
        others = {("old", place) for place in range(len(old))}
        if not only_against:
            others |= {("new", place) for place in range(len(new)) if rank[keep](place) < rank[keep](at)}
        matches[at] = {other for other in others if are_pair(one, found[other], rule=rule)}
    rules = {} if rule is None else {rule: "source"}
    summary, kept, pairs = run(tmp_path, new, old, keep, only_against=only_against, **rules)
    assert kept == [at for at in range(len(new)) if not matches[at]] and 0 < len(kept) < len(new)
    assert sorted(map(ends, pairs)) == sorted(
        (one, ("new", at)) for at, both in matches.items() for one in both
    )
    for pair in pairs:
        left, right = ends(pair)
        assert pair["similarity"] == pytest.approx(similarity(found[left]["text"], found[right]["text"]))
    assert summary.pairs == len(pairs) and summary.duplicates == len(new) - len(kept)
    assert (summary.against.read, summary.against.rejected) == (len(old), 0)
    assert summary.against.duplicates == sum(
        any(file == "old" for file, _ in both) for both in matches.values()
    )


@pytest.mark.parametrize("linkage", ["connected", "representative"])
@pytest.mark.parametrize("seed", some(range(5), "every seed"))
def test_clusters_are_made_of_pairs_across(tmp_path: Path, linkage: str, seed: int) -> None:
    records, _ = draw_records(random.Random(seed))
    graph = networkx.Graph()
    graph.add_nodes_from(range(len(records)))
    graph.add_edges_from(
        (one, other)
        for one, other in combinations(range(len(records)), 2)
        if are_pair(records[one], records[other], rule="across")
    )
    summary, kept, pairs = run(tmp_path, records, None, across="source", cluster={"linkage": linkage})
    assert {tuple(at for _, at in ends(one)) for one in pairs} == set(graph.edges)
    assert summary.pairs == len(pairs) == graph.number_of_edges()
    if linkage == "connected":
        assert kept == sorted(min(one) for one in networkx.connected_components(graph))


@pytest.mark.parametrize("across", [None, "source"])
@pytest.mark.parametrize("only_against", [False, True])
@pytest.mark.parametrize("seed", some(range(5), "every seed"))
def test_of_many_copies_each_is_listed_once_for_each_text_that_it_matches(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, across: str | None, only_against: bool, seed: int
) -> None:
    old, new = draw_records(random.Random(seed))
    old, new = old[:20] * 2, new[:20] * 4 + old[:5]
    comparison: dict[str, Any] = {"across": across, "only_against": only_against}
    _, kept, every = run(tmp_path, new, old, **comparison)
    monkeypatch.setattr(lists, "MAX_LISTED_COPIES", 1)
    _, still_kept, listed = run(tmp_path, new, old, **comparison)

    bodies = {("old", at): one["text"] for at, one in enumerate(old)}
    bodies |= {("new", at): one["text"] for at, one in enumerate(new)}
    matches, listed_matches = (
        {(one, bodies[other]) for pair in pairs for one, other in (ends(pair), ends(pair)[::-1])}
        for pairs in (every, listed)
    )
    assert still_kept == kept and listed_matches == matches
    pairs_of_records, listed_pairs = ([frozenset(ends(pair)) for pair in pairs] for pairs in (every, listed))
    assert set(listed_pairs) <= set(pairs_of_records)
    assert len(set(listed_pairs)) == len(listed_pairs) < len(pairs_of_records)


def test_records_of_other_numbers_are_kept_apart_from_another_corpus(tmp_path: Path) -> None:
    text = "port said on monday that it will close its northern terminal for two weeks in march"
    old, new = (
        [{"text": f"{text} 1"}],
        [{"text": f"{text} 2"}, {"text": f"{text}, 1"}, {"text": f"{text} again 2"}],
    )
    _, kept, _ = run(tmp_path, new, old, cluster={"numbers_differ": "keep-apart"})
    assert kept == [0]
    assert run(tmp_path, new, old)[1] == []


def test_the_earlier_record_of_a_pair_is_left(tmp_path: Path) -> None:
    text = "port said on monday that it will close its northern terminal for two weeks in march"
    dates = ["2024-02-01", None, "2024-01-01"]
    new = [{"text": text, "published_at": date} for date in dates]
    for earlier_later, expected in ((False, {(0, 1), (0, 2), (1, 2)}), (True, {(0, 1), (2, 0), (1, 2)})):
        _, _, pairs = run(tmp_path, new, None, earlier_later=earlier_later)
        assert {tuple(at for _, at in ends(one)) for one in pairs} == expected
