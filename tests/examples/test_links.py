"""Links between pages, and paths of pages that code, SQL and settings name, lead to files and headings that exist."""

import re
import subprocess
from functools import cache
from pathlib import Path

ROOT = Path(__file__).parents[2]

_FENCED = re.compile(r"^```.*?^```", re.DOTALL | re.MULTILINE)
_LINK = re.compile(r"\]\((?![a-z]+:)([^)\s]+)\)")
_PATH_OF_DOCS = re.compile(r"\bdocs/[\w./-]*\w(?:#[\w-]+)?")


@cache
def files() -> list[str]:
    listed = ["git", "ls-files", "--cached", "--others", "--exclude-standard"]
    ran = subprocess.run(listed, cwd=ROOT, check=True, capture_output=True, text=True)
    return [path for path in ran.stdout.splitlines() if (ROOT / path).is_file()]


@cache
def anchors(page: Path) -> set[str]:
    """Return the anchors of the headings, made as GitHub and Python-Markdown make them."""
    headings = re.findall(r"^#+ +(.+)$", _FENCED.sub("", page.read_text("utf-8")), re.MULTILINE)
    return {re.sub(r"[\s]+", "-", re.sub(r"[^\w\s-]", "", heading).strip().lower()) for heading in headings}


def is_broken(target: Path, anchor: str) -> bool:
    return not target.exists() or (bool(anchor) and anchor not in anchors(target))


def test_links_of_pages_lead_somewhere() -> None:
    broken = []
    for page in (path for path in files() if path.endswith(".md")):
        for link in _LINK.findall(_FENCED.sub("", (ROOT / page).read_text("utf-8"))):
            path, _, anchor = link.partition("#")
            target = (ROOT / page).parent / path if path else ROOT / page
            if is_broken(target, anchor):
                broken.append(f"{page}: {link}")
    assert not broken


def test_pages_that_code_names_exist() -> None:
    broken = []
    for file in files():
        if file.endswith((".py", ".sql", ".toml", ".yml", ".txt", "Makefile", "Dockerfile")):
            for named in _PATH_OF_DOCS.findall((ROOT / file).read_text("utf-8")):
                path, _, anchor = named.partition("#")
                if is_broken(ROOT / path, anchor):
                    broken.append(f"{file}: {named}")
    assert not broken


def test_every_page_is_linked_to() -> None:
    pages = {(ROOT / path).resolve() for path in files() if path.endswith(".md")}
    linked = {
        (page.parent / link.partition("#")[0]).resolve()
        for page in pages
        for link in _LINK.findall(page.read_text("utf-8"))
    }
    assert not {page for page in pages if (ROOT / "docs").resolve() in page.parents} - linked
