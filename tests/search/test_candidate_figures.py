"""Linked pairs and candidates per document, against counts over all pairs of distinct texts."""

from collections.abc import Iterable
from itertools import combinations

import pytest

from nearsim_db import Index
from nearsim_db.admin.verify_index import verify_index
from nearsim_db.cli.output import summaries
from tests.builders.sql_world import RULES, World, fill, filled, write_documents
from tests.servers.databases import Server

FREE = [rule for rule in RULES if not rule.startswith(("match.min", "bands."))]


def distinct_texts(known: World) -> list[int]:
    """The first document of each set of features."""
    first: dict[frozenset[int], int] = {}
    for doc_id in known.doc_ids:
        first.setdefault(frozenset(known.features[doc_id]), doc_id)
    return [doc_id for features, doc_id in first.items() if features]


def check(known: World, heads: Iterable[int]) -> None:
    """No bucket exceeds its limit, so that pairs with a shared band are linked."""
    heads = list(heads)
    pairs = list(combinations(heads, 2))
    linked = sum(known.shared(*pair) > 0 for pair in pairs)
    candidates = sum(known.meets(*pair) for pair in pairs)
    assert linked > candidates > 0 and len(heads) < len(known.doc_ids)
    found = known.index.stats()
    assert found["linked_pairs_per_document"] == pytest.approx(linked / len(heads), abs=0.005)
    assert found["candidates_per_document"] == pytest.approx(candidates / len(heads), abs=0.005)
    # The sample is the whole collection.
    assert found["expected_candidates_per_document"] == pytest.approx(candidates / len(heads), abs=0.005)
    checked = verify_index(known.index.database, sample=None).found.checked
    assert checked["candidates"] == candidates
    ((recorded,),) = known.ask("SELECT figures FROM nearsim.live_generations WHERE profile = 'default'")
    assert (recorded["linked"], recorded["candidates"]) == (linked, candidates)


@pytest.mark.slow("several builds")
def test_candidates_share_the_least_number_of_bands(server: Server) -> None:
    with server.database(fill) as url, filled(url) as known:
        check(known, distinct_texts(known))


@pytest.mark.slow("several builds")
def test_candidates_satisfy_an_amplification(database_url: str) -> None:
    with Index.connect(database_url) as index:
        rules = [*FREE, "match.amplification=and(2, or(20, and(3)))"]
        known = World.build(index, rules, write_documents(1))
        check(known, distinct_texts(known))


def test_table_shows_both_figures_if_they_differ(server: Server, capsys: pytest.CaptureFixture[str]) -> None:
    with server.database(fill) as url, filled(url) as known:
        stats = known.index.stats()
    summaries.print_profiles([stats])
    table = capsys.readouterr().out.split("\n\n")[-1].split("\nhint:")[0]
    heading, _, line = table.splitlines()
    assert heading.split("   ")[-2:] == ["linked pairs per document", "candidates per document"]
    figures = stats["linked_pairs_per_document"], stats["candidates_per_document"]
    assert line.split()[-2:] == [f"{figure:.2f}" for figure in figures]
    summaries.print_profiles([stats | {"linked_pairs_per_document": figures[1]}])
    assert "linked" not in capsys.readouterr().out
