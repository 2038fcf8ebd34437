"""The pages in docs/, each run from top to bottom as it is written in a database of its own, show what they say."""

from collections import Counter
from pathlib import Path

import pytest

from tests.builders.console_pages import RUN, Block, Reader, blocks, differences
from tests.examples.conftest import EXAMPLES

DOCS = EXAMPLES.parent / "docs"
PAGES = sorted(DOCS.rglob("*.md"))
BLOCKS = {page: list(blocks(page)) for page in PAGES}
RUNNABLE = [
    page for page, found in BLOCKS.items() if any(one.language in RUN and not one.not_run for one in found)
]
# Blocks of these languages are no commands; a diagram or a message has no language.
READ = ("text", "toml", "json", "")
NOT_RUN = {
    "measures for minutes to hours": 7,
    "is a part of an application's env.py": 1,
    "needs a Citus cluster": 6,
    "needs a container engine": 1,
    "needs a framework of the reader's own": 4,
    "needs a server of the reader's own": 8,
    "needs files of the reader's own": 3,
    "needs vectors of a model": 1,
    "runs until it is stopped": 2,
}


def name(page: Path) -> str:
    return page.relative_to(DOCS).as_posix()


def is_command(block: Block) -> bool:
    """Whether a block has commands, or looks like one with commands."""
    prompts = any(line.lstrip().startswith(("$ ", "=> ", "nearsim ")) for line in block.lines)
    return block.language not in READ or prompts


def test_every_block_is_run_or_says_why_not() -> None:
    found = [
        (name(page), one) for page, all_blocks in BLOCKS.items() for one in all_blocks if is_command(one)
    ]
    assert not [
        f"{page}:{one.line} {one.language}"
        for page, one in found
        if not one.not_run and one.language not in RUN
    ]
    assert Counter(one.not_run for _, one in found if one.not_run) == NOT_RUN


@pytest.mark.slow("runs all commands of the pages in processes of their own")
@pytest.mark.parametrize("page", RUNNABLE, ids=name)
def test_page_from_top_to_bottom(page: Path, own_environment: dict[str, str], clone: Path) -> None:
    with Reader(clone, own_environment) as reader:
        assert not differences(page, reader)
