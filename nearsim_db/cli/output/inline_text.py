"""Text with marked words: colours on a terminal, [-left-] {+right+} and #numbers elsewhere."""

import sys
from collections.abc import Iterable, Sequence

from nearsim_db.analysis.inline_diff import Run
from nearsim_db.cli.output import columns
from nearsim_db.cli.output.terminal import escaped_cell, width_of
from nearsim_db.store.settings import wants_colours

_STYLES = {"both": "", "left": "red", "right": "green"}
_NUMBER = "bold reverse"
_MARKS = {"both": ("", ""), "left": ("[-", "-]"), "right": ("{+", "+}")}


def print_runs(lines: Iterable[Sequence[Run]]) -> None:
    """Print runs of words, each list from the beginning of a line; wrapped on a terminal."""
    if sys.stdout.isatty() and wants_colours():
        _print_coloured(lines)
        return
    width = width_of(sys.stdout)
    for runs in lines:
        text = "".join(_marked(run) for run in runs).rstrip()
        sys.stdout.write("".join(f"{line}\n" for line in columns.wrap(text, width)))


def _print_coloured(lines: Iterable[Sequence[Run]]) -> None:
    from rich.console import Console
    from rich.text import Text

    console = Console(file=sys.stdout, width=width_of(sys.stdout), highlight=False)
    for runs in lines:
        text = Text()
        for run in runs:
            text.append(
                _escaped(run.text), f"{_STYLES[run.side]} {_NUMBER}" if run.is_number else _STYLES[run.side]
            )
        text.rstrip()
        console.print(text)


def _marked(run: Run) -> str:
    before, after = _MARKS[run.side]
    return f"{before}{'#' if run.is_number else ''}{_escaped(run.text)}{after}"


def _escaped(text: str) -> str:
    """Return a text with its line ends, and every other control character escaped."""
    lines = text.replace("\r\n", "\n").replace("\t", " ").split("\n")
    return "\n".join(map(escaped_cell, lines))
