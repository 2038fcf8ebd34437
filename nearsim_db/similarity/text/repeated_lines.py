"""Lines that recur on many pages of one source, such as menus and footers, and texts without these lines.

A line recurs if at least the share `MIN_SHARE` of the pages of a source have it, but no fewer than `MIN_PAGES`; a line
of `ENOUGH_PAGES` recurs in any case. A page counts only if it also has text of its own: `MIN_OWN_WORDS` words in lines
that at most half as many pages have. So a menu recurs, but not the paragraphs of a story that is published with a few
changes. Equal pages count as one.
"""

import hashlib
from collections.abc import Callable, Iterable
from dataclasses import dataclass

import numpy as np

from nearsim_db.similarity.arrays import Hashes, Ints, Mask
from nearsim_db.similarity.common_shingles import ShingleCounts

MIN_PAGES, ENOUGH_PAGES = 3, 50
MIN_SHARE = 0.1
MIN_OWN_WORDS = 20


@dataclass(frozen=True, slots=True)
class Page:
    """The text of a page in lines, and the source that it belongs to, as a digest of 1 to 64 bytes."""

    source: bytes
    text: str

    def lines(self) -> list[str]:
        return self.text.split("\n")

    def ids(self) -> Hashes:
        """Return the id of each line, which depends on the source, but not on case and spaces."""
        source = self.source
        digests = [
            hashlib.blake2b(" ".join(line.split()).casefold().encode(), digest_size=8, key=source).digest()
            for line in self.lines()
        ]
        return np.frombuffer(b"".join(digests), np.uint64)

    def source_id(self) -> Hashes:
        """Return the id that counts the pages of the source, which is the id of a blank line, as an array."""
        return Page(self.source, "").ids()


class RepeatedLines:
    """The lines that recur on the pages of a corpus; `read` yields all pages, and is called twice."""

    def __init__(self, read: Callable[[], Iterable[Page]]) -> None:
        # Count the pages of each source and of each line.
        self._counter = ShingleCounts()
        for page in read():
            self._counter.add([np.append(page.ids(), page.source_id())])

        # Count the pages that have a line and text of their own. The digest of the page tells pages apart.
        self._differing = ShingleCounts()
        for page in read():
            ids = page.ids()
            digest = np.frombuffer(hashlib.blake2b(ids.tobytes(), digest_size=8).digest(), np.uint64)
            has_own_text = _has_own_text(page, self._counter.counts_of(ids))
            self._differing.add([np.concatenate((ids[has_own_text], digest))])

        self.lines: int = 0  # how many lines were left out so far, with repetitions
        self.words: int = 0  # the words in them
        self.example: str = ""  # the longest of them

    def without(self, page: Page) -> str:
        """Return the text of a page without the lines that recur."""
        repeated = self._differing.counts_of(page.ids()) >= self._min_pages(page)
        if not repeated.any():
            return page.text

        kept = []
        for line, is_repeated in zip(page.lines(), repeated.tolist(), strict=True):
            if not is_repeated or not line.strip():
                kept.append(line)
                continue
            self.lines += 1
            self.words += len(line.split())
            self.example = max(self.example, line.strip(), key=len)
        return "\n".join(kept)

    def _min_pages(self, page: Page) -> float:
        pages = int(self._counter.counts_of(page.source_id())[0])
        return max(MIN_PAGES, min(ENOUGH_PAGES, MIN_SHARE * pages))


def _has_own_text(page: Page, counts: Ints) -> Mask:
    """Return for each line whether the page has enough words in lines that at most half as many pages have."""
    order = np.argsort(counts)
    words = np.cumsum([0, *(len(line.split()) for line in page.lines())])
    words = np.concatenate(([0], np.cumsum(np.diff(words)[order])))
    rarer = np.searchsorted(counts[order], counts // 2, "right")
    enough: Mask = words[rarer] >= MIN_OWN_WORDS
    return enough
