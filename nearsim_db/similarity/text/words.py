"""Words and sentences: filtering of short words and stop words, stemming, sentence boundaries."""

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
# The library's list of 1,333 words, which "en" meant at first.
LONG_ENGLISH = "en-long"

# Some stemmers take time quadratic in the length of a word.
MAX_STEMMED_CHARACTERS = 256


_WORD = re.compile(r"\w+")


def has_words(text: str, count: int) -> bool:
    """Whether a text has so many runs of letters and digits, at least 1."""
    return next(islice(_WORD.finditer(text), count - 1, None), None) is not None


@dataclass(frozen=True, slots=True)
class WordFilter:
    """What a recipe does to words: drops short ones and stop words, then stems. Threads may share it."""

    stop: frozenset[str]
    shortest: int
    stem: Callable[[list[str]], list[str]] | None

    def __call__(self, text: str) -> str:
        """Return canonical text (words separated by single spaces) with the words that stay."""
        return " ".join(self.kept(text.split(" "))[1])

    def kept(self, words: Sequence[str]) -> tuple[list[int], list[str]]:
        """Return the places of the words that stay, and these words, stemmed."""
        stop, shortest = self.stop, self.shortest
        places = [at for at, word in enumerate(words) if len(word) >= shortest and word not in stop]
        chosen = [words[at] for at in places]
        if self.stem is None:
            return places, chosen
        stems = [(at, stem) for at, stem in zip(places, self.stem(chosen), strict=True) if stem]
        return [at for at, _ in stems], [stem for _, stem in stems]


def word_filter(rules: Shingle, canonical_word: Callable[[str], str]) -> WordFilter | None:
    """Return the filter of a recipe's words, or None if nothing is to be filtered.

    Stop words are normalised by `canonical_word` first; one that tokenisation splits into several words (don't,
    under unicode) never matches. Lengths, in code points, and stop words are checked before stemming; a word
    that the stemmer reduces to nothing is dropped, and one of more than MAX_STEMMED_CHARACTERS characters stays as it
    is. Raises RecipeError for a language unknown to the libraries.
    """
    stop = frozenset(canonical_word(word) for word in stop_words(rules.stopwords))
    shortest = rules.min_token_length
    stem = _stemmer(rules.stem)
    if not stop and shortest == 1 and stem is None:
        return None
    return WordFilter(stop, shortest, stem)


def stop_words(chosen: str | tuple[str, ...]) -> tuple[str, ...]:
    """Return a recipe's stop words: none, its own list, the classic English one, or the library's for a language."""
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
        known = ", ".join(sorted([*library.LANGUAGE_MAPPING, LONG_ENGLISH]))
        raise RecipeError(
            f"shingle.stopwords: no list for {chosen!r}; choose one of none, {known}"
        ) from error


def library_versions(recipe: Recipe) -> dict[str, str]:
    """Return the versions of the libraries that a recipe's words depend on; another version may give other
    features.
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
    """Return a recipe with the long English list instead of the classic one; None if it has not the classic one."""
    if recipe.shingle.stopwords not in CLASSIC_ENGLISH:
        return None
    return replace(recipe, shingle=replace(recipe.shingle, stopwords=LONG_ENGLISH))


class _Stemmers(threading.local):
    """A stemmer per thread: PyStemmer's have state and must not be shared."""

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

        known = ", ".join(Stemmer.algorithms())
        raise RecipeError(
            f"shingle.stem: no stemmer for {language!r}; choose one of none, {known}"
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

# A run of marks, with closing quotes and brackets, ends a sentence before a space. CJK marks need no space; nor do
# ! and ? before CJK, which NFKC makes of their wide forms. A blank line, also a quoted one, and a colon at the end of
# a line end a sentence too. Runs match only from their first mark and without backtracking, so the time is linear also
# for text of dots alone.
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
# At the beginning of a line, as in mail.
_QUOTE_MARKS = re.compile(r"^(?:[^\S\n]*+>)*+", re.MULTILINE)


def sentence_ends(text: str) -> list[int]:
    """Return the places in a text after which a sentence begins, in order."""
    ends = [end.end() for end in _END.finditer(text)]
    return ends if ">" not in text else sorted({*ends, *_quotation_ends(text)})


def _quotation_ends(text: str) -> Iterator[int]:
    """Yield the begin of each line that has more or fewer `>` before it than the line above."""
    lines = _QUOTE_MARKS.finditer(text)
    for above, line in pairwise(lines):
        if above[0].count(">") != line[0].count(">"):
            yield line.start()


def split(text: str) -> list[str]:
    """Return the sentences of a text in order, without blank ones."""
    parts = [text[begin:end] for begin, end in pairwise([0, *sentence_ends(text), len(text)])]
    return [part for part in parts if part.strip()]
