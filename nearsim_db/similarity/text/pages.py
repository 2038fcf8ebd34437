"""The part of a web page that is compared: all text that a browser shows, or only the article.

trafilatura extracts the article, without menus, footers and other text around it. It had the best F1 of three libraries
on the public benchmark of article extraction, which has 181 pages: see docs/reference/presets/web-pages.md.
"""

import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from functools import cache
from typing import Literal

from nearsim_db.errors import RecipeError
from nearsim_db.similarity.text.markup import strip_html

# The first tag of a page, or of a part of a page. Text without such a tag is not a page, even if it contains "<".
_BEGIN = re.compile(
    r"<(?:!doctype|html|head|body|main|article|section|div|p|table|ul|ol|h[1-6])(?=[ \t\n\f\r/>])",
    re.IGNORECASE,
)
# The time to parse a tag is quadratic in the number of its attributes: a tag of 150,000 took more than a minute.
_MAX_ATTRIBUTES = 1_000
_TAG = re.compile(r"<[A-Za-z](?:[^<>\"']|\"[^\"]*+\"|'[^']*+')*+", re.DOTALL)
_QUOTED = re.compile(r"\"[^\"]*+\"|'[^']*+'")


def page_reader(html: bool | Literal["main"], *, in_lines: bool = False) -> Callable[[str], str]:
    """Return the function that converts a page to its text for a value of `normalise.html`.

    in_lines: each block of the page becomes a line. Raises RecipeError if trafilatura is required but not installed.
    """
    read_all = _lines_of_page if in_lines else strip_html
    return _article_reader(read_all) if html == "main" else read_all


def line_reader(html: bool | Literal["main"]) -> Callable[[str], str] | None:
    """Return the function that converts a text, which may be a page, to lines; None if `html` keeps markup."""
    if not html:
        return None
    read_page = page_reader(html, in_lines=True)
    return lambda text: read_page(text).strip() if "<" in text or "&" in text else text


def is_page(text: str) -> bool:
    """Whether a text has a tag of a page, or of a part of a page."""
    return _BEGIN.search(text) is not None


def _lines_of_page(page: str) -> str:
    begin = _BEGIN.search(page)
    if begin is None:
        return strip_html(page)
    title = strip_html(page[: begin.start()])
    return f"{title}\n{strip_html(page[begin.start() :], in_lines=True)}"


@cache
def _article_reader(read_all: Callable[[str], str]) -> Callable[[str], str]:
    try:
        import trafilatura
    except ImportError as error:
        raise RecipeError(
            "normalise.html = main requires the package trafilatura; pip install 'nearsim-db[web]'"
        ) from error

    def read_article(page: str) -> str:
        begin = _BEGIN.search(page)
        if begin is None or any(count > _MAX_ATTRIBUTES for count in _attribute_counts(page)):
            return read_all(page)
        article = trafilatura.extract(page[begin.start() :], fast=True, include_comments=False)
        # The text before the first tag is the title of the document, which is compared together with the body.
        return f"{strip_html(page[: begin.start()])}\n{article}" if article else read_all(page)

    return read_article


def _attribute_counts(page: str) -> Iterator[int]:
    """Yield the approximate number of attributes of each long tag of a page."""
    for tag in _TAG.finditer(page):
        if len(tag[0]) > 2 * _MAX_ATTRIBUTES:
            yield len(_QUOTED.sub("", tag[0]).replace("/", " ").split())


def shown_text(
    values: Mapping[str, str | None], fields: Iterable[str], *, html: bool | Literal["main"]
) -> str:
    """Return the compared fields of a document, separated by empty lines; `html` says how pages become text."""
    content = "\n\n".join(value for field in fields if (value := values[field]))
    return page_reader(html)(content) if html else content
