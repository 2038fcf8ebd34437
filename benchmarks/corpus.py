"""A synthetic news-like corpus with planted copies; the same arguments give the same bytes.

python -m benchmarks corpus --documents 100000 --seed 1 --output corpus.jsonl.gz --clusters clusters.csv.gz

25 % of the documents are edited copies in clusters with Zipf sizes (2 to 1,000), 2 % are identical (in groups of at
most 2,000), 1 % have a long block of boilerplate in common, and 0.5 % are empty or tiny. A line of the output has id,
title and text. The clusters file has a line for every document that is not a plain single: its id, cluster (or
nothing), kind (original, near, exact, block or tiny) and edits. The bytes are the same only with the same versions of
NumPy and zlib.
"""

import gzip
import io
import json
import time
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

import numpy as np
from typer import Option

from benchmarks.edits import Editor, Story
from benchmarks.language import Language
from benchmarks.plan import EXACT, NEAR, ORIGINAL, SINGLE, TINY, Shares, make_plan

CHUNK = 10_000
BLOCK_WORDS = 250
LENGTH_SIGMA = 0.6
KINDS = {SINGLE: "single", ORIGINAL: "original", NEAR: "near", EXACT: "exact"}


def generator(seed: np.random.SeedSequence) -> np.random.Generator:
    """Return a random generator of the kind that all scripts of this package use."""
    return np.random.Generator(np.random.PCG64(seed))


@dataclass(frozen=True, slots=True)
class CorpusDocument:
    """A document, and what was planned for it."""

    external_id: str
    title: str
    text: str
    cluster: int  # from 0, or -1 for no cluster
    kind: str  # as in the clusters file
    edits: str = ""  # as in the clusters file


class Corpus:
    """The documents of one plan; `mean_words` is the mean length of an unedited body."""

    def __init__(
        self, documents: int, seed: int, mean_words: int = 200, shares: Shares | None = None
    ) -> None:
        language_seed, editor_seed, plan_seed, self._story_seed = np.random.SeedSequence(seed).spawn(4)
        self._mean_words = mean_words
        self.language = Language(generator(language_seed))
        self.plan = make_plan(documents, shares or Shares(), generator(plan_seed))
        editor_rng = generator(editor_seed)
        self._editor = Editor(self.language, editor_rng)
        lengths = np.full(self.plan.blocks, BLOCK_WORDS)
        topics = self.language.draw_topics(editor_rng, self.plan.blocks)
        self._blocks = self.language.sample(editor_rng, lengths, topics)

    def documents(self) -> Iterator[CorpusDocument]:
        """Yield all documents in the order of the plan, the same documents in every call."""
        rng = generator(self._story_seed)
        originals = self._write_stories(self.plan.clusters, rng)
        for start in range(0, len(self.plan.role), CHUNK):
            places = np.arange(start, min(start + CHUNK, len(self.plan.role)))
            singles = places[self.plan.role[places] == SINGLE]
            fresh = dict(zip(singles.tolist(), self._write_stories(len(singles), rng), strict=True))
            for place in places.tolist():
                if self.plan.role[place] == TINY:
                    yield CorpusDocument(self._name(place), "", self._tiny_text(rng), -1, "tiny")
                else:
                    original = fresh.get(place) or originals[self.plan.cluster[place]]
                    yield self._document(place, original, rng)

    def _write_stories(self, count: int, rng: np.random.Generator) -> list[Story]:
        """Return `count` stories with lognormal lengths."""
        # The mean of a lognormal is exp(centre + sigma² / 2).
        centre = np.log(self._mean_words) - LENGTH_SIGMA**2 / 2
        lengths = rng.lognormal(centre, LENGTH_SIGMA, count).clip(8, 5_000).astype(np.int64)
        topics = self.language.draw_topics(rng, count)
        headlines = self.language.sample(rng, rng.integers(6, 11, count), topics)
        bodies = self.language.sample(rng, lengths, topics)
        return [Story(headline, body) for headline, body in zip(headlines, bodies, strict=True)]

    def _document(self, place: int, original: Story, rng: np.random.Generator) -> CorpusDocument:
        """Return the document that is planned for a place of the file, made from the story that it shows or copies."""
        role, block = int(self.plan.role[place]), int(self.plan.block[place])
        kind, edits = KINDS[role], ""
        title, text = self._editor.render(original)
        if role == NEAR:
            title, text, edits = self._editor.republish(original, rng)
        if block >= 0:
            text, kind = f"{text}\n{self.language.render(self._blocks[block])}", "block"
        return CorpusDocument(self._name(place), title, text, int(self.plan.cluster[place]), kind, edits)

    def _name(self, place: int) -> str:
        """Return the external id of the document at a place of the file."""
        return f"d{int(self.plan.name[place]):07}"

    def _tiny_text(self, rng: np.random.Generator) -> str:
        """Return an empty text, white space, or one to three words."""
        chance = rng.random()
        if chance < 0.5:
            return "" if chance < 0.4 else "  \n "
        return self.language.render_plain(self.language.draw_words(rng, int(rng.integers(1, 4))))


@contextmanager
def open_gzip_text(path: Path) -> Iterator[io.TextIOWrapper]:
    """Open a gzip-compressed UTF-8 file for writing, without name or time in its header."""
    with (
        path.open("wb") as raw,
        # A name or time in the header would make files with equal contents differ.
        gzip.GzipFile(filename="", fileobj=raw, mode="wb", compresslevel=1, mtime=0) as packed,
        io.TextIOWrapper(packed, encoding="utf-8", newline="\n") as text,
    ):
        yield text


def json_line(document: CorpusDocument) -> str:
    """Return the line of a document in the output file."""
    record = {"id": document.external_id, "title": document.title, "text": document.text}
    return json.dumps(record, ensure_ascii=False) + "\n"


def cluster_line(document: CorpusDocument) -> str:
    """Return the line of a document in the clusters file."""
    cluster = document.cluster if document.cluster >= 0 else ""
    return f"{document.external_id},{cluster},{document.kind},{document.edits}\n"


def write_corpus(documents: Iterable[CorpusDocument], output: Path, clusters: Path | None) -> int:
    """Write both files and return the number of words of the corpus, including headlines."""
    words, planted = 0, ["id,cluster,kind,edits\n"]
    with open_gzip_text(output) as lines:
        for document in documents:
            lines.write(json_line(document))
            words += document.title.count(" ") + document.text.count(" ") + 2
            if document.kind != "single":
                planted.append(cluster_line(document))
    if clusters:
        with open_gzip_text(clusters) as lines:
            lines.writelines(planted)
    return words


def main(
    output: Annotated[Path, Option(metavar="FILE.jsonl.gz")],
    documents: Annotated[int, Option(help="Number of documents.")],
    seed: Annotated[int, Option(help="The same arguments give the same bytes.")] = 1,
    mean_words: Annotated[int, Option(help="Mean length of a body.")] = 200,
    clusters: Annotated[Path | None, Option(metavar="FILE.csv.gz", help="The planted clusters.")] = None,
) -> str:
    """Write the synthetic corpus."""
    started = time.perf_counter()
    words = write_corpus(Corpus(documents, seed, mean_words).documents(), output, clusters)
    seconds = time.perf_counter() - started
    return f"{documents} documents, {words / max(1, documents):.0f} words each, {seconds:.1f} s"
