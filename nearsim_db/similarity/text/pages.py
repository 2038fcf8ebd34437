"""The text of a web page that is compared: all that a browser shows, or only its article.

The article, without menus, footers and other frames, is found by trafilatura. On the public benchmark of article
extraction, 181 pages, it had the best F1 of three libraries: docs/reference/presets/web-pages.md.
"""

import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from functools import cache
from typing import Literal

from nearsim_db.errors import RecipeError
from nearsim_db.similarity.text.markup import strip_html

# The first tag of a page, or of a part of one. Text without such a tag is no page, whatever "<" it contains.
_BEGIN = re.compile(
    r"<(?:!doctype|html|head|body|main|article|section|div|p|table|ul|ol|h[1-6])(?=[ \t\n\f\r/>])",
    re.IGNORECASE,
)
# The time to parse a tag grows with the square of its attributes; 150,000 of them in one tag took more than a minute.
_MAX_ATTRIBUTES = 1_000
_TAG = re.compile(r"<[A-Za-z](?:[^<>\"']|\"[^\"]*+\"|'[^']*+')*+", re.DOTALL)
_QUOTED = re.compile(r"\"[^\"]*+\"|'[^']*+'")


def page_reader(html: bool | Literal["main"]) -> Callable[[str], str]:
    """Return a function from a page to its text, by the value of `normalise.html`.

    Raises RecipeError if trafilatura is needed and not installed.
    """
    return _article_reader() if html == "main" else strip_html


@cache
def _article_reader() -> Callable[[str], str]:
    try:
        import trafilatura
    except ImportError as error:
        raise RecipeError(
            "normalise.html = main requires the package trafilatura; pip install 'nearsim-db[web]'"
        ) from error

    def read_article(page: str) -> str:
        begin = _BEGIN.search(page)
        if begin is None or any(count > _MAX_ATTRIBUTES for count in _attribute_counts(page)):
            return strip_html(page)
        article = trafilatura.extract(page[begin.start() :], fast=True, include_comments=False)
        # Text before the page is the title of the document, which is compared with its body.
        return f"{strip_html(page[: begin.start()])}\n{article}" if article else strip_html(page)

    return read_article


def _attribute_counts(page: str) -> Iterator[int]:
    """Yield about how many attributes each long tag of a page has."""
    for tag in _TAG.finditer(page):
        if len(tag[0]) > 2 * _MAX_ATTRIBUTES:
            yield len(_QUOTED.sub("", tag[0]).replace("/", " ").split())


def shown_text(
    values: Mapping[str, str | None], fields: Iterable[str], *, html: bool | Literal["main"]
) -> str:
    """Return the fields of a document that are compared, an empty line between them, pages as they are read."""
    content = "\n\n".join(value for field in fields if (value := values[field]))
    return page_reader(html)(content) if html else content
