"""A family of texts from one template among synthetic documents; its members have a similarity of 0.8 or more.

    python -m benchmarks templates --family 2000 --others 20000 --seed 1 --output templates.jsonl.gz

The ids of the family begin with t. The ids of the other documents, which are from `corpus` and include copies, begin
with d.
"""

from collections.abc import Collection, Iterator, Sequence
from pathlib import Path
from typing import Annotated

import numpy as np
from typer import Option

from benchmarks.corpus import Corpus, CorpusDocument, generator, write_corpus
from benchmarks.language import Language
from benchmarks.options import Seed

TITLE_WORDS = 8
BODY_WORDS = 320
BODY_SLOTS = 8
MIN_SIMILARITY = 0.8


def least_similarity(words: Sequence[str], slots: Collection[int], size: int = 3) -> float:
    """Return a lower bound of the Jaccard similarity, over word shingles, of two texts that fill the slots differently.

    Let c be the number of distinct shingles without a slot, and s the number of windows with a slot. Both texts have
    the c shingles, and at most s others each. So their intersection is at least c, and their union at most c + 2s.
    """
    clear, touched = set(), 0
    for start in range(len(words) - size + 1):
        if any(start <= slot < start + size for slot in slots):
            touched += 1
        else:
            clear.add(tuple(word.lower() for word in words[start : start + size]))
    return len(clear) / (len(clear) + 2 * touched)


class Template:
    """A fixed headline and body with evenly spread slots, which each member of the family fills with other numbers.

    Raises ValueError if the similarity of two members could be below MIN_SIMILARITY.
    """

    def __init__(self, language: Language, rng: np.random.Generator) -> None:
        self._language = language
        self._title = language.render_plain(language.draw_words(rng, TITLE_WORDS)).capitalize()
        topic = language.draw_topics(rng, 1)
        self._body = language.sample(rng, np.array([BODY_WORDS]), topic)[0]
        self._slots = np.linspace(10, len(self._body) - 10, BODY_SLOTS).astype(np.int64)
        title, text = self.fill(0, rng)
        # The number in the title, which follows its TITLE_WORDS words, is a slot too.
        slots = [TITLE_WORDS, *(TITLE_WORDS + 1 + self._slots).tolist()]
        self.least_similarity = least_similarity([*title.split(), *text.split()], slots)
        if self.least_similarity < MIN_SIMILARITY:
            raise ValueError(f"the template guarantees only {self.least_similarity:.3f}; use another seed")

    def fill(self, number: int, rng: np.random.Generator) -> tuple[str, str]:
        """Return the title and text of a member. The title ends with its number, so no two members are equal."""
        size = self._language.vocabulary_size
        body = self._body.copy()
        body[self._slots] = body[self._slots] // size * size + self._language.draw_numbers(rng, BODY_SLOTS)
        return f"{self._title} no.{number}", self._language.render(body)


def with_family(corpus: Corpus, family: int, rng: np.random.Generator) -> Iterator[CorpusDocument]:
    """Yield the documents of the corpus, with `family` members of one template scattered among them."""
    template = Template(corpus.language, rng)
    others = corpus.documents()
    is_member = np.arange(family + len(corpus.plan.role)) < family
    for number, member in enumerate(rng.permutation(is_member).tolist()):
        if member:
            title, text = template.fill(number, rng)
            yield CorpusDocument(f"t{number:07}", title, text, -1, "template")
        else:
            yield next(others)


def main(
    output: Annotated[Path, Option(metavar="FILE.jsonl.gz")],
    family: Annotated[int, Option(help="Number of members.")] = 2_000,
    others: Annotated[int, Option(help="Number of other documents.")] = 20_000,
    seed: Seed = 1,
) -> str:
    """Write a family of texts from one template among documents of the synthetic corpus."""
    rng = generator(np.random.SeedSequence([seed, family]))
    write_corpus(with_family(Corpus(others, seed), family, rng), output, None)
    return f"{family} members among {others} other documents"
