"""Style figures of the code and the pages: blank lines in functions, comments, vague names, words.

python -m tests.style           # print a table
python -m tests.style --list    # also print the places behind each figure
"""

import ast
import re
import subprocess
import sys
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import chain
from pathlib import Path

ROOT = Path(__file__).parents[1]
CODE = ("nearsim_db", "migrations", "benchmarks", "tests/builders")
MIN_FUNCTION_LINES = 15
EMPTY_NAMES = ("one", "found")
VAGUE_CONSTANT = re.compile(r"(^|_)(MOST|LEAST|FEW|MANY)(_|$)")
COMPLETED_CONSTANT = re.compile(r"^_?[A-Z][A-Z0-9_]* *(: [^=]+)?= .*#")
GENERATED_PAGES = tuple(f"docs/reference/{name}.md" for name in ("command-line", "environment", "json"))
GENERATED_PART = re.compile(r"<!-- (\w+) -->.*?<!-- /\1 -->", re.DOTALL)


@dataclass(frozen=True)
class Count:
    """A row of the table."""

    title: str  # what is counted
    figure: str
    places: Sequence[str] = ()  # the places behind the figure


@dataclass(frozen=True)
class Module:
    """A file of code."""

    path: str
    lines: list[str]
    tree: ast.Module


def modules() -> list[Module]:
    """Read all files of code except generated ones."""
    paths = chain.from_iterable(sorted((ROOT / folder).rglob("*.py")) for folder in CODE)
    texts = {path.relative_to(ROOT).as_posix(): path.read_text("utf-8") for path in paths}
    return [
        Module(path, text.splitlines(), ast.parse(text))
        for path, text in texts.items()
        if path != "nearsim_db/store/models.py"
    ]


def count_functions(code: Sequence[Module]) -> Count:
    """Count the long functions whose bodies have no blank line."""
    total, places = 0, []
    for module in code:
        for node in ast.walk(module.tree):
            if not isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
                continue
            # The docstring does not count as part of the body.
            first = node.body[1 if ast.get_docstring(node) is not None else 0 :]
            if not first or (node.end_lineno or 0) - first[0].lineno + 1 < MIN_FUNCTION_LINES:
                continue
            total += 1
            if all(module.lines[first[0].lineno - 1 : node.end_lineno]):
                places.append(f"{module.path}:{node.lineno} {node.name}")
    title = f"functions of {MIN_FUNCTION_LINES} lines and more without a blank line"
    return Count(title, f"{len(places)} of {total}: {len(places) / total:.0%}", places)


def count_comments(code: Sequence[Module]) -> Count:
    """Count the lines that are comments."""
    lines = [line for module in code for line in module.lines if line.strip()]
    comments = sum(line.lstrip().startswith("#") for line in lines)
    return Count("lines that are a comment", f"{comments} of {len(lines)}: {comments / len(lines):.1%}")


def count_names(code: Sequence[Module], name: str) -> Count:
    """Count the places where a name is bound."""
    places = [
        f"{module.path}:{node.lineno}"
        for module in code
        for node in ast.walk(module.tree)
        if isinstance(node, ast.arg | ast.Name) and _binds(node, name)
    ]
    return Count(f"the name {name} is bound", str(len(places)), places)


def _binds(node: ast.arg | ast.Name, name: str) -> bool:
    if isinstance(node, ast.arg):
        return node.arg == name
    return isinstance(node.ctx, ast.Store) and node.id == name


def count_constants(code: Sequence[Module]) -> Iterator[Count]:
    """Count the constants with vague names, and the constants whose names need a comment."""
    vague, completed = [], []
    for module in code:
        for number, line in enumerate(module.lines, 1):
            name = re.match(r"^(_?[A-Z][A-Z0-9_]*) *[:=]", line)
            if name and VAGUE_CONSTANT.search(name[1]):
                vague.append(f"{module.path}:{number} {name[1]}")
            if COMPLETED_CONSTANT.match(line):
                completed.append(f"{module.path}:{number} {line}")
    yield Count("constants named MOST, LEAST, FEW, MANY", str(len(vague)), vague)
    yield Count("constants with a comment on their line", str(len(completed)), completed)


def count_classes(code: Sequence[Module]) -> Count:
    """Count the names that several classes have. A leading underscore is ignored."""
    names = Counter(
        node.name.lstrip("_")
        for module in code
        if module.path.startswith("nearsim_db/")
        for node in ast.walk(module.tree)
        if isinstance(node, ast.ClassDef)
    )
    shared = [f"{name}: {number}" for name, number in names.most_common() if number > 1]
    return Count("names of several classes", str(len(shared)), shared)


def count_words() -> Iterator[Count]:
    """Count the words of the pages, and separately the words of generated parts."""
    by_hand, generated = Counter[str](), 0
    pages = [ROOT / "README.md", ROOT / "CONTRIBUTING.md", *sorted((ROOT / "docs").rglob("*.md"))]
    for page in pages:
        path, text = page.relative_to(ROOT).as_posix(), page.read_text("utf-8")
        text_by_hand = "" if path.startswith(GENERATED_PAGES) else GENERATED_PART.sub("", text)
        by_hand[path] = len(text_by_hand.split())
        generated += len(text.split()) - by_hand[path]
    places = [f"{path}: {number:,}" for path, number in by_hand.most_common()]
    yield Count("README, KB", f"{(ROOT / 'README.md').stat().st_size / 1000:.1f}")
    yield Count("words of the pages by hand", f"{by_hand.total():,}", places)
    yield Count("words of generated parts", f"{generated:,}")
    changes = (ROOT / "CHANGELOG.md").read_text("utf-8").splitlines()
    yield Count("lines of the changelog", str(len(changes)))


def count_commits() -> Count:
    """Count the commits among the last hundred whose messages have a body."""
    log = subprocess.run(
        ["git", "log", "-100", "--format=%b%x00"], cwd=ROOT, capture_output=True, text=True, check=True
    )
    bodies = [body for body in log.stdout.split("\0")[:-1] if body.strip()]
    return Count("of the last 100 commits, with a body", str(len(bodies)))


def main() -> None:
    """Print the table."""
    code = modules()
    counts = [
        count_functions(code),
        count_comments(code),
        *(count_names(code, name) for name in EMPTY_NAMES),
        *count_constants(code),
        count_classes(code),
        *count_words(),
        count_commits(),
    ]
    for count in counts:
        print(f"{count.title:60} {count.figure}")
        if "--list" in sys.argv[1:]:
            print(*(f"    {place}" for place in count.places), sep="\n")


if __name__ == "__main__":
    main()
