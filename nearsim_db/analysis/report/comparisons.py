"""Selection of the pairs that a report shows side by side."""

from collections.abc import Iterator, Sequence

from nearsim_db.analysis.report.contents import Comparison, Side, Why
from nearsim_db.analysis.text_diff import compare
from nearsim_db.similarity.recipe import Recipe
from nearsim_db.similarity.text.markup import strip_html
from nearsim_db.store import reports
from nearsim_db.store.driver import Connection
from nearsim_db.store.generation_rows import Generation
from nearsim_db.store.reports import ReadText, ReportPair

READ_CHARACTERS = 100_000
_CANDIDATES_PER_PAIR = 8

_Choice = tuple[Why, ReportPair]


def read(
    connection: Connection, generation: Generation, least: float, recipe: Recipe, amount: int
) -> list[Comparison]:
    """Read up to `amount` pairs with their differences, a third of each kind, preferably of different clusters.

    The kinds are the least similar pairs, pairs whose numbers differ, and a sample over the similarity range. Pairs of
    deleted documents are omitted.
    """
    if not amount:
        return []
    leaves = generation.leaves
    third, wide = -(-amount // 3), amount * _CANDIDATES_PER_PAIR
    chosen: list[_Choice] = []
    _choose(chosen, "numbers differ", reports.read_renumbered_pairs(connection, leaves, wide), third)
    _choose(chosen, "least similar", reports.read_lowest_pairs(connection, leaves, wide), third)
    left = amount - len(chosen)
    spread = reports.read_spread_pairs(connection, leaves, min(least, 0.99), max(left, 1))
    _choose(chosen, "sample", spread, left)
    doc_ids = sorted({doc_id for _, pair in chosen for doc_id in (pair.left_id, pair.right_id)})
    texts = reports.read_texts(connection, leaves, generation.collection_id, doc_ids, READ_CHARACTERS)
    return list(_compared(chosen, texts, recipe))


def _choose(chosen: list[_Choice], why: Why, candidates: Sequence[ReportPair], amount: int) -> None:
    """Append up to `amount` candidates in their order, preferring clusters not chosen yet."""
    taken = {(pair.left_id, pair.right_id) for _, pair in chosen}
    clusters = {pair.cluster_id for kind, pair in chosen if kind == why}
    fresh = [pair for pair in candidates if (pair.left_id, pair.right_id) not in taken]
    first: list[ReportPair] = []
    later: list[ReportPair] = []
    for pair in fresh:
        (later if pair.cluster_id in clusters else first).append(pair)
        clusters.add(pair.cluster_id)
    kept = {id(pair) for pair in (first + later)[: max(amount, 0)]}
    chosen.extend((why, pair) for pair in fresh if id(pair) in kept)


def _compared(chosen: Sequence[_Choice], texts: dict[int, ReadText], recipe: Recipe) -> Iterator[Comparison]:
    for why, pair in chosen:
        left, right = texts.get(pair.left_id), texts.get(pair.right_id)
        if left is None or right is None:
            continue
        yield Comparison(
            **pair.figures(),
            why=why,
            left=_side(left),
            right=_side(right),
            numbers_differ=pair.numbers_differ,
            diff=compare(_content(left, recipe), _content(right, recipe)),
        )


def _content(text: ReadText, recipe: Recipe) -> str:
    """Return the fields that the profile compares, with HTML stripped if the recipe says so."""
    values = {"title": text.title, "body": text.body}
    content = "\n\n".join(value for field in recipe.fields if (value := values[field]))
    return strip_html(content) if recipe.normalise.html else content


def _side(text: ReadText) -> Side:
    return Side(
        text.external_id,
        text.title,
        text.source,
        text.date,
        text.body is not None,
        (text.characters or 0) > READ_CHARACTERS,
        text.stale,
    )
