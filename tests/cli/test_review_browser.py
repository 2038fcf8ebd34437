"""The review desk in Chromium: keys, two browsers at once, restarts, widths, and what a screen reader is told."""

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from tests.builders.command_line import CommandLine, write_jsonl
from tests.builders.review_desk import Desk, axe_script, desk, unopened_desk

if TYPE_CHECKING:
    from playwright.sync_api import Browser, Page

pytestmark = pytest.mark.slow("needs Chromium")


@pytest.fixture
def reviewed(nearsim: CommandLine, tmp_path: Path) -> CommandLine:
    """30 pairs that differ in a number, with titles full of markup, and a cluster of twelve."""
    nearsim.succeed("ingest", write_jsonl(tmp_path / "rows.jsonl", rows()), "-q")
    return nearsim


def rows() -> Iterator[dict[str, object]]:
    for number in range(30):
        words = " ".join(f"word{number}x{at}" for at in range(40))
        for copy in range(2):
            title = f"<img src=x onerror=alert({number})>"
            yield {"id": f"d{number}-{copy}", "title": title, "text": f"{words} {copy}"}
    chain = [f"chain{at}" for at in range(60)]
    for at in range(12):
        yield {"id": f"c{at}", "title": f"Chain {at}", "text": " ".join(chain[at : at + 40])}


def opened(browser: "Browser", served: Desk, complaints: list[str], **options: object) -> "Page":
    """The overview in a browser of its own; errors of its pages are recorded."""
    context = browser.new_context(**options)  # type: ignore[arg-type]
    context.add_cookies([served.browser_cookie])  # type: ignore[list-item]
    page = context.new_page()
    page.on("console", lambda message: complaints.append(message.text))
    page.on("pageerror", lambda error: complaints.append(str(error)))
    page.on("dialog", lambda dialog: complaints.append(dialog.message))
    page.on(
        "request",
        lambda request: None if request.url.startswith(served.root) else complaints.append(request.url),
    )
    page.goto(served.root)
    return page


def press(page: "Page", key: str) -> None:
    """Press a key that loads a page."""
    with page.expect_navigation():
        page.keyboard.press(key)


def shown(page: "Page") -> str:
    """The pair on the page, by the values of its form."""
    values = [page.locator(f"input[name={name}]").first.input_value() for name in ("document", "listed")]
    return "-".join(values)


def count(nearsim: CommandLine) -> int:
    return len(nearsim.succeed("verdict", "list", "--json").document()["verdicts"])


def test_twenty_pairs_by_keyboard_a_reload_undo_and_a_restart(
    reviewed: CommandLine, browser: "Browser", complaints: list[str]
) -> None:
    with desk(reviewed, "--by", "anna") as served:
        page = opened(browser, served, complaints)
        press(page, "3")
        seen = []
        for at in range(20):
            seen.append(shown(page))
            press(page, "sd"[at % 2])
        assert len(set(seen)) == 20
        assert count(reviewed) == 20
        last = shown(page)
        page.reload()
        assert shown(page) == last
        press(page, "z")
        assert shown(page) == seen[-1]
        assert (
            page.get_by_role("status").inner_text() == ""
            or "Undone" in page.get_by_role("status").inner_text()
        )
        page.close()
        served.process.kill()
        served.process.wait()
    with desk(reviewed, "--by", "anna") as served:
        page = opened(browser, served, complaints)
        press(page, "z")
        assert shown(page) == seen[-2]
        assert count(reviewed) == 18
    assert complaints == []


def test_the_page_that_a_browser_is_started_with_opens_the_desk(
    reviewed: CommandLine, browser: "Browser", tmp_path: Path
) -> None:
    command = tmp_path / "browser"
    command.write_text(f'#!/bin/sh\ncp "${{1#file://}}" {tmp_path}/opened.html\n')
    command.chmod(0o700)
    started = CommandLine(reviewed.environment | {"BROWSER": str(command)})
    with unopened_desk(started) as waiting:
        waiting.request("/")
        page = browser.new_page()
        page.goto((tmp_path / "opened.html").as_uri())
        page.wait_for_url(waiting.root)
        page.get_by_text("near the threshold").first.wait_for()
        assert page.locator("h1").first.is_visible()


def test_two_people_are_never_shown_the_same_pair(
    reviewed: CommandLine, browser: "Browser", complaints: list[str]
) -> None:
    with desk(reviewed, "--by", "anna") as hers, desk(reviewed, "--by", "bert") as his:
        pages = [opened(browser, served, complaints) for served in (hers, his)]
        for page in pages:
            press(page, "3")
        judged = []
        for _ in range(8):
            one, other = map(shown, pages)
            assert one != other
            judged += [one, other]
            for page in pages:
                press(page, "s")
        assert len(set(judged)) == 16
        assert count(reviewed) == 16
    assert complaints == []


@pytest.mark.parametrize("width", [390, 1280, 1920])
def test_pages_fit_and_keep_their_roles(
    reviewed: CommandLine, browser: "Browser", complaints: list[str], width: int
) -> None:
    with desk(reviewed) as served:
        page = opened(browser, served, complaints, viewport={"width": width, "height": 844})
        cluster = reviewed.succeed("clusters", "--format", "jsonl").rows()[0]["cluster"]
        for path in ("", "queue/numbers", "documents/threshold", f"cluster/{cluster}"):
            page.goto(served.root + path)
            assert page.evaluate("document.documentElement.scrollWidth") <= width, path
            assert page.get_by_role("main").count() == 1
            bar, heading = (page.locator(one).bounding_box() for one in ("header.bar", "h1"))
            assert bar is not None and heading is not None
            assert heading["y"] >= bar["y"] + bar["height"] and bar["width"] > width / 2, path
            assert page.locator("h1").count() == 1
            unnamed = page.locator("button, a, input:not([type=hidden])").evaluate_all(
                "all => all.filter(one => !(one.innerText || one.ariaLabel || one.labels?.length || one.title)).length"
            )
            assert unnamed == 0, path
    assert complaints == []


def test_a_cluster_is_split_and_a_document_taken_out_and_both_are_undone(
    reviewed: CommandLine, browser: "Browser", complaints: list[str]
) -> None:
    with desk(reviewed, "--by", "anna") as served:
        page = opened(browser, served, complaints)
        largest = reviewed.succeed("clusters", "--format", "jsonl").rows()[0]
        assert len(largest["members"]) == 12
        page.goto(f"{served.root}cluster/{largest['cluster']}")
        page.locator("#threshold").fill("1")
        assert page.locator("#parts").inner_text() == "1.000: 12 parts"
        press(page, "1")
        assert count(reviewed) == 1
        # The page follows the clusters without being loaded again.
        page.get_by_role("heading", name="Cluster of 12").wait_for(state="detached")
        page.locator("#state[data-state=current]").wait_for()
        page.goto(f"{served.root}cluster/{largest['cluster']}")
        with page.expect_navigation():
            page.get_by_role("button", name="Take out").first.click()
        assert count(reviewed) > 1
        # Without its first document the cluster has another number.
        page.locator(f"#cluster:not([data-live*='/{largest['cluster']}?'])").wait_for()
        press(page, "z")
        assert count(reviewed) == 1
        press(page, "z")
        assert count(reviewed) == 0
    assert complaints == []


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_axe_finds_nothing(
    reviewed: CommandLine, browser: "Browser", complaints: list[str], scheme: str
) -> None:
    script = axe_script()
    with desk(reviewed) as served:
        page = opened(browser, served, complaints, color_scheme=scheme, bypass_csp=True)
        cluster = reviewed.succeed("clusters", "--format", "jsonl").rows()[0]["cluster"]
        for path in (
            "",
            "queue/numbers",
            "documents/threshold",
            f"cluster/{cluster}",
            "queue/nearly",
            "pair/1/99",
        ):
            page.goto(served.root + path)
            page.evaluate(script)
            found = page.evaluate("axe.run()")["violations"]
            assert [(one["id"], one["nodes"][0]["html"]) for one in found] == [], path


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_a_shortlist_with_passages_fits_a_phone_and_axe_finds_nothing(
    nearsim: CommandLine, tmp_path: Path, browser: "Browser", complaints: list[str], scheme: str
) -> None:
    story, own, other = (" ".join(f"{name}{at}" for at in range(40)) for name in ("story", "own", "other"))
    texts = {"part": story, "whole": f"{own} {story} {own}", "longer": f"{story}. {other * 20}"}
    source = write_jsonl(
        tmp_path / "parts.jsonl", ({"id": name, "text": text} for name, text in texts.items())
    )
    nearsim.succeed("profile", "create", "default", "--preset", "embedded-stories", "-q")
    nearsim.succeed("ingest", source, "-q")
    with desk(nearsim) as served:
        size = {"width": 390, "height": 844}
        page = opened(browser, served, complaints, color_scheme=scheme, bypass_csp=True, viewport=size)
        page.goto(served.root + "documents/sample")
        assert page.locator("ol.passages q").all_inner_texts() == [story, story]
        assert page.evaluate("document.documentElement.scrollWidth") <= 390
        page.evaluate(axe_script())
        found = page.evaluate("axe.run()")["violations"]
        assert [one["id"] for one in found] == []
