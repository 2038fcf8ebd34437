"""Word filtering: drop short words and stop words, stem the rest."""

import threading
from collections.abc import Callable

from nearsim_db.errors import RecipeError
from nearsim_db.similarity.recipe import Recipe, Shingle

WordFilter = Callable[[str], str]


def word_filter(rules: Shingle, canonical_word: Callable[[str], str]) -> WordFilter | None:
    """Return a function over canonical text (words separated by single spaces), or None if nothing is to be
    filtered.

    Stop words are normalised by `canonical_word` first; one that tokenisation splits into several words (don't,
    under unicode) never matches. Lengths, in code points, and stop words are checked before stemming; a word
    that the stemmer reduces to nothing is dropped. Raises RecipeError for a language unknown to the libraries.
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
    """Return a recipe's stop words: none, its own list, or the library's for a language code or name."""
    if isinstance(chosen, tuple):
        return chosen
    if chosen == "none":
        return ()
    import stop_words as library

    try:
        return tuple(library.get_stop_words(chosen))
    except library.StopWordError as error:
        known = ", ".join(sorted(library.LANGUAGE_MAPPING))
        raise RecipeError(
            f"shingle.stopwords: no list for {chosen!r}; choose one of none, {known}"
        ) from error


def library_versions(recipe: Recipe) -> dict[str, str]:
    """Return the versions of the libraries that a recipe's words depend on; another version may give other
    features.
    """
    from importlib.metadata import version

    needed = {
        "stop-words": isinstance(recipe.shingle.stopwords, str) and recipe.shingle.stopwords != "none",
        "PyStemmer": recipe.shingle.stem != "none",
    }
    return {library: version(library) for library, used in needed.items() if used}


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
    return lambda words: stemmers.stem_words(words)
