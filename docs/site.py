"""Build the site of the documentation: build/site, from the pages of docs/ and the files that they link to.

python -m docs.site     # or make docs; fails if a link or an anchor has no target
"""

import os
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).parents[1]
DOCS = ROOT / "docs"
PAGES, SITE = ROOT / "build" / "pages", ROOT / "build" / "site"

_LINK = re.compile(r"(\]\()(?![a-z]+:|#)([^)\s#]+)")


def stage() -> None:
    """Copy all pages, and the files that they link to, into one folder, and adapt the links to it."""
    shutil.rmtree(PAGES, ignore_errors=True)
    waiting, staged = sorted(DOCS.rglob("*.md")), set[Path]()
    while waiting:
        source = waiting.pop()
        if source in staged:
            continue
        staged.add(source)
        copy = _place(source)
        copy.parent.mkdir(parents=True, exist_ok=True)
        if source.suffix == ".md":
            text = source.read_text("utf-8")
            waiting += _linked_files(source, text)
            copy.write_text(_with_links_of_copy(source, text), "utf-8")
        else:
            shutil.copyfile(source, copy)


def _place(source: Path) -> Path:
    """Return the path of a file's copy. Files of docs/ are at the top of the site, all others in `repository`."""
    if source.is_relative_to(DOCS):
        return PAGES / source.relative_to(DOCS)
    return PAGES / "repository" / source.relative_to(ROOT)


def _linked_files(page: Path, text: str) -> Iterator[Path]:
    for _, link in _LINK.findall(text):
        target = (page.parent / link).resolve()
        if target.is_file():
            yield target


def _with_links_of_copy(page: Path, text: str) -> str:
    def adapt(match: re.Match[str]) -> str:
        target = _place((page.parent / match[2]).resolve())
        return match[1] + os.path.relpath(target, _place(page).parent)

    return _LINK.sub(adapt, text)


def build() -> None:
    """Build the site from scratch. Raises CalledProcessError if Zensical fails."""
    stage()
    shutil.rmtree(SITE, ignore_errors=True)
    zensical = Path(sys.executable).parent / "zensical"
    subprocess.run([zensical, "build", "--clean", "--strict"], cwd=ROOT, check=True)


if __name__ == "__main__":
    try:
        build()
    except subprocess.CalledProcessError as error:
        sys.exit(error.returncode)
