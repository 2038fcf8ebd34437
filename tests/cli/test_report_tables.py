"""nearsim report in Chromium: tables that are sorted and searched."""

from pathlib import Path

import pytest
from playwright.sync_api import Browser

from tests.builders.report_pages import column, opened


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
    for _ in range(2):
        page.click("#copies-table th:nth-child(4)")
        filled = [one != "" for one in column(page, "copies-table", 4)]
        assert filled == sorted(filled, reverse=True) and len(set(filled)) == 2
    page.focus(f"{texts} button")
    for key, order in (("Tab", None), ("Enter", "descending"), ("Space", "ascending")):
        page.keyboard.press(key)
        assert page.get_attribute(numbers, "aria-sort") == order
    assert [int(one) for one in column(page, "sources-table", 2)] == sorted(documents)
    assert page.evaluate("document.activeElement.textContent") == "documents"
    assert complaints == []
