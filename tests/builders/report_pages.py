"""Reports on malicious texts, their elements, and pages in a browser."""

from collections.abc import Iterator
from html.parser import HTMLParser
from pathlib import Path
from typing import TYPE_CHECKING

from tests.builders.command_line import STORM, CommandLine, write_jsonl

if TYPE_CHECKING:
    from playwright.sync_api import Browser, Page

ATTACK = "<script>alert(1)</script><img src=//evil.example/x onerror=alert(2)>"
URL = "https://wire.example/1?a=b&c='<"
TURNED = "\u202edesrever\u2066 \x07\x1b[31m"
KOREAN = "한국어로 쓴 짧은 기사는 오늘 아침 항구에서 배가 늦게 떠났다고 전하며 승객 {} 명이 기다렸다고 한다"


def records() -> Iterator[dict[str, object]]:
    yield {
        "id": "plain",
        "title": "Storm",
        "text": f"{STORM} and 12 trees fell",
        "source": "Wire",
        "url": URL,
    }
    yield {
        "id": "<script>alert('id')</script>",
        "title": f"{{{{ 7 * 7 }}}} {ATTACK}",
        "text": f"{STORM} and 14 trees fell {ATTACK} {TURNED}",
        "source": '"><b onclick="alert(3)">',
    }

    turned: dict[str, object] = {
        "id": "\u202eturned",
        "title": None,
        "text": f"{STORM} and 14 trees fell",
        "source": "Wire",
    }
    yield turned | {"url": "javascript:alert(4)"}
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


def write_report(url: str, folder: Path) -> Path:
    """Ingest the records, and write the report on them to the folder."""
    nearsim = CommandLine({"NEARSIM_DATABASE_URL": url, "NEARSIM_HOME": str(folder / "home")})
    records_file = write_jsonl(folder / "records.jsonl", records())
    # These lines are rejected.
    records_file.write_text(records_file.read_text() + "{broken\n[1]\n[2]\n")
    rejects = folder / "rejects.jsonl"
    nearsim.succeed("profile", "create", "default", "--set", "match.threshold=0.5")
    nearsim.succeed("ingest", records_file, "--rejects", rejects, "-q")
    path = folder / "report.html"
    options = ("--rejects", rejects, "--title", "<i>All & $every$</i>")
    reported = nearsim.succeed("report", "--output", path, *options).out
    assert reported == f"{path}: {path.stat().st_size:,} bytes\n"
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


def opened(browser: "Browser", path: Path, complaints: list[str], **options: object) -> "Page":
    """The page in a browser window; its errors and network requests are recorded."""
    page = browser.new_context(**options).new_page()  # type: ignore[arg-type]
    page.on("console", lambda message: complaints.append(message.text))
    page.on("pageerror", lambda error: complaints.append(str(error)))
    # If a script in one of the texts ran, its alert() would open a dialogue.
    page.on("dialog", lambda dialog: complaints.append(dialog.message))
    page.on(
        "request", lambda request: complaints.append(request.url) if request.url != path.as_uri() else None
    )
    page.goto(path.as_uri())
    return page


def column(page: "Page", table: str, place: int) -> list[str]:
    cells = page.locator(f"#{table} tbody tr:not(.members):visible > :nth-child({place})")
    return [text.strip().split("\n")[0].strip() for text in cells.all_inner_texts()]
