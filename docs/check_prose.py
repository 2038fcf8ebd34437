"""Check code, SQL and pages for phrases that readers stumble over. `make style` runs this after codespell."""

import re
import sys
from collections.abc import Iterator
from itertools import chain
from pathlib import Path

ROOT = Path(__file__).parents[1]
PLACES = ("nearsim_db", "migrations", "benchmarks", "tests/builders", "docs", "README.md", "CONTRIBUTING.md")
SUFFIXES = (".py", ".sql", ".md")

# Each phrase, and what to write instead.
PHRASES = {
    r"any longer\b": "no longer",
    r"has gone on": "has advanced",
    r"in vain": "without a result",
    r"none but": "only",
    r"tells? of": "name the thing: records, describes, shows",
    r"what is left of": "the rest of",
    r"who is no\b": "a former ...",
    r"\bthat is to say": "leave it out",
}
_PATTERNS = {re.compile(phrase, re.IGNORECASE): instead for phrase, instead in PHRASES.items()}


def files() -> Iterator[Path]:
    """Yield the files to check."""
    for place in PLACES:
        path = ROOT / place
        paths = sorted(path.rglob("*")) if path.is_dir() else [path]
        yield from (file for file in paths if file.suffix in SUFFIXES and file != Path(__file__))


def problems(path: Path) -> Iterator[str]:
    """Yield the phrases in a file, each with its line and what to write instead."""
    name = path.relative_to(ROOT)
    for number, line in enumerate(path.read_text("utf-8").splitlines(), 1):
        for pattern, instead in _PATTERNS.items():
            if match := pattern.search(line):
                yield f"{name}:{number}: {match[0]!r}: better {instead!r}"


def main() -> None:
    """Exit with 1 and print the problems, if there are any."""
    if listed := list(chain.from_iterable(map(problems, files()))):
        sys.exit("\n".join(listed))


if __name__ == "__main__":
    main()
