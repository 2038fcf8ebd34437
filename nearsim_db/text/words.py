"""What happens to single words: short ones and stop words dropped, the rest stemmed."""

from collections.abc import Callable

from nearsim_db.errors import RecipeError
from nearsim_db.recipe import Shingle

WordFilter = Callable[[str], str]


def word_filter(rules: Shingle, canonical_word: Callable[[str], str]) -> WordFilter | None:
    """A function over canonical text (words between single spaces), or None when there is nothing to do.

    Stop words are put through `canonical_word` first, so that they are compared with words as the text has them.
    Raises RecipeError for a language that the libraries do not know.
    """
    stop = frozenset(canonical_word(word) for word in stop_words(rules.stopwords))
    shortest = rules.min_token_length
    stem = _stemmer(rules.stem)
    if not stop and shortest == 1 and stem is None:
        return None

    def apply(text: str) -> str:
        words = [word for word in text.split(" ") if len(word) >= shortest and word not in stop]
        return " ".join(words if stem is None else stem(words))

    return apply


def stop_words(chosen: str | tuple[str, ...]) -> tuple[str, ...]:
    """The stop words of a recipe: none, its own list, or the list of the library for a language code or name."""
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


def library_versions(rules: Shingle) -> dict[str, str]:
    """Versions of the libraries that a recipe's words depend on: another version may give other features."""
    from importlib.metadata import version

    versions = {}
    if isinstance(rules.stopwords, str) and rules.stopwords != "none":
        versions["stop-words"] = version("stop-words")
    if rules.stem != "none":
        versions["PyStemmer"] = version("PyStemmer")
    return versions


def _stemmer(language: str) -> Callable[[list[str]], list[str]] | None:
    if language == "none":
        return None
    import Stemmer

    try:
        stemmer = Stemmer.Stemmer(language)
    except KeyError as error:
        known = ", ".join(Stemmer.algorithms())
        raise RecipeError(f"shingle.stem: no stemmer for {language!r}; known are none, {known}") from error
    stem_words: Callable[[list[str]], list[str]] = stemmer.stemWords
    return stem_words
