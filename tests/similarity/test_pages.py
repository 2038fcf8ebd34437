"""The article of a page, without the frame that pages of a site share."""

import sys

import pytest

from nearsim_db.errors import RecipeError
from nearsim_db.similarity.encoder import Encoder
from nearsim_db.similarity.profile import resolve
from nearsim_db.similarity.recipe import Recipe, override
from nearsim_db.similarity.text import pages
from nearsim_db.similarity.text.pages import page_reader, shown_text
from tests.builders.cpu_time import cpu_seconds

MENU = "".join(f"<li><a href='/{name}'>{name}</a></li>" for name in ("home", "news", "sport", "weather") * 8)
FERRY = (
    "The ferry to the island was closed for a day because of the storm, the harbour master said on Monday. "
    * 4
)
PEARS = (
    "Pears are late this year after a cold spring, and growers expect half of the usual harvest by autumn. "
    * 4
)


def page_of(story: str) -> str:
    return (
        f"<html><head><title>Site</title></head><body><nav><ul>{MENU}</ul></nav>"
        f"<article><h1>Story</h1><p>{story}</p></article>"
        f"<footer><p>All rights reserved, {MENU}</p></footer></body></html>"
    )


read = page_reader("main")


def test_the_article_has_no_menu_and_no_footer() -> None:
    article = read(page_of(FERRY))
    assert FERRY.strip() in article
    assert "weather" not in article and "rights reserved" not in article


def test_a_title_before_the_page_is_kept() -> None:
    assert read(f"Ferry &amp; storm\n{page_of(FERRY)}").startswith("Ferry & storm")


@pytest.mark.parametrize("text", ["no markup", "a < b and c > d", "x &lt; y", "<b>bold</b> words"])
def test_what_is_no_page_is_read_whole(text: str) -> None:
    assert read(text) == page_reader(True)(text)


def test_a_page_without_an_article_is_read_whole() -> None:
    page = "<body><p></p><form><input name=a></form></body>"
    assert read(page) == page_reader(True)(page)


def test_tags_with_thousands_of_attributes_cost_linear_time() -> None:
    attributes = " ".join(f"a{number}=1" for number in range(100_000))
    page = f"<html><body><p {attributes}>{FERRY}</p></body></html>"
    assert FERRY.strip() in read(page)
    assert cpu_seconds(lambda: read(page)) < 5


def test_pages_of_one_frame_are_alike_only_by_all_of_their_text() -> None:
    similarities = {}
    for html in ("true", "main"):
        encoder = Encoder(resolve(override(Recipe(), [f"normalise.html={html}"])), "numpy")
        batch = encoder.features([page_of(FERRY), page_of(PEARS)])
        left, right = (set(batch.of(row).tolist()) for row in range(2))
        similarities[html] = len(left & right) / len(left | right)
    assert similarities["main"] < 0.05 < 0.1 < similarities["true"]


def test_the_text_shown_to_people_is_the_one_compared() -> None:
    values = {"title": "Ferry", "body": page_of(FERRY)}
    shown = shown_text(values, ["title", "body"], html="main")
    assert shown.startswith("Ferry") and "weather" not in shown


def test_a_missing_library_is_named_with_the_extra(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "trafilatura", None)
    pages._article_reader.cache_clear()
    with pytest.raises(RecipeError, match="nearsim-db\\[web\\]"):
        page_reader("main")


def test_another_value_is_refused_with_the_choices() -> None:
    with pytest.raises(RecipeError, match="choose false or true or main"):
        override(Recipe(), ["normalise.html=article"])
