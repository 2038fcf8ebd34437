"""Word filtering: drop short words and stop words, stem the rest."""

import threading
from collections.abc import Callable

from msgspec.structs import replace

from nearsim_db.errors import RecipeError
from nearsim_db.similarity.recipe import Recipe, Shingle
from nearsim_db.similarity.text.english import CLASSIC

CLASSIC_ENGLISH = ("en", "english")
LONG_ENGLISH = "en-long"  # the library's list of 1,333 words, which "en" meant at first

LONGEST_STEMMED = 256  # characters; some stemmers take time quadratic in the length of a word

WordFilter = Callable[[str], str]


def word_filter(rules: Shingle, canonical_word: Callable[[str], str]) -> WordFilter | None:
    """Return a function over canonical text (words separated by single spaces), or None if nothing is to be
    filtered.

    Stop words are normalised by `canonical_word` first; one that tokenisation splits into several words (don't,
    under unicode) never matches. Lengths, in code points, and stop words are checked before stemming; a word
    that the stemmer reduces to nothing is dropped, and one of more than LONGEST_STEMMED characters stays as it
    is. Raises RecipeError for a language unknown to the libraries.
    """
    stop = frozenset(canonical_word(word) for word in stop_words(rules.stopwords))
    shortest = rules.min_token_length
    stem = _stemmer(rules.stem)
    if not stop and shortest == 1 and stem is None:
        return None

    def apply(text: str) -> str:
        words = [word for word in text.split(" ") if len(word) >= shortest and word not in stop]
        return " ".join(words if stem is None else filter(None, stem(words)))

    return apply


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
        if max(map(len, words), default=0) <= LONGEST_STEMMED:
            return stemmers.stem_words(words)
        return [word if len(word) > LONGEST_STEMMED else stemmers.stem_words([word])[0] for word in words]

    return stem
