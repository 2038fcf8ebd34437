"""Rows of CSV and TSV, parsed in blocks of lines."""

import csv
from collections.abc import Generator, Iterable, Iterator
from io import StringIO
from itertools import chain
from typing import cast

from nearsim_db.readers.input_file import InputFile

_NO_LINES: list[bytes] = []
_MOST_OF_A_BLOCK = 2**28


def csv_rows(
    file: InputFile, delimiter: str, *, keep: bool
) -> Generator[tuple[int, list[str] | str, list[bytes]], None, None]:
    """Yield each row that is not blank with its first line number, or the reason that it cannot be read.

    With `keep` also yield the lines of the row, without their ends.
    """
    # The limit belongs to the process: it is only ever raised. A row beyond the limit of the file gets no larger than
    # that and a block.
    csv.field_size_limit(max(csv.field_size_limit(), 2 * file.limit + _MOST_OF_A_BLOCK))
    lines = _Lines(file, keep=keep)
    rows = csv.reader(chain.from_iterable(lines.blocks()), delimiter=delimiter, strict=True)
    begin = 1
    while True:
        try:
            for row in rows:
                end = rows.line_num
                if end == begin and not lines.are_checked:
                    if row:
                        yield begin, row, _NO_LINES
                elif lines.size_until(end) > file.limit:
                    yield begin, file.too_long, _NO_LINES
                elif row:
                    yield begin, row, lines.kept_until(end)
                if end > begin:
                    lines.forget()
                lines.begin = begin = end + 1
            return
        except csv.Error as error:
            yield begin, f"not a valid row: {error}; check for an unclosed or misplaced quote", _NO_LINES
            lines.begin = begin = rows.line_num + 1
            lines.forget()


class _Lines:
    """The lines of a file as text, and the size and lines of the current row.

    It begins at line `begin`, maybe in an earlier block.
    """

    def __init__(self, file: InputFile, *, keep: bool) -> None:
        self._file = file
        self._keep = keep
        self._lines: list[bytes | None] = []
        self._first = self.begin = 1
        self._carried: list[bytes] = []
        self._carried_bytes = 0
        self.are_checked = keep

    def blocks(self) -> Iterator[Iterator[str]]:
        """Yield blocks of lines with their ends."""
        for first, lines in self._file.blocks():
            self._carry()
            self._first, self._lines = first, lines
            has_long = None in lines
            self.are_checked = self._keep or has_long
            known = [line or b"" for line in lines] if has_long else cast(list[bytes], lines)
            text = StringIO(b"\n".join(known).decode("utf-8", "surrogateescape") + "\n", newline="\n")
            yield self._without_rest(text) if self._carried_bytes > self._file.limit else text

    def _without_rest(self, lines: Iterable[str]) -> Iterator[str]:
        """Yield lines; of the current row, which is too long already, only the quote that ends it.

        The row is in quotes, and an even number of them leaves it so.
        """
        row = self.begin
        for line in lines:
            yield line if self.begin > row else '"\n' * (line.count('"') % 2)

    def forget(self) -> None:
        """Forget the part of a row that was in earlier blocks."""
        self._carried, self._carried_bytes = [], 0

    def size_until(self, end: int) -> int:
        """Return the size of the current row in bytes, without the newline that ends it."""
        return self._carried_bytes + self._size(self._of_row(end)) - 1

    def kept_until(self, end: int) -> list[bytes]:
        """Return the lines of the current row if they are kept."""
        return [*self._carried, *cast(list[bytes], self._of_row(end))] if self._keep else _NO_LINES

    def _of_row(self, end: int) -> list[bytes | None]:
        return self._lines[max(0, self.begin - self._first) : end + 1 - self._first]

    def _carry(self) -> None:
        begun = self._of_row(self._first + len(self._lines) - 1)
        self._carried_bytes += self._size(begun)
        if self._keep:
            self._carried += [line or b"" for line in begun]

    def _size(self, lines: list[bytes | None]) -> int:
        return sum(self._file.limit + 2 if line is None else len(line) + 1 for line in lines)
