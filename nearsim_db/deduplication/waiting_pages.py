"""The texts of pages, in a temporary file until all have been read and the lines that recur are known."""

from collections.abc import Iterator, Sequence
from concurrent.futures import Future
from typing import BinaryIO, Literal

import msgspec

from nearsim_db.readers.output import full_disk
from nearsim_db.readers.values import value_digest
from nearsim_db.similarity.recipe import Normalise
from nearsim_db.similarity.recipe.sections import NOWHERE
from nearsim_db.similarity.text.pages import line_reader
from nearsim_db.similarity.text.repeated_lines import Page, RepeatedLines

_SOURCE_BYTES, _SIZE_BYTES = 16, 8
_BATCH_CHARACTERS = 1_000_000


def rules_of_lines(rules: Normalise) -> Normalise:
    """Return the rules for texts that have been extracted from their pages, without the lines that recur."""
    if rules.drop_repeated == NOWHERE:
        return rules
    return msgspec.structs.replace(rules, html=False, drop_repeated=NOWHERE)


class WaitingPages:
    """Pages and their sources, in the order in which they are written to a temporary file."""

    def __init__(self, html: bool | Literal["main"], file: BinaryIO) -> None:
        self._read_lines = line_reader(html)
        self._file = file
        self.has_sources: bool = False  # whether any page has a source
        self.repeated: RepeatedLines | None = None  # None until `without_repeated_lines` is called

    def extract(self, contents: Sequence[str], sources: Sequence[object]) -> list[Page]:
        """Return the texts of some documents in lines, with digests of their sources."""
        self.has_sources = self.has_sources or any(source is not None for source in sources)
        return [
            Page(
                value_digest(source, _SOURCE_BYTES),
                text if self._read_lines is None else self._read_lines(text),
            )
            for text, source in zip(contents, sources, strict=True)
        ]

    def write(self, pages: Future[list[Page]]) -> None:
        """Append pages. Raises NearsimError if the disk is full."""
        with full_disk():
            for page in pages.result():
                text = page.text.encode()
                self._file.write(page.source + len(text).to_bytes(_SIZE_BYTES, "big") + text)

    def without_repeated_lines(self) -> Iterator[tuple[int, list[str]]]:
        """Yield the texts of all pages without the lines that recur, in batches, each with its first number."""
        with full_disk():
            self._file.flush()
        self.repeated = RepeatedLines(self._pages)

        first, texts, size = 0, list[str](), 0
        for page in self._pages():
            texts.append(self.repeated.without(page))
            size += len(texts[-1])
            if size >= _BATCH_CHARACTERS:
                yield first, texts
                first, texts, size = first + len(texts), [], 0
        if texts:
            yield first, texts

    def _pages(self) -> Iterator[Page]:
        self._file.seek(0)
        while source := self._file.read(_SOURCE_BYTES):
            size = int.from_bytes(self._file.read(_SIZE_BYTES), "big")
            yield Page(source, self._file.read(size).decode())
