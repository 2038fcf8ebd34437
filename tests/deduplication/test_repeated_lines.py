"""Lines that recur on the pages of a source are not compared: menus, footers, but no paragraphs of copied stories."""

import random
from collections import Counter, defaultdict
from collections.abc import Iterator, Sequence

import pytest

import nearsim_db
from nearsim_db import Index, RecipeError
from nearsim_db.similarity.profile import resolve
from nearsim_db.similarity.recipe import Recipe, override
from nearsim_db.similarity.text.pages import page_reader
from nearsim_db.similarity.text.repeated_lines import (
    ENOUGH_PAGES,
    MIN_OWN_WORDS,
    MIN_PAGES,
    MIN_SHARE,
    Page,
    RepeatedLines,
)
from tests.builders.pages import MENU, page, site, words

BY_SITE = ["normalise.html=true", "normalise.drop_repeated=site"]


def removed(rows: Sequence[dict[str, str]], *settings: str, exact: bool = False) -> set[str]:
    recipe = override(Recipe(), [*BY_SITE, *settings])
    found = nearsim_db.dedupe(rows, recipe=recipe, exact=exact)
    return {rows[row.row]["id"] for row in found.removed}


def test_pages_with_one_menu_are_not_alike() -> None:
    rows = site(10)
    assert len(removed(rows, "normalise.drop_repeated=none", "match.threshold=0.5")) == 9
    assert removed(rows, "match.threshold=0.1") == set()


def test_copies_of_a_story_under_another_menu_are_found() -> None:
    copy = {"id": "copy", "site": "gazette", "text": page(words("courier3story", 60), menu="<li>home</li>")}
    assert removed([*site(10), copy, *site(5, "gazette")], "match.threshold=0.9") == {"copy"}


def test_a_story_with_a_few_changed_copies_on_its_site_is_found() -> None:
    paragraphs = [words(f"paragraph{at}x", 30) for at in range(4)]
    copies = [
        {"id": f"copy-{at}", "site": "courier", "text": page(*paragraphs, f"Updated at {at} in the evening")}
        for at in range(4)
    ]
    assert removed([*site(10), *copies]) == {"copy-1", "copy-2", "copy-3"}


def test_a_line_of_two_sites_recurs_on_one_only_if_enough_of_its_pages_have_it() -> None:
    line = words("declaration", 60)
    rows = [{"id": "own", "site": "agency", "text": page(line)}, *site(3, "agency")]
    rows += [
        {"id": f"quoting-{at}", "site": "courier", "text": page(line, words(f"own{at}text", 30))}
        for at in range(5)
    ]
    assert removed(rows, "match.threshold=0.3") == set()
    texts = {
        row["id"]: left
        for row, left in zip(rows, left_of([(row["site"], lines(row)) for row in rows]), strict=True)
    }
    assert line in texts["own"] and all(line not in texts[f"quoting-{at}"] for at in range(5))


def lines(row: dict[str, str]) -> str:
    return page_reader(True, in_lines=True)(row["text"])


def left_of(texts: Sequence[tuple[str, str]]) -> list[str]:
    pages = [Page(source.encode(), text) for source, text in texts]
    repeated = RepeatedLines(lambda: pages)
    return [repeated.without(one) for one in pages]


def expected_of(texts: Sequence[tuple[str, str]]) -> Iterator[str]:
    """The same by the definition, in plain Python."""
    distinct = dict.fromkeys((source, tuple(text.split("\n"))) for source, text in texts)
    pages: Counter[str] = Counter(source for source, _ in distinct)
    having: Counter[tuple[str, str]] = Counter(
        (source, line) for source, own in distinct for line in set(own)
    )
    differing: dict[tuple[str, str], int] = defaultdict(int)
    for source, own in distinct:
        for line in set(own):
            rarer = [other for other in own if having[source, other] <= having[source, line] // 2]
            differing[source, line] += sum(len(other.split()) for other in rarer) >= MIN_OWN_WORDS
    for source, text in texts:
        least = max(MIN_PAGES, min(ENOUGH_PAGES, MIN_SHARE * pages[source]))
        yield "\n".join(line for line in text.split("\n") if differing[source, line] < least)


def test_a_line_of_a_section_recurs_on_a_large_site() -> None:
    texts = [
        ("site", f"{'section' if at % 12 == 0 else 'other'} line\n{words(f'own{at}x', 25)}")
        for at in range(720)
    ]
    assert all("section" not in text for text in left_of(texts))


@pytest.mark.parametrize("seed", range(20))
def test_lines_that_recur_are_those_of_the_definition(seed: int) -> None:
    chance = random.Random(seed)
    frame = [words(f"frame{at}", chance.randrange(1, 30)) for at in range(6)]
    texts = []
    for at in range(chance.randrange(1, 60)):
        own = [words(f"own{chance.randrange(40)}x{line}", chance.randrange(1, 15)) for line in range(4)]
        chosen = [line for line in frame if chance.random() < 0.3] + own[: chance.randrange(5)]
        texts.append((chance.choice("ab"), "\n".join(chosen or [f"line {at}"])))
    texts += chance.sample(texts, len(texts) // 4)
    assert left_of(texts) == list(expected_of(texts))


def test_blocks_of_a_page_are_lines_and_its_line_ends_are_not() -> None:
    read = page_reader(True, in_lines=True)
    assert read("Title\n<p>one\ntwo <b>three</b></p><ul><li>four<li>five</ul>") == (
        "Title\n\none two three\nfour\nfive"
    )
    assert read("plain & simple\nof two lines") == "plain & simple\nof two lines"


def test_equal_texts_are_found_without_their_menus() -> None:
    rows = site(6)
    again = {"id": "again", "site": "courier", "text": rows[2]["text"].replace(MENU, "<li>section 3</li>")}
    assert removed([*rows, again], exact=True) == {"again"}


def test_no_profile_can_have_its_repeated_lines_left_out(database_url: str) -> None:
    recipe = override(Recipe(), ["normalise.drop_repeated=source"])
    with Index.connect(database_url) as index, pytest.raises(RecipeError, match="only nearsim dedupe"):
        index.create_profile("default", recipe)


@pytest.mark.parametrize(
    "settings", [["normalise.drop_repeated= "], ["shingle.tokens=code", "shingle.language=c"]]
)
def test_fields_without_a_name_and_source_code_are_refused(settings: list[str]) -> None:
    with pytest.raises(RecipeError, match="drop_repeated"):
        override(Recipe(), ["normalise.drop_repeated=source", *settings])


def test_recipes_without_the_key_keep_their_fingerprint() -> None:
    explicit = override(Recipe(), ["normalise.drop_repeated=none"])
    other = override(Recipe(), ["normalise.drop_repeated=source"])
    assert resolve(explicit).fingerprint == resolve(Recipe()).fingerprint != resolve(other).fingerprint
