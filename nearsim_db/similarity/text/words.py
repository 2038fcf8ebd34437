"""What happens to single words: short ones and stop words dropped, the rest stemmed."""

import threading
from collections.abc import Callable

from nearsim_db.errors import RecipeError
from nearsim_db.similarity.recipe import Recipe, Shingle

WordFilter = Callable[[str], str]


def word_filter(rules: Shingle, canonical_word: Callable[[str], str]) -> WordFilter | None:
    """A function over canonical text (words between single spaces), or None when there is nothing to do.

    Stop words are put through `canonical_word` first, to be compared with words as the text has them; one that
    the tokens cut into several words (don't, under unicode) is never met. Lengths are counted in code points, and
    stop words looked up, before the word is stemmed; a word of which the stemmer leaves nothing goes too.
    Raises RecipeError for a language that the libraries do not know.
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
    """The stop words of a recipe: none, its own list, or the library's for a language code or name."""
    if isinstance(chosen, tuple):
        return chosen
    if chosen == "none":
        return ()
    import stop_words as library

    try:
        return tuple(library.get_stop_words(chosen))
    except library.StopWordError as error:
        known = ", ".join(sorted(library.LANGUAGE_MAPPING))
        raise RecipeError(f"shingle.stopwords: no list for {chosen!r}; known are none, {known}") from error


def library_versions(recipe: Recipe) -> dict[str, str]:
    """Versions of the libraries that a recipe's words depend on: another version may give other features."""
    from importlib.metadata import version

    needed = {
        "stop-words": isinstance(recipe.shingle.stopwords, str) and recipe.shingle.stopwords != "none",
        "PyStemmer": recipe.shingle.stem != "none",
        "selectolax": recipe.normalise.html,
    }
    return {library: version(library) for library, used in needed.items() if used}


class _Stemmers(threading.local):
    """A stemmer for each thread: PyStemmer's have state, and must not be shared."""

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
        raise RecipeError(f"shingle.stem: no stemmer for {language!r}; known are none, {known}") from error
    return lambda words: stemmers.stem_words(words)
