"""Documents: families with known results under either recipe, and a crowd for the writers."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

import numpy as np

from nearsim_db.records import Document
from nearsim_db.similarity.recipe import Recipe, from_mapping

_WORDS_ASKED, _WORDS_KEPT = 30, 24
_VOCABULARY = 30_000
_COPIES, _TWINS = 0.3, 0.02

# Words in any order before, runs of three words after.
SETTINGS_AFTER = ("shingle.k=3", "match.threshold=0.5", "bands.count=24", "bands.rows=2")


def recipe_before() -> Recipe:
    """Return the recipe of the generation to be replaced."""
    return from_mapping(
        {
            "normalise": {"unicode": "none", "case": "lower", "invisible": "keep"},
            "shingle": {"scheme": "word", "k": 1, "tokens": "whitespace"},
            "sketch": {"k": 48},
            "bands": {"count": 12, "rows": 4},
            "match": {"threshold": 0.8},
        }
    )


@dataclass(frozen=True, slots=True)
class Family:
    """Three documents that nobody edits. The queried one is paired under the recipe before with the second, which
    has the same words in another order, and under the recipe after with the third, its beginning.
    """

    asked: Document
    reordered: Document
    shortened: Document

    def explaining_recipe(self, names: Sequence[str]) -> str:
        """Return which recipe explains the result for the first document: "before", "after", or else the result."""
        others = sorted(name for name in names if name != self.asked.external_id)
        if others == [self.reordered.external_id]:
            return "before"
        if others == [self.shortened.external_id]:
            return "after"
        return f"{self.asked.external_id} found {', '.join(others) or 'nothing'}"


def make_families(count: int, seed: int) -> list[Family]:
    """Return families that share no word with each other or with the crowd.

    As sets of words the first two have a similarity of 30/32, the first and the third of 24/36; as runs of
    three words of about 0 and of 22/34.
    """
    rng = np.random.Generator(np.random.PCG64([seed, count]))
    return [_family(number, rng) for number in range(count)]


def _family(number: int, rng: np.random.Generator) -> Family:
    words = [f"f{number}w{place}" for place in range(_WORDS_ASKED)]
    order = rng.permutation(_WORDS_ASKED).tolist()
    other = [f"f{number}x{place}" for place in range(_WORDS_ASKED - _WORDS_KEPT)]
    return Family(
        Document(f"asked-{number}", body=" ".join(words)),
        Document(
            f"reordered-{number}", body=" ".join([*(words[place] for place in order), f"f{number}y", "y"])
        ),
        Document(f"shortened-{number}", body=" ".join([*words[:_WORDS_KEPT], *other])),
    )


def make_crowd(count: int, seed: int) -> list[Document]:
    """Return texts of 20 to 40 words: new ones, copies of earlier ones with a word or two changed, and a few
    twins.
    """
    rng = np.random.Generator(np.random.PCG64([seed, count, 1]))
    lengths = rng.integers(20, 41, count).tolist()
    kinds = rng.random(count).tolist()
    words = [f"w{word}" for word in rng.integers(0, _VOCABULARY, sum(lengths)).tolist()]
    texts: list[str] = []
    start = 0
    for number, (length, kind) in enumerate(zip(lengths, kinds, strict=True)):
        own = words[start : start + length]
        start += length
        if kind < _COPIES and texts:
            text = texts[int(rng.integers(max(0, number - 500), number))]
            own = text.split() if kind < _TWINS else edited(text, rng).split()
        texts.append(" ".join(own))
    return [Document(f"crowd-{number}", body=text) for number, text in enumerate(texts)]


def repeat_corpus(corpus: Sequence[Document], count: int, seed: int) -> list[Document]:
    """Return the first documents of a corpus, repeated with a few words changed if it has too few."""
    rng = np.random.Generator(np.random.PCG64([seed, count, 2]))

    def repeated() -> Iterator[Document]:
        for number in range(count):
            one = corpus[number % len(corpus)]
            body = edited(one.body or one.title or "", rng) if number >= len(corpus) else one.body
            yield replace(one, external_id=f"crowd-{number}", body=body)

    return list(repeated())


def edited(text: str, rng: np.random.Generator) -> str:
    """Return a text with a word or two changed."""
    words = text.split()
    for _ in range(int(rng.integers(1, 3)) if words else 0):
        words[int(rng.integers(len(words)))] = f"w{int(rng.integers(_VOCABULARY))}"
    return " ".join(words)
