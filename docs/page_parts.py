"""Replace the generated parts of a page: what stands between `<!-- name -->` and `<!-- /name -->`."""

import re
from collections.abc import Iterable, Mapping, Sequence


def replace(page: str, parts: Mapping[str, str]) -> str:
    """Return the page with each part of these names replaced. Raises ValueError if the page lacks one."""
    for name, content in parts.items():
        pattern = re.compile(rf"(<!-- {name} -->\n).*?(\n<!-- /{name} -->)", re.DOTALL)
        page, count = pattern.subn(lambda match, put=content: f"{match[1]}\n{put}\n{match[2]}", page)  # type: ignore[misc]
        if count != 1:
            raise ValueError(f"the page {page.partition(chr(10))[0]!r} needs one part <!-- {name} -->")
    return page


def table(heads: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """Return a table; `|` in a cell is escaped."""
    lines = [heads, ["---"] * len(heads), *([cell.replace("|", "\\|") for cell in row] for row in rows)]
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)
