"""nearsim report: one self-contained page, whatever the texts contain."""

import json
import sys
from collections.abc import Iterator
from html.parser import HTMLParser
from pathlib import Path

import pytest
from playwright.sync_api import Browser, Page, sync_playwright

from tests.builders.command_line import STORM, CommandLine, unlike_any_other, write_jsonl
from tests.servers.databases import Server

CHROMIUM = Path("/usr/bin/chromium")
ATTACK = "<script>alert(1)</script><img src=//evil.example/x onerror=alert(2)>"
TURNED = "\u202edesrever\u2066 \x07\x1b[31m"
CAN_FETCH = {"src", "href", "action", "data", "poster", "srcset", "background", "formaction", "ping"}
KOREAN = "한국어로 쓴 짧은 기사는 오늘 아침 항구에서 배가 늦게 떠났다고 전하며 승객 {} 명이 기다렸다고 한다"


def records() -> Iterator[dict[str, object]]:
    yield {"id": "plain", "title": "Storm", "text": f"{STORM} and 12 trees fell", "source": "Wire"}
    yield {
        "id": "<script>alert('id')</script>",
        "title": f"{{{{ 7 * 7 }}}} {ATTACK}",
        "text": f"{STORM} and 14 trees fell {ATTACK} {TURNED}",
        "source": '"><b onclick="alert(3)">',
    }
    yield {"id": "\u202eturned", "title": None, "text": f"{STORM} and 14 trees fell", "source": "Wire"}
    for number in range(6):
        yield {
            "id": f"k{number}",
            "title": "부산",
            "text": KOREAN.format(100 + number),
            "source": f"신문 {number % 2}",
            "published_at": f"2024-01-0{number + 1}T08:00:00Z",
        }
    for number in range(4):
        words = " ".join(f"word{number}x{place}" for place in range(15 + number))
        for copy in range(number + 2):
            yield {
                "id": f"c{number}-{copy}",
                "title": f"Copy {number}",
                "text": f"{words} {copy}",
                "source": "Mirror",
            }
    yield {"id": "empty", "text": " ! "}


@pytest.fixture(scope="module")
def page_file(server: Server, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """A report on malicious texts, with rejects."""
    with server.database() as url:
        yield write_report(url, tmp_path_factory.mktemp("report"))


def write_report(url: str, folder: Path) -> Path:
    """Ingest the records and write the report on them into the folder."""
    nearsim = CommandLine({"NEARSIM_DATABASE_URL": url, "NEARSIM_HOME": str(folder / "home")})
    given = write_jsonl(folder / "given.jsonl", records())
    given.write_text(given.read_text() + "{broken\n[1]\n[2]\n")
    rejects = folder / "rejects.jsonl"
    nearsim.succeed("profile", "create", "default", "--set", "match.threshold=0.5")
    nearsim.succeed("ingest", given, "--rejects", rejects, "-q")
    path = folder / "report.html"
    options = ("--rejects", rejects, "--title", "<i>All & $every$</i>")
    told = nearsim.succeed("report", "--output", path, *options).out
    assert told == f"{path}: {path.stat().st_size:,} bytes\n"
    return path


class Elements(HTMLParser):
    """The elements of a page with their attributes, and the text outside of scripts and styles."""

    def __init__(self, page: str) -> None:
        super().__init__()
        self.found: list[tuple[str, dict[str, str]]] = []
        self.text = ""
        self.feed(page)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.found.append((tag, {name: value or "" for name, value in attrs}))

    def handle_data(self, data: str) -> None:
        if self.found and self.found[-1][0] not in ("script", "style"):
            self.text += data


def test_page_loads_nothing_from_the_network(page_file: Path) -> None:
    page = page_file.read_text()
    elements = Elements(page)
    for tag, attributes in elements.found:
        assert tag not in {
            "link",
            "iframe",
            "object",
            "embed",
            "img",
            "image",
            "base",
            "form",
            "audio",
            "video",
        }
        assert "style" not in attributes
        assert not any(name.startswith("on") for name in attributes)
        for name, value in attributes.items():
            assert name not in CAN_FETCH or value.startswith("#"), (tag, name, value)
            assert "url(" not in value or value.startswith("url(#"), (tag, name, value)
    assert "@import" not in page and "url(" not in page.split("<style>")[1].split("</style>")[0]
    (policy,) = [one["content"] for tag, one in elements.found if one.get("http-equiv")]
    assert policy.startswith("default-src 'none'; style-src 'sha256-") and "unsafe" not in policy
    names = [one["id"] for _, one in elements.found if "id" in one]
    assert len(names) == len(set(names))


def test_malicious_texts_are_escaped(page_file: Path) -> None:
    page = page_file.read_text()
    text = Elements(page).text
    assert [tag for tag, _ in Elements(page).found].count("script") == 2
    assert ATTACK in text and "<script>alert('id')</script>" in text and '"><b onclick="alert(3)">' in text
    assert "{{ 7 * 7 }}" in text and "<i>All & $every$</i>" in text
    assert not set(page) & set("\u202e\u2066\x07\x1b")
    assert "⟨U+202E⟩turned" in text and "⟨U+001B⟩[31m" in text
    assert "부산" in text and "no title" in text
    assert "not a JSON object" in text


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    if not CHROMIUM.exists():
        pytest.skip(f"there is no {CHROMIUM}: make browser installs it where it can")
    with sync_playwright() as playwright:
        started = playwright.chromium.launch(executable_path=str(CHROMIUM), args=["--no-sandbox"])
        yield started
        started.close()


@pytest.fixture
def complaints() -> list[str]:
    return []


def opened(browser: Browser, path: Path, complaints: list[str], **options: object) -> Page:
    """The page in a browser window; its errors and network requests are recorded."""
    page = browser.new_context(**options).new_page()  # type: ignore[arg-type]
    page.on("console", lambda message: complaints.append(message.text))
    page.on("pageerror", lambda error: complaints.append(str(error)))
    page.on("dialog", lambda dialog: complaints.append(dialog.message))
    page.on(
        "request", lambda request: complaints.append(request.url) if request.url != path.as_uri() else None
    )
    page.goto(path.as_uri())
    return page


def column(page: Page, table: str, place: int) -> list[str]:
    cells = page.locator(f"#{table} tbody tr:not(.members):visible > :nth-child({place})")
    return [text.strip().split("\n")[0].strip() for text in cells.all_inner_texts()]


@pytest.mark.slow("needs Chromium")
def test_tables_are_sorted_and_searched(browser: Browser, page_file: Path, complaints: list[str]) -> None:
    page = opened(browser, page_file, complaints)
    members = [int(one) for one in column(page, "largest-table", 2)]
    assert members == sorted(members, reverse=True) and len(set(members)) > 2
    page.click("#largest-table th:nth-child(2)")
    assert [int(one) for one in column(page, "largest-table", 2)] == members[::-1]
    page.fill("input[data-table=largest-table]", "others C3-0")
    assert column(page, "largest-table", 1) == ["Copy 3"]
    assert page.inner_text(".search:has(input[data-table=largest-table]) output") == f"1 of {len(members)}"
    page.fill("input[data-table=largest-table]", "no such cluster")
    assert column(page, "largest-table", 1) == []
    assert page.get_by_text("Nothing matches no such cluster.").is_visible()
    page.fill("input[data-table=largest-table]", "")
    assert not page.get_by_text("Nothing matches").is_visible()
    assert len(column(page, "largest-table", 1)) == len(members)
    assert complaints == []


@pytest.mark.slow("needs Chromium")
def test_an_opened_cluster_uses_the_width_and_moves_with_its_row(
    browser: Browser, page_file: Path, complaints: list[str]
) -> None:
    page = opened(browser, page_file, complaints, viewport={"width": 1280, "height": 900})
    page.locator("#largest-table summary").first.click()
    listed = page.locator("#largest-table ol:visible")
    whole = page.locator("#largest-table").bounding_box()
    inner = listed.bounding_box()
    assert whole is not None and inner is not None and inner["width"] > 0.9 * whole["width"]
    names = page.locator("#largest-table tbody:first-of-type").inner_text().strip()
    page.click("#largest-table th:nth-child(2)")
    assert page.locator("#largest-table tbody:last-of-type").inner_text().strip() == names
    assert listed.count() == 1
    assert complaints == []


def many_records() -> Iterator[dict[str, object]]:
    """40 clusters of 30 sources without dates, each a pair whose numbers differ and a twin."""
    for number in range(40):
        words = " ".join(f"word{number}x{place}" for place in range(40))
        for copy, amount in enumerate((1, 2, 2)):
            yield {
                "id": f"d{number}-{copy}",
                "title": f"Story {number}",
                "source": f"Source {number % 30}",
                "text": f"{words} {amount}",
            }


@pytest.fixture(scope="module")
def large_page(server: Server, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """A report on many clusters."""
    folder = tmp_path_factory.mktemp("large")
    with server.database() as url:
        nearsim = CommandLine({"NEARSIM_DATABASE_URL": url, "NEARSIM_HOME": str(folder / "home")})
        nearsim.succeed("ingest", write_jsonl(folder / "records.jsonl", many_records()), "-q")
        nearsim.succeed("report", "-q", "--output", folder / "report.html")
        yield folder / "report.html"


@pytest.mark.slow("needs Chromium")
@pytest.mark.parametrize("width", [1280, 390])
def test_a_long_report_is_folded(
    browser: Browser, large_page: Path, complaints: list[str], width: int
) -> None:
    page = opened(browser, large_page, complaints, viewport={"width": width, "height": 900})
    assert page.evaluate("document.documentElement.scrollHeight") < 8_000
    assert page.evaluate("document.documentElement.scrollWidth") == width
    shown = len(column(page, "sources-table", 1))
    assert shown < 10
    # A sorted table shows the first rows of the new order, and a search all that match.
    page.click("#sources-table th:nth-child(1)")
    assert column(page, "sources-table", 1) == [f"Source {number}" for number in range(shown)]
    rows = page.locator("#sources-table tbody tr").evaluate_all("all => all.map(one => one.textContent)")
    page.fill("input[data-table=sources-table]", "source 1")
    assert len(column(page, "sources-table", 1)) == sum("1" in row for row in rows) > shown
    page.fill("input[data-table=sources-table]", "")
    assert len(column(page, "sources-table", 1)) == shown
    page.click(".scroll:has(#sources-table) + p + .unfold")
    assert len(column(page, "sources-table", 1)) == 25
    assert complaints == []


@pytest.mark.slow("needs Chromium")
def test_the_menu_stays_and_no_column_is_empty(
    browser: Browser, large_page: Path, complaints: list[str]
) -> None:
    page = opened(browser, large_page, complaints, viewport={"width": 1280, "height": 900})
    page.emulate_media(reduced_motion="reduce")
    page.click("nav a[href='#sources']")
    menu, heading = page.locator("nav").bounding_box(), page.locator("#sources-h").bounding_box()
    assert menu is not None and heading is not None
    assert menu["y"] == 0 and heading["y"] >= menu["height"]
    assert not {"span", "chained"} & set(page.locator("#largest-table th").all_inner_texts())
    cells = page.evaluate(
        """[...document.querySelectorAll("table.sortable")].flatMap(table =>
            [...table.tHead.rows[0].cells].map((_, at) =>
                [...table.querySelectorAll("tbody tr:not(.members)")].some(row => row.cells[at].textContent.trim())))"""
    )
    assert cells and all(cells)
    assert "twins" in page.locator("figure .wide svg").first.text_content()  # type: ignore[operator]
    order = page.locator("main > section").evaluate_all("all => all.map(one => one.id)")
    assert order[:4] == ["overview", "similarities", "pairs", "clusters"]
    assert complaints == []


def direction(page: Page, heading: str) -> str | None:
    return page.get_attribute(heading, "aria-sort")


def test_numeric_columns_sort_descending_first(
    browser: Browser, page_file: Path, complaints: list[str]
) -> None:
    page = opened(browser, page_file, complaints)
    heading = "#sources-table th:nth-child(2)"
    page.click(heading)
    documents = [int(one) for one in column(page, "sources-table", 2)]
    assert documents == sorted(documents, reverse=True) and {14, 2} < set(documents)
    assert direction(page, heading) == "descending"
    assert page.locator("#sources-table th[aria-sort]").count() == 1
    page.click(heading)
    assert [int(one) for one in column(page, "sources-table", 2)] == sorted(documents)
    assert direction(page, heading) == "ascending"
    assert complaints == []


@pytest.mark.slow("needs Chromium")
def test_text_columns_sort_ascending_first_with_empty_cells_last(
    browser: Browser, page_file: Path, complaints: list[str]
) -> None:
    page = opened(browser, page_file, complaints)
    heading = "#sources-table th:nth-child(1)"
    page.click(heading)
    ascending = column(page, "sources-table", 1)
    assert ascending[-3:] == ["신문 0", "신문 1", "no source"]
    assert ascending.index("Mirror") < ascending.index("Wire")
    page.click(heading)
    assert column(page, "sources-table", 1) == [*ascending[-2::-1], "no source"]
    assert direction(page, heading) == "descending"
    assert complaints == []


@pytest.mark.slow("needs Chromium")
def test_empty_figures_stay_last(browser: Browser, page_file: Path, complaints: list[str]) -> None:
    page = opened(browser, page_file, complaints)
    for _ in range(2):
        page.click("#copies-table th:nth-child(4)")
        filled = [one != "" for one in column(page, "copies-table", 4)]
        assert filled == sorted(filled, reverse=True) and len(set(filled)) == 2
    assert complaints == []


@pytest.mark.slow("needs Chromium")
def test_headings_sort_by_keyboard(browser: Browser, page_file: Path, complaints: list[str]) -> None:
    page = opened(browser, page_file, complaints)
    page.focus("#sources-table th:nth-child(1) button")
    page.keyboard.press("Tab")
    page.keyboard.press("Enter")
    assert direction(page, "#sources-table th:nth-child(2)") == "descending"
    page.keyboard.press("Space")
    assert direction(page, "#sources-table th:nth-child(2)") == "ascending"
    documents = [int(one) for one in column(page, "sources-table", 2)]
    assert documents == sorted(documents)
    assert page.evaluate("document.activeElement.textContent") == "documents"
    assert complaints == []


@pytest.mark.slow("needs Chromium")
def test_page_in_light_dark_and_print(browser: Browser, page_file: Path, complaints: list[str]) -> None:
    colours = []
    for scheme in ("light", "dark"):
        page = opened(browser, page_file, complaints, color_scheme=scheme)
        ask = "one => getComputedStyle(document.querySelector(one))"
        paper = page.evaluate(f"({ask})('body').backgroundColor")
        bar = page.evaluate(
            "getComputedStyle(document.querySelector('figure path[fill=\"var(--first)\"]')).fill"
        )
        mark = page.evaluate(f"({ask})('mark').backgroundColor")
        colours.append((paper, bar, mark))
        assert len(page.screenshot()) > 10_000
    assert all(light != dark for light, dark in zip(*colours, strict=True))
    page.emulate_media(media="print")
    assert page.evaluate(f"({ask})('body').backgroundColor") == colours[0][0]
    assert not page.locator("nav").is_visible()
    page.evaluate("window.dispatchEvent(new Event('beforeprint'))")
    assert page.locator("details:not([open])").count() == 0
    assert complaints == []


@pytest.mark.slow("needs Chromium")
def test_page_fits_a_phone_screen(browser: Browser, page_file: Path, complaints: list[str]) -> None:
    page = opened(browser, page_file, complaints, viewport={"width": 390, "height": 800})
    assert page.evaluate("document.documentElement.scrollWidth") == 390
    assert page.locator("figure .narrow svg").first.is_visible()
    assert not page.locator("figure .wide svg").first.is_visible()
    sizes = page.evaluate(
        "[...document.querySelectorAll('figure .narrow text')].map(one => one.getBoundingClientRect().height)"
    )
    assert min(sizes) >= 11
    # A table that is cut says so.
    cut = "document.querySelector('#largest-table').parentNode"
    assert page.evaluate(f"{cut}.scrollWidth > {cut}.clientWidth")
    hints = page.get_by_text("scroll sideways")
    assert hints.first.is_visible()
    page.set_viewport_size({"width": 1200, "height": 800})
    assert not hints.first.is_visible()
    assert complaints == []


def test_report_as_json(filled: CommandLine, tmp_path: Path) -> None:
    found = filled.succeed("report", "--json", "--top", 1, "--diffs", 1).document()
    assert found["stats"] == filled.succeed("stats", "--json").document()
    assert found["index"]["clusters"]["clusters"] == 1
    (compared,) = found["index"]["comparisons"]
    assert (compared["left"]["external_id"], compared["right"]["external_id"]) == ("storm", "storm-again")
    assert [one["kind"] for one in compared["diff"]["hunks"][0]["left"]] == ["same", "changed", "same"]
    path = tmp_path / "figures.json"
    filled.succeed("report", "--json", "--output", path, "-q", "--top", 1, "--diffs", 1)
    assert json.loads(path.read_text()).keys() == found.keys()


def test_empty_collections_have_a_report(nearsim: CommandLine, stories: Path) -> None:
    nearsim.succeed("collection", "create", "empty")
    assert "the collection has no profile yet" in nearsim.succeed("report", "-c", "empty", "-o", "-").out
    nearsim.succeed("profile", "create", "p", "--collection", "empty")
    assert "has no live index yet" in nearsim.succeed("report", "-c", "empty", "-o", "-").out
    nearsim.succeed("ingest", stories, "-q")
    page = nearsim.succeed("report", "--output", "-").out
    assert page.startswith("<!DOCTYPE html>") and page.rstrip().endswith("</html>")
    nearsim.succeed("profile", "create", "exact", "--set", "match.threshold=1.0")
    exact = nearsim.succeed("report", "-p", "exact", "--output", "-").out
    assert "and 1 twin at 1, each with the first document of the same features" in exact
    unlike = [{"id": str(number), "text": unlike_any_other(number)} for number in range(2)]
    nearsim.succeed("ingest", write_jsonl(stories.with_name("unlike.jsonl"), unlike), "-c", "unlike", "-q")
    assert "There are no pairs to draw" in nearsim.succeed("report", "-c", "unlike", "--output", "-").out


def test_invalid_calls_are_refused(
    filled: CommandLine, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert "--output PATH" in filled.fail("report", exit_code=2)
    path = tmp_path / "report.html"
    assert "collection 'none' does not exist" in filled.fail("report", "-o", path, "-c", "none")
    assert "no profile 'none'" in filled.fail("report", "-o", path, "-p", "none")
    no_rejects = write_jsonl(tmp_path / "no.jsonl", [{"id": 1}])
    assert "is not a reject file" in filled.fail("report", "-o", path, "--rejects", no_rejects)
    both = write_jsonl(tmp_path / "both.html", [{"id": 1}])
    assert "is both input and output" in filled.fail("report", "-o", both, "--rejects", both)
    assert "end it in .html" in filled.fail("report", "-o", tmp_path / "report.pdf", exit_code=2)
    assert "end it in .json" in filled.fail("report", "--json", "-o", path, exit_code=2)
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    assert "pip install 'nearsim-db[report]'" in filled.fail("report", "-o", path)
    assert not path.exists()
