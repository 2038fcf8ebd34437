"""An invented language whose documents overlap like unrelated newswire stories.

A text is a random sequence of single words (with Zipf frequencies), numbers, stock phrases that every document may use,
and phrases of the document's topic. Because of phrases, unrelated documents share word 3-shingles, and because of
topics, a few unrelated pairs share many of them.
"""

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from benchmarks.lexicon import invent_numbers, invent_words

Ints = npt.NDArray[np.int64]
Floats = npt.NDArray[np.float64]
Tokens = npt.NDArray[np.int32]

# A token is variant * vocabulary size + word.
PLAIN, CAPITAL, COMMA, STOP, PARAGRAPH = range(5)


@dataclass(frozen=True, slots=True)
class LanguageShape:
    """Sizes and shares of the language, chosen so that unrelated documents overlap as much as newswire stories."""

    words: int = 60_000
    numbers: int = 5_000
    zipf_exponent: float = 1.05
    zipf_shift: float = 1.5
    stock_phrases: int = 60_000
    topics: int = 1_500
    phrases_per_topic: int = 30
    phrase_exponent: float = 0.65
    number_share: float = 0.03
    stock_share: float = 0.28
    mean_topic_share: float = 0.16
    largest_topic_share: float = 0.6
    sentence_share: float = 0.09
    paragraph_share: float = 0.4
    comma_share: float = 0.08


def zipf_cumulative(count: int, exponent: float, shift: float = 0.0) -> Floats:
    """Return the cumulative Zipf-Mandelbrot probabilities, float64[count]: p(rank) ~ (rank + shift) ** -exponent."""
    weights = (np.arange(1, count + 1) + shift) ** -exponent
    cumulative = np.cumsum(weights)
    return np.asarray(cumulative / cumulative[-1], dtype=np.float64)


def draw_ranks(rng: np.random.Generator, cumulative: Floats, count: int) -> Ints:
    """Draw `count` ranks from 0, int64, with cumulative probabilities."""
    ranks = np.searchsorted(cumulative, rng.random(count), side="right")
    # By rounding, the last cumulative probability may be less than a random number.
    return np.minimum(ranks, len(cumulative) - 1)


class Language:
    """The vocabulary and the phrase inventory, drawn once from `rng`; afterwards immutable."""

    def __init__(self, rng: np.random.Generator, shape: LanguageShape | None = None) -> None:
        self.shape = shape or LanguageShape()
        words = invent_words(rng, self.shape.words) + invent_numbers(rng, self.shape.numbers)
        self.vocabulary_size = len(words)
        self.spellings = [
            spelling
            for variant in (
                words,
                [word.capitalize() for word in words],
                [word + "," for word in words],
                [word + "." for word in words],
                [word + ".\n" for word in words],
            )
            for spelling in variant
        ]

        self._word_law = zipf_cumulative(self.shape.words, self.shape.zipf_exponent, self.shape.zipf_shift)
        self._stock_law = zipf_cumulative(self.shape.stock_phrases, self.shape.phrase_exponent)
        self._topic_law = zipf_cumulative(self.shape.phrases_per_topic, self.shape.phrase_exponent)
        self._build_inventory(rng)

    def _build_inventory(self, rng: np.random.Generator) -> None:
        """Store words, numbers, stock phrases and topic phrases, in this order, in one array of tokens."""
        phrases = self.shape.stock_phrases + self.shape.topics * self.shape.phrases_per_topic
        lengths = np.concatenate(
            [np.ones(self.vocabulary_size, dtype=np.int64), rng.integers(2, 9, phrases, dtype=np.int64)]
        )
        drawn = draw_ranks(rng, self._word_law, int(lengths[self.vocabulary_size :].sum()))
        self._inventory = np.concatenate([np.arange(self.vocabulary_size), drawn]).astype(np.int32)
        self._lengths = lengths
        self._starts = np.cumsum(lengths) - lengths
        # In some topics most text is phrases: these give the unrelated pairs with the largest overlap.
        shares = rng.exponential(self.shape.mean_topic_share, self.shape.topics)
        self._topic_shares = np.minimum(shares, self.shape.largest_topic_share)

    def draw_words(self, rng: np.random.Generator, count: int) -> Tokens:
        """Draw `count` plain single words by their frequency, int32."""
        return draw_ranks(rng, self._word_law, count).astype(np.int32)

    def draw_numbers(self, rng: np.random.Generator, count: int) -> Tokens:
        """Draw `count` plain numbers, int32."""
        return rng.integers(self.shape.words, self.vocabulary_size, count).astype(np.int32)

    def is_number(self, tokens: Tokens) -> npt.NDArray[np.bool_]:
        """Return for each token whether it is a number, in any variant."""
        return (tokens % self.vocabulary_size) >= self.shape.words

    def is_paragraph_end(self, tokens: Tokens) -> npt.NDArray[np.bool_]:
        """Return for each token whether it ends a paragraph."""
        return tokens >= PARAGRAPH * self.vocabulary_size

    def draw_topics(self, rng: np.random.Generator, count: int) -> Ints:
        """Draw a topic, from 0, for each of `count` documents; a few topics are common, and most are rare."""
        return draw_ranks(rng, zipf_cumulative(self.shape.topics, 0.7, 3.0), count)

    def sample(self, rng: np.random.Generator, target_words: Ints, topics: Ints) -> list[Tokens]:
        """Return a text as int32 tokens for each of `topics`; its length varies around `target_words`.

        Every text begins with a capital letter, ends with the end of a paragraph, and has at least one word.
        """
        if not len(topics):
            return []

        phrase_shares = self.shape.stock_share + self._topic_shares[topics]
        # A phrase has 5 words on average, and every other entry is one word.
        items = np.maximum(1, np.rint(target_words / (1.0 + 4.0 * phrase_shares)).astype(np.int64))
        entries = self._draw_entries(rng, np.repeat(topics, items))

        lengths = self._lengths[entries]
        ends = np.cumsum(lengths)
        # The position of each token in its phrase.
        within = np.arange(ends[-1]) - np.repeat(ends - lengths, lengths)
        tokens = self._inventory[np.repeat(self._starts[entries], lengths) + within]

        last_words = ends - 1
        text_ends = last_words[np.cumsum(items) - 1]
        self._punctuate(rng, tokens, last_words, text_ends)
        return np.split(tokens, text_ends[:-1] + 1)

    def _draw_entries(self, rng: np.random.Generator, topics: Ints) -> Ints:
        """Draw an entry of the inventory for each item; `topics` are the topics of the items' documents."""
        shape, first_phrase = self.shape, self.vocabulary_size
        chance = rng.random(len(topics))
        topic_from = shape.number_share + shape.stock_share
        kind = np.searchsorted([shape.number_share, topic_from], chance, side="right")

        # 0: numbers, 1: stock phrases, 2: phrases of the topic, 3: single words.
        kind[chance >= topic_from + self._topic_shares[topics]] = 3
        number, stock, topical, single = (np.flatnonzero(kind == value) for value in range(4))

        entries = np.empty(len(topics), dtype=np.int64)
        entries[number] = self.draw_numbers(rng, len(number))
        entries[stock] = first_phrase + draw_ranks(rng, self._stock_law, len(stock))
        ranks = draw_ranks(rng, self._topic_law, len(topical))
        first_topical = first_phrase + shape.stock_phrases
        entries[topical] = first_topical + topics[topical] * shape.phrases_per_topic + ranks
        entries[single] = draw_ranks(rng, self._word_law, len(single))
        return entries

    def _punctuate(self, rng: np.random.Generator, tokens: Tokens, last_words: Ints, text_ends: Ints) -> None:
        """Replace some tokens at the ends of phrases by their variants with punctuation, in place."""
        size, shape = self.vocabulary_size, self.shape
        chance = rng.random(len(last_words))
        sentence = chance < shape.sentence_share
        comma = ~sentence & (chance < shape.sentence_share + shape.comma_share)
        paragraph = chance < shape.sentence_share * shape.paragraph_share
        variants = np.zeros(len(tokens), dtype=np.int32)
        # Later variants replace earlier ones: the end of a paragraph is also the end of a sentence.
        variants[last_words[comma]] = COMMA
        variants[last_words[sentence]] = STOP
        variants[last_words[paragraph]] = PARAGRAPH
        variants[text_ends] = PARAGRAPH

        # Capitalise a plain word after the end of a sentence, and the first word of the text.
        starts = np.flatnonzero(variants >= STOP)[:-1] + 1
        opening = np.concatenate([np.zeros(1, dtype=np.int64), starts])
        opening = opening[variants[opening] == PLAIN]
        variants[opening] = CAPITAL
        tokens += variants * size

    def render(self, tokens: Tokens) -> str:
        """Return the text of tokens, with a line for each paragraph and without a line end at the end."""
        return " ".join(map(self.spellings.__getitem__, tokens.tolist())).replace("\n ", "\n").rstrip("\n")

    def render_plain(self, tokens: Tokens) -> str:
        """Return the words of tokens, without capitals and punctuation, as for a headline."""
        return self.render(tokens % self.vocabulary_size)
