"""A uniform sample of documents, bounded in number and in characters, in one pass over what is read."""

import heapq
import random
from collections.abc import Callable, Collection, Iterable
from dataclasses import dataclass, field

from nearsim_db.records import Document, Progress, ReadDocument, Reject, silent

MOST_DOCUMENTS = 10_000
MOST_CHARACTERS = 30_000_000
_TOLD_EVERY = 1_000

TextOf = Callable[[str | None, str | None], str]


@dataclass(slots=True)
class Sample:
    """What was drawn: `texts` of `documents` read, every set of so many texts as probable as any other.

    `wanted` are the texts of documents asked for by id, drawn or not; `rejected` counts records that cannot be used.
    """

    texts: list[str]
    documents: int
    rejected: int = 0
    wanted: dict[str, str] = field(default_factory=dict)
    first_rejects: list[Reject] = field(default_factory=list)

    @property
    def characters(self) -> int:
        """Of all texts drawn."""
        return sum(map(len, self.texts))


class Reservoir:
    """The texts with the least of random numbers, one drawn for each; the largest give way when room ends."""

    def __init__(self, size: int, characters: int, seed: int) -> None:
        self._size = size
        self._room = characters
        self._random = random.Random(seed)
        self._held: list[tuple[float, int, str]] = []
        self._limit = 1.0
        self.seen = 0

    def offer(self, text: str) -> None:
        """Take a text in, or not."""
        self.seen += 1
        number = self._random.random()
        if number >= self._limit:
            return
        heapq.heappush(self._held, (-number, self.seen, text))
        self._room -= len(text)
        while len(self._held) > self._size or (self._room < 0 and len(self._held) > 2):
            number, _, dropped = heapq.heappop(self._held)
            self._room += len(dropped)
            # What came before would have had to be below this, too.
            self._limit = -number

    def texts(self) -> list[str]:
        """What was kept, in the order it came."""
        return [text for _, _, text in sorted(self._held, key=lambda held: held[1])]


def draw(
    records: Iterable[ReadDocument | Reject],
    text_of: TextOf,
    size: int = MOST_DOCUMENTS,
    seed: int = 1,
    wanted: Collection[str] = (),
    progress: Progress = silent,
    characters: int = MOST_CHARACTERS,
) -> Sample:
    """Draw from what readers yield, holding no more than the sample (Vitter's problem, by random sort keys).

    `text_of` makes a text of title and body.
    """
    reservoir = Reservoir(size, characters, seed)
    sample = Sample([], 0)
    for record in records:
        if isinstance(record, Reject):
            sample.rejected += 1
            if len(sample.first_rejects) < 5:
                sample.first_rejects.append(record)
            continue
        _offer(reservoir, sample, record.document, text_of, wanted)
        if reservoir.seen % _TOLD_EVERY == 0:
            progress("read", reservoir.seen, None)
    progress("read", reservoir.seen, None)
    sample.texts, sample.documents = reservoir.texts(), reservoir.seen
    return sample


def _offer(
    reservoir: Reservoir, sample: Sample, document: Document, text_of: TextOf, wanted: Collection[str]
) -> None:
    text = text_of(document.title, document.body)
    reservoir.offer(text)
    if document.external_id in wanted:
        sample.wanted[document.external_id] = text
