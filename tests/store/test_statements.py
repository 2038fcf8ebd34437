"""The SQL blocks of the store: each has a unique name, a purpose and a caller."""

import re
from collections import Counter
from pathlib import Path

import nearsim_db
from nearsim_db.store.driver.statements import parse_blocks

PACKAGE = Path(nearsim_db.__file__).parent
FILES = sorted((PACKAGE / "store" / "sql").glob("*.sql"))
REPLACED = sorted((PACKAGE / "store" / "citus" / "sql").glob("*.sql"))
BLOCKS = [block for file in FILES for block in parse_blocks(file.read_text("utf-8"))]


def test_files_contain_only_blocks_and_at_most_400_lines() -> None:
    for file in FILES:
        text = file.read_text("utf-8")
        assert text.startswith("-- name: "), file.name
        assert len(text.splitlines()) <= 400, file.name


def test_names_are_unique() -> None:
    assert [name for name, times in Counter(name for name, _ in BLOCKS).items() if times > 1] == []


def test_every_block_has_a_purpose_and_a_statement() -> None:
    for name, text in BLOCKS:
        assert re.fullmatch(r"(-- \S.*\n)+[^-\s](.|\n)*", text), name


def test_every_block_is_used() -> None:
    code = "\n".join(file.read_text("utf-8") for file in PACKAGE.rglob("*.py"))
    assert [name for name, _ in BLOCKS if f'"{name}"' not in code] == []


def test_statements_for_citus_replace_others_with_the_same_parameters() -> None:
    local = dict(BLOCKS)
    for file in REPLACED:
        for name, text in parse_blocks(file.read_text("utf-8")):
            assert re.fullmatch(r"(-- \S.*\n)+[^-\s](.|\n)*", text), name
            assert _parameters(text) == _parameters(local[name]), name


def _parameters(text: str) -> set[str]:
    return set(re.findall(r"%\((\w+)\)s", text))
