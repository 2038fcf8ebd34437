"""The proposed recipe as TOML, commented with the reason for each value."""

import textwrap
from collections.abc import Mapping

from nearsim_db.similarity.recipe import Recipe, to_toml

_WIDTH = 100


def commented(recipe: Recipe, heading: str, reasons: Mapping[str, str]) -> str:
    """Return the recipe as TOML; `reasons`, by key path such as match.threshold, become comments above the keys."""
    lines = [*_comment(heading), ""]
    section = ""
    for line in to_toml(recipe).splitlines():
        if line.startswith("["):
            section = line.strip("[]") + "."
        reason = reasons.get(section + line.partition(" = ")[0])
        lines += [*(_comment(reason) if reason else ()), line]
    return "\n".join([*lines, ""])


def _comment(text: str) -> list[str]:
    return textwrap.wrap(
        text,
        _WIDTH,
        initial_indent="# ",
        subsequent_indent="# ",
        break_long_words=False,
        break_on_hyphens=False,
    )
