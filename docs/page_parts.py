"""Generated parts of pages. A part is the text between `<!-- name -->` and `<!-- /name -->`."""

import re
from collections.abc import Iterable, Mapping, Sequence


def replace(page: str, parts: Mapping[str, str]) -> str:
    """Return the page with new contents for the parts. Raises ValueError if the page does not have each part once."""
    for name, content in parts.items():
        pattern = re.compile(rf"(<!-- {name} -->\n).*?(\n<!-- /{name} -->)", re.DOTALL)
        page, count = pattern.subn(lambda match, put=content: f"{match[1]}\n{put}\n{match[2]}", page)  # type: ignore[misc]
        if count != 1:
            raise ValueError(f"the page {page.partition(chr(10))[0]!r} needs one part <!-- {name} -->")
    return page


def table(headings: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """Return a Markdown table. The character `|` is escaped in cells."""
    lines = [headings, ["---"] * len(headings), *([cell.replace("|", "\\|") for cell in row] for row in rows)]
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)
