"""Pages in Chromium: widths, folds, colours, the menu, tables that are sorted and searched."""

import re
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import Browser, Page

from tests.builders.command_line import CommandLine, write_jsonl
from tests.builders.report_pages import column, opened
from tests.servers.databases import Server

DESK = {"width": 1280, "height": 900}


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


@contextmanager
def index_of(
    server: Server, folders: pytest.TempPathFactory, records: Iterator[dict[str, object]]
) -> Iterator[tuple[CommandLine, Path]]:
    """The command line on a database with these records, and a folder."""
    folder = folders.mktemp("pages")
    with server.database() as url:
        nearsim = CommandLine({"NEARSIM_DATABASE_URL": url})
        nearsim.succeed("ingest", write_jsonl(folder / "records.jsonl", records), "-q")
        yield nearsim, folder


@pytest.fixture(scope="module")
def large_page(server: Server, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """A report on many clusters."""
    with index_of(server, tmp_path_factory, many_records()) as (nearsim, folder):
        nearsim.succeed("report", "-q", "--output", folder / "report.html")
        yield folder / "report.html"


def width_of(page: Page) -> int:
    return int(page.evaluate("document.documentElement.scrollWidth"))


@pytest.mark.slow("needs Chromium")
def test_an_opened_cluster_uses_the_width_and_moves_with_its_row(
    browser: Browser, page_file: Path, complaints: list[str]
) -> None:
    page = opened(browser, page_file, complaints, viewport=DESK)
    page.locator("#largest-table summary").first.click()
    listed = page.locator("#largest-table ol:visible")
    whole, inner = page.locator("#largest-table").bounding_box(), listed.bounding_box()
    assert whole is not None and inner is not None and inner["width"] > 0.9 * whole["width"]
    names = page.locator("#largest-table tbody:first-of-type").inner_text().strip()
    page.click("#largest-table th:nth-child(2)")
    assert page.locator("#largest-table tbody:last-of-type").inner_text().strip() == names
    assert listed.count() == 1
    assert complaints == []


@pytest.mark.slow("needs Chromium")
def test_no_column_of_the_clusters_is_cut_on_a_desk(
    browser: Browser, page_file: Path, complaints: list[str]
) -> None:
    page = opened(browser, page_file, complaints, viewport=DESK)
    for table in ("largest", "suspicious"):
        cut = page.evaluate(
            "table => { const box = document.getElementById(table).closest('.scroll'); "
            "return box.scrollWidth - box.clientWidth; }",
            f"{table}-table",
        )
        assert cut <= 0


def records_of_a_day() -> Iterator[dict[str, object]]:
    """40 pairs of sources with long names, one without a space, published within a day."""
    names = ("The International Federation of Regional Publishers, Evening Edition", "W" * 90)
    for number in range(40):
        words = " ".join(f"word{number}x{place}" for place in range(40 + number % 2))
        for copy, source in enumerate(names):
            moment = f"2026-03-01T{number % 24:02}:{30 * copy:02}:00Z"
            text = f"{words} {copy if number % 3 else ''}"
            yield {"id": f"d{number}-{copy}", "source": source, "published_at": moment, "text": text}


@pytest.fixture(scope="module")
def page_of_a_day(server: Server, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """A report on documents of one day."""
    with index_of(server, tmp_path_factory, records_of_a_day()) as (nearsim, folder):
        nearsim.succeed("report", "-q", "--output", folder / "report.html")
        yield folder / "report.html"


# The lines of a page's texts, each with its rectangle as far as it is seen, without the menu, which floats.
LINES = """() => {
    const lines = [], range = document.createRange();
    const texts = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
    while (texts.nextNode()) {
        const text = texts.currentNode, holder = text.parentElement;
        if (!text.data.trim() || !holder.checkVisibility() || holder.closest("nav, title, script, style")) continue;
        const box = holder.closest(".scroll")?.getBoundingClientRect();
        range.selectNodeContents(text);
        for (const one of range.getClientRects()) {
            const left = Math.max(one.left, box?.left ?? -Infinity);
            const right = Math.min(one.right, box?.right ?? Infinity);
            const in_chart = holder.closest(".chart") !== null;
            if (right - left > 1) lines.push([text.data.trim(), left, one.top, right, one.bottom, in_chart]);
        }
    }
    return lines;
}"""
BARS = """() => [...document.querySelectorAll(".chart .whole, .chart .part")].map(one => {
    const box = one.getBoundingClientRect();
    return ["bar", box.left, box.top, box.right, box.bottom];
})"""


def overlapping(lines: list[Any], others: list[Any]) -> list[tuple[str, str]]:
    """The pairs of rectangles that share more than the gaps between letters and lines."""
    found = []
    for one in lines:
        for other in others:
            width = min(one[3], other[3]) - max(one[1], other[1])
            height = min(one[4], other[4]) - max(one[2], other[2])
            if other is not one and width > 1 and height > 4:
                found.append((one[0], other[0]))
    return found


@pytest.mark.slow("needs Chromium")
@pytest.mark.parametrize("width", [1280, 640, 320])
def test_no_label_covers_another_or_a_bar(
    browser: Browser,
    page_file: Path,
    large_page: Path,
    page_of_a_day: Path,
    complaints: list[str],
    width: int,
) -> None:
    for path in (page_file, large_page, page_of_a_day):
        page = opened(browser, path, complaints, viewport={"width": width, "height": 900})
        page.evaluate("document.querySelectorAll('details').forEach(one => { one.open = true; })")
        lines, bars = page.evaluate(LINES), page.evaluate(BARS)
        assert len(lines) > 100 and len(bars) > 1
        assert overlapping(lines, lines) == []
        assert overlapping([one for one in lines if one[5]], bars) == []
    assert complaints == []


@pytest.mark.slow("needs Chromium")
@pytest.mark.parametrize("width", [1280, 390])
def test_a_long_report_is_folded(
    browser: Browser, large_page: Path, complaints: list[str], width: int
) -> None:
    page = opened(browser, large_page, complaints, viewport={"width": width, "height": 900})
    assert page.evaluate("document.documentElement.scrollHeight") < 8_000
    assert width_of(page) == width
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
    page = opened(browser, large_page, complaints, viewport=DESK)
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
    assert "40 twins" in page.inner_text("#similarities figcaption")
    order = page.locator("main > section").evaluate_all("all => all.map(one => one.id)")
    assert order[:4] == ["overview", "similarities", "pairs", "clusters"]
    assert complaints == []


@pytest.mark.slow("needs Chromium")
def test_page_in_light_dark_and_print(browser: Browser, page_file: Path, complaints: list[str]) -> None:
    colours = []
    for scheme in ("light", "dark"):
        page = opened(browser, page_file, complaints, color_scheme=scheme)
        ask = "one => getComputedStyle(document.querySelector(one))"
        paper = page.evaluate(f"({ask})('body').backgroundColor")
        bar = page.evaluate("getComputedStyle(document.querySelector('figure .whole')).fill")
        mark = page.evaluate(f"({ask})('mark').backgroundColor")
        colours.append((paper, bar, mark))
        assert len(page.screenshot()) > 10_000
    assert all(light != dark for light, dark in zip(*colours, strict=True))
    page.emulate_media(media="print")
    assert page.evaluate(f"({ask})('body').backgroundColor") == colours[0][0]
    assert not page.locator("nav").is_visible()
    assert complaints == []


@pytest.mark.slow("needs Chromium")
def test_two_pages_are_printed(
    browser: Browser, page_file: Path, large_page: Path, complaints: list[str]
) -> None:
    for path in (page_file, large_page):
        printed = opened(browser, path, complaints).pdf(prefer_css_page_size=True)
        assert len(re.findall(rb"/Type */Page\b", printed)) == 2
    assert complaints == []


@pytest.mark.slow("needs Chromium")
def test_page_fits_a_phone_screen(browser: Browser, page_file: Path, complaints: list[str]) -> None:
    page = opened(browser, page_file, complaints, viewport={"width": 390, "height": 800})
    assert width_of(page) == 390
    sizes = page.evaluate(
        "[...document.querySelectorAll('figure text')].map(one => one.getBoundingClientRect().height)"
    )
    assert min(sizes) >= 11
    # A table that is cut says so; it and the menu have a shadow at the cut edge.
    for selector in ("#largest-table", "nav ul li"):
        cut = f"document.querySelector('{selector}').parentNode"
        assert page.evaluate(f"{cut}.scrollWidth > {cut}.clientWidth")
        assert "gradient" in page.evaluate(f"getComputedStyle({cut}).backgroundImage")
    hints = page.get_by_text("scroll sideways")
    assert hints.first.is_visible()
    page.set_viewport_size({"width": 1200, "height": 800})
    assert not hints.first.is_visible()
    assert complaints == []


def clusters_of_editions() -> Iterator[dict[str, object]]:
    """24 clusters of three editions of a long text: one with another word, one in capitals with another number."""
    for number in range(24):
        words = [f"word{number}x{place}" for place in range(120)]
        third = [*words[:60], "inserted", *words[60:]]
        for copy, text in enumerate((words, third, [*words[:-1], str(number)])):
            shown = " ".join(text)
            yield {
                "id": f"d{number}-{copy}",
                "title": f"Story {number}",
                "text": shown.upper() if copy == 2 else shown,
            }


@pytest.fixture(scope="module")
def difference_page(server: Server, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """A page with as many lost, re-scored and split samples as are shown by default."""
    with index_of(server, tmp_path_factory, clusters_of_editions()) as (nearsim, folder):
        nearsim.succeed("reindex", "start", "--set", "normalise.case=none", "--set", "shingle.k=4", "-q")
        nearsim.succeed("reindex", "diff", "-q", "--output", folder / "diff.html")
        yield folder / "diff.html"


@pytest.mark.slow("needs Chromium")
@pytest.mark.parametrize("width", [1280, 390])
def test_a_long_difference_is_folded(
    browser: Browser, difference_page: Path, complaints: list[str], width: int
) -> None:
    page = opened(browser, difference_page, complaints, viewport={"width": width, "height": 900})
    assert page.evaluate("document.documentElement.scrollHeight") < 8_000 and width_of(page) == width
    for kind in ("lost", "rescored"):
        assert page.locator(f"#{kind} article").count() == 20
        assert page.locator(f"#{kind} article:visible").count() == 1
        page.click(f"#{kind} details.more > summary")
        assert page.locator(f"#{kind} article:visible").count() == 20
    assert complaints == []


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
def test_columns_are_sorted_by_their_headings(
    browser: Browser, page_file: Path, complaints: list[str]
) -> None:
    """Numbers descending first, texts ascending, empty cells last; by the mouse and by the keyboard."""
    page = opened(browser, page_file, complaints)
    numbers, texts = "#sources-table th:nth-child(2)", "#sources-table th:nth-child(1)"
    page.click(numbers)
    documents = [int(one) for one in column(page, "sources-table", 2)]
    assert documents == sorted(documents, reverse=True) and {14, 2} < set(documents)
    assert page.get_attribute(numbers, "aria-sort") == "descending"
    assert page.locator("#sources-table th[aria-sort]").count() == 1
    page.click(numbers)
    assert [int(one) for one in column(page, "sources-table", 2)] == sorted(documents)
    page.click(texts)
    ascending = column(page, "sources-table", 1)
    assert ascending[-3:] == ["신문 0", "신문 1", "no source"]
    assert ascending.index("Mirror") < ascending.index("Wire")
    page.click(texts)
    assert column(page, "sources-table", 1) == [*ascending[-2::-1], "no source"]
    assert page.get_attribute(texts, "aria-sort") == "descending"
    place = 1 + page.locator("#largest-table th").all_inner_texts().index("published")
    for _ in range(2):
        page.click(f"#largest-table th:nth-child({place})")
        filled = [one != "" for one in column(page, "largest-table", place)]
        assert filled == sorted(filled, reverse=True) and len(set(filled)) == 2
    page.focus(f"{texts} button")
    for key, order in (("Tab", None), ("Enter", "descending"), ("Space", "ascending")):
        page.keyboard.press(key)
        assert page.get_attribute(numbers, "aria-sort") == order
    assert [int(one) for one in column(page, "sources-table", 2)] == sorted(documents)
    assert page.evaluate("document.activeElement.textContent") == "documents"
    assert complaints == []
