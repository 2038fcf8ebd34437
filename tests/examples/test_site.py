"""The site of the documentation: complete, without broken links, and on its own host."""

import re
import tomllib
from collections.abc import Iterator
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from threading import Thread

import pytest
from playwright.sync_api import Browser

import nearsim_db
from docs import generate, json_keys, site

SETTINGS = site.ROOT / "zensical.toml"


class QuietHandler(SimpleHTTPRequestHandler):
    """A handler of requests that logs nothing."""

    def log_message(self, format: str, *args: object) -> None:
        """Leave the request out of standard error."""


@pytest.fixture
def address() -> Iterator[str]:
    """The address of the built site."""
    handler = partial(QuietHandler, directory=str(site.SITE))
    with ThreadingHTTPServer(("127.0.0.1", 0), handler) as server:
        thread = Thread(target=server.serve_forever)
        thread.start()
        yield f"http://127.0.0.1:{server.server_port}"
        server.shutdown()
        thread.join()


def paths(entries: list[object] | dict[str, object] | str) -> Iterator[str]:
    """Yield the pages of a part of the navigation."""
    if isinstance(entries, str):
        yield entries
    else:
        for entry in entries.values() if isinstance(entries, dict) else entries:
            yield from paths(entry)  # type: ignore[arg-type]


@pytest.mark.parametrize("path", sorted(generate.pages()))
def test_generated_page_agrees_with_the_code(path: str) -> None:
    assert (site.DOCS / path).read_text("utf-8") == generate.pages()[path], "run make generated"


def test_page_of_json_keys_agrees_with_the_list() -> None:
    rendered = json_keys.render(json_keys.KEYS.read_text("utf-8"))
    assert json_keys.PAGE.read_text("utf-8") == rendered, "run make golden"


def test_navigation_has_every_page() -> None:
    listed = set(paths(tomllib.loads(SETTINGS.read_text("utf-8"))["project"]["nav"]))
    pages = {path.relative_to(site.DOCS).as_posix() for path in site.DOCS.rglob("*.md")}
    assert {path for path in listed if not path.startswith("repository/")} == pages


def test_page_of_python_has_every_name() -> None:
    page = (site.DOCS / "reference" / "python.md").read_text("utf-8")
    described = {line.removeprefix("::: nearsim_db.") for line in page.splitlines() if line.startswith(":::")}
    assert described == set(nearsim_db.__all__) - {"__version__"}


def test_site_has_no_broken_link() -> None:
    site.build()  # which ends with an error for one


@pytest.mark.slow("builds the site, and opens it in a browser")
def test_opened_site_asks_no_other_host(address: str, browser: Browser) -> None:
    site.build()
    requested: list[str] = []
    page = browser.new_page()
    page.on("request", lambda request: requested.append(request.url))
    for path in ("index.html", "how-to/jobs.html", "reference/python.html", "reference/sql.html"):
        page.goto(f"{address}/{path}", wait_until="networkidle")
    page.locator(".md-search__button").click()
    page.keyboard.type("retention")
    page.get_by_text(re.compile(r"\d+ results")).wait_for()

    assert len(requested) > 4 and not [url for url in requested if not url.startswith((address, "data:"))]
