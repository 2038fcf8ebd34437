"""Words and sentences: removal of short words and stop words, stemming, and sentence boundaries."""

import re
import threading
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from itertools import islice, pairwise

from msgspec.structs import replace

from nearsim_db.errors import RecipeError
from nearsim_db.similarity.recipe import Recipe, Shingle

# 127 words, in the order in which the list was published.
_WORDS = """
i me my myself we our ours ourselves you your yours yourself yourselves he him his himself she her hers herself it
its itself they them their theirs themselves what which who whom this that these those am is are was were be been
being have has had having do does did doing a an the and but if or because as until while of at by for with about
against between into through during before after above below to from up down in out on off over under again further
then once here there when where why how all any both each few more most other some such no nor not only own same so
than too very s t can will just don should now
"""

CLASSIC = tuple(_WORDS.split())
CLASSIC_ENGLISH = ("en", "english")
# The list of 1,333 words of the package stop-words. In recipes of the oldest indexes "en" means this list.
LONG_ENGLISH = "en-long"

# Some stemmers take a time quadratic in the length of a word.
MAX_STEMMED_CHARACTERS = 256


_WORD = re.compile(r"\w+")


def has_words(text: str, count: int) -> bool:
    """Whether a text has at least `count` runs of letters and digits. `count` is 1 or more."""
    return next(islice(_WORD.finditer(text), count - 1, None), None) is not None


@dataclass(frozen=True, slots=True)
class WordFilter:
    """Removes short words and stop words, then stems the other words. Threads may share it."""

    stop: frozenset[str]  # stop words
    shortest: int  # least length of a word, in code points
    stem: Callable[[list[str]], list[str]] | None  # stems several words at once

    def __call__(self, text: str) -> str:
        """Filter and stem a canonical text, whose words are separated by single spaces."""
        return " ".join(self.kept(text.split(" "))[1])

    def kept(self, words: Sequence[str]) -> tuple[list[int], list[str]]:
        """Return the places of the words that are kept, and the stems of these words."""
        stop, shortest = self.stop, self.shortest
        places = [at for at, word in enumerate(words) if len(word) >= shortest and word not in stop]
        kept_words = [words[at] for at in places]
        if self.stem is None:
            return places, kept_words
        stems = [(at, stem) for at, stem in zip(places, self.stem(kept_words), strict=True) if stem]
        return [at for at, _ in stems], [stem for _, stem in stems]


def word_filter(rules: Shingle, canonical_word: Callable[[str], str]) -> WordFilter | None:
    """Return the word filter of a recipe, or None if the recipe neither removes nor stems words.

    Stop words are first normalised by `canonical_word`. A stop word that tokenisation splits into several words, such
    as "don't" with `tokens = "unicode"`, never matches. Lengths and stop words are checked before stemming. A word
    whose stem is empty is dropped, and a word of more than MAX_STEMMED_CHARACTERS characters is not stemmed. Raises
    RecipeError for a language that the libraries do not support.
    """
    stop = frozenset(canonical_word(word) for word in stop_words(rules.stopwords))
    shortest = rules.min_token_length
    stem = _stemmer(rules.stem)
    if not stop and shortest == 1 and stem is None:
        return None
    return WordFilter(stop, shortest, stem)


def stop_words(chosen: str | tuple[str, ...]) -> tuple[str, ...]:
    """Return the stop words for a value of `shingle.stopwords`: none, a list, or the name of a list.

    Raises RecipeError if there is no list of this name.
    """
    if isinstance(chosen, tuple):
        return chosen
    if chosen == "none":
        return ()
    if chosen in CLASSIC_ENGLISH:
        return CLASSIC
    import stop_words as library

    try:
        return tuple(library.get_stop_words("en" if chosen == LONG_ENGLISH else chosen))
    except library.StopWordError as error:
        languages = ", ".join(sorted([*library.LANGUAGE_MAPPING, LONG_ENGLISH]))
        raise RecipeError(
            f"shingle.stopwords: no list for {chosen!r}; choose one of none, {languages}"
        ) from error


def library_versions(recipe: Recipe) -> dict[str, str]:
    """Return the versions of the libraries that produce a recipe's features, by library.

    Another version of one of them may produce other features.
    """
    from importlib.metadata import version

    listed = recipe.shingle.stopwords
    needed = {
        "stop-words": isinstance(listed, str) and listed not in ("none", *CLASSIC_ENGLISH),
        "PyStemmer": recipe.shingle.stem != "none",
        "Pygments": recipe.shingle.language is not None,
        "trafilatura": recipe.normalise.html == "main",
    }
    return {library: version(library) for library, used in needed.items() if used}


def with_long_english(recipe: Recipe) -> Recipe | None:
    """Return a recipe with the long English list instead of the classic list, or None if it uses another list."""
    if recipe.shingle.stopwords not in CLASSIC_ENGLISH:
        return None
    return replace(recipe, shingle=replace(recipe.shingle, stopwords=LONG_ENGLISH))


class _Stemmers(threading.local):
    """A stemmer for each thread. Stemmers of PyStemmer have state, so threads must not share them."""

    def __init__(self, language: str) -> None:
        import Stemmer

        self.stem_words: Callable[[list[str]], list[str]] = Stemmer.Stemmer(language).stemWords


def _stemmer(language: str) -> Callable[[list[str]], list[str]] | None:
    if language == "none":
        return None
    try:
        stemmers = _Stemmers(language)
    except (KeyError, UnicodeEncodeError) as error:
        import Stemmer

        languages = ", ".join(Stemmer.algorithms())
        raise RecipeError(
            f"shingle.stem: no stemmer for {language!r}; choose one of none, {languages}"
        ) from error

    def stem(words: list[str]) -> list[str]:
        if max(map(len, words), default=0) <= MAX_STEMMED_CHARACTERS:
            return stemmers.stem_words(words)
        return [
            word if len(word) > MAX_STEMMED_CHARACTERS else stemmers.stem_words([word])[0] for word in words
        ]

    return stem


_MARKS = ".!?…。！？｡"
_CLOSERS = "\"'”’»)\\]」』）"
_CJK = "\u3040-\u30ff\u3400-\u9fff\uf900-\ufaff\U00020000-\U0003ffff"

# A sentence ends with a run of marks and closing quotes or brackets before a space. CJK marks do not need the space,
# and neither do ! and ? before a CJK character, because NFKC converts the wide marks to these. A blank line, which may
# be quoted, and a colon at the end of a line end a sentence, too. A run matches only from its first mark and without
# backtracking, so the time is linear even for a text that consists of dots.
_END = re.compile(
    rf"""(?<![{_MARKS}])[{_MARKS}]*[。！？｡][{_MARKS}]*+[{_CLOSERS}]*+\s*+
       | (?<![{_MARKS}])[{_MARKS}]++[{_CLOSERS}]*+\s++
       | (?<![{_MARKS}])[{_MARKS}]*[!?][{_CLOSERS}]*+(?=[{_CJK}])
       | [:：][{_CLOSERS}]*+[^\S\n]*+\n\s*+
       | \n\s*\n
       | \n(?:[^\S\n]*+>)++[^\S\n]*+(?=\n)
    """,
    re.VERBOSE,
)
# The marks > at the beginning of a line that quotes another mail.
_QUOTE_MARKS = re.compile(r"^(?:[^\S\n]*+>)*+", re.MULTILINE)


def sentence_ends(text: str) -> list[int]:
    """Return the places in a text at which sentences end and the next ones begin, in order."""
    ends = [end.end() for end in _END.finditer(text)]
    return ends if ">" not in text else sorted({*ends, *_quotation_ends(text)})


def _quotation_ends(text: str) -> Iterator[int]:
    """Yield the beginning of each line that begins with more or fewer `>` than the line above it."""
    lines = _QUOTE_MARKS.finditer(text)
    for above, line in pairwise(lines):
        if above[0].count(">") != line[0].count(">"):
            yield line.start()


def split(text: str) -> list[str]:
    """Return the sentences of a text in order, without blank sentences."""
    parts = [text[begin:end] for begin, end in pairwise([0, *sentence_ends(text), len(text)])]
    return [part for part in parts if part.strip()]
