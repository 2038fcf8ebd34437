"""Source code as words: what a lexer of Pygments takes for identifiers is one word, whatever their names.

Comments, documentation strings, spacing and the braces of blocks, which are a matter of style, are left out; all else
is taken as it is. Names that the language defines and tags of markup are words of their own.

Some lexers take a time that grows with the square of the length of certain texts, such as 100,000 brackets. A text
therefore has a budget of processor time, in proportion to its length; one that exceeds it has no words. The regular
expressions of a lexer do not tell how many characters they look at, so nothing but time can be counted; the budget is a
multiple of what any source code takes, so that only such texts depend on the machine.
"""

import re
from collections.abc import Iterator
from functools import cache
from threading import Lock
from time import thread_time
from typing import Any, Literal

import numpy as np

from nearsim_db.errors import RecipeError
from nearsim_db.similarity.arrays import Ints

_WORD = re.compile(r"\S+")
# Blank lines are one line end for lexers, some of which take a time that grows with the square of their number.
_LINE_ENDS = re.compile(r"(?:\r\n?|\n)(?:[^\S\r\n]*+(?:\r\n?|\n))*+")

# Source code takes 0.3 to 4.4 microseconds of processor time a character, the latter Python's (2 cores under load).
_BUDGET_SECONDS, _BUDGET_SECONDS_PER_CHARACTER = 1.0, 3e-5
_TOKENS_BETWEEN_CHECKS = 16
_MAX_KEPT_CHARACTERS = 50_000_000


class _OverBudgetError(Exception):
    """A text takes too long to lex."""


class _CheckedTexts:
    """Words of texts that were lexed to check them, until they are read; threads share them. The oldest are dropped."""

    def __init__(self) -> None:
        self._lock = Lock()
        self._words: dict[tuple[str, str], str] = {}
        self._characters = 0

    def put(self, language: str, text: str, words: str) -> None:
        with self._lock:
            if (language, text) not in self._words:
                self._characters += len(text)
            self._words[language, text] = words
            while self._characters > _MAX_KEPT_CHARACTERS:
                oldest = next(iter(self._words))
                del self._words[oldest]
                self._characters -= len(oldest[1])

    def take(self, language: str, text: str) -> str | None:
        with self._lock:
            words = self._words.pop((language, text), None)
            if words is not None:
                self._characters -= len(text)
            return words


_CHECKED = _CheckedTexts()


class Lexer:
    """Reads source code of one language; threads may share it."""

    def __init__(self, language: str) -> None:
        """`language` is any alias of a lexer. Raises RecipeError if there is none, or Pygments is not installed."""
        try:
            from pygments.lexers import find_lexer_class_by_name
            from pygments.util import ClassNotFound
        except ImportError as error:
            raise RecipeError(
                "shingle.tokens = code requires the package Pygments; pip install 'nearsim-db[code]'"
            ) from error
        try:
            self._lexer: Any = find_lexer_class_by_name(language)
        except ClassNotFound as error:
            raise RecipeError(
                f"shingle.language: Pygments has no lexer for {language!r}; choose an alias that "
                "pygmentize -L lexers lists"
            ) from error

        self._lexer()  # compiles its rules, which two threads must not do at once
        self._language = language

    def refusal(self, text: str) -> str | None:
        """Return why a text is not compared, None if it is. Its words are kept for the next `written`."""
        try:
            words = list(self._words(text))
        except _OverBudgetError:
            return (
                f"its {len(text):,} characters take more than {_budget_seconds(text):.1f} s as source code in "
                f"{self._language}, far more than any program of this length"
            )
        _CHECKED.put(self._language, text, " ".join([word for _, _, word in words]))
        return None

    def written(self, text: str) -> str:
        """Return the words of source code, separated by spaces; none if the text exceeds its budget of time."""
        checked = _CHECKED.take(self._language, text)
        return (
            checked if checked is not None else " ".join([word for _, _, word in self._words_in_time(text)])
        )

    def located(self, text: str) -> tuple[str, Ints, Ints]:
        """Return what `written` does, with the begin and the end in `text` of what each character is made of."""
        words = self._words_in_time(text)
        lengths = [len(word) + 1 for _, _, word in words]
        begins, ends = (np.array([word[side] for word in words], np.int64) for side in (0, 1))
        long = [line_end.span() for line_end in _LINE_ENDS.finditer(text) if len(line_end[0]) > 1]
        starts, removed = np.array([start for start, _ in long], np.int64), np.zeros(len(long) + 1, np.int64)
        np.cumsum([end - start - 1 for start, end in long], out=removed[1:])
        before = starts - removed[:-1]  # where each is in the text without the others
        begins += removed[np.searchsorted(before, begins)]
        ends += removed[np.searchsorted(before, ends)]
        return " ".join([word for _, _, word in words]), np.repeat(begins, lengths), np.repeat(ends, lengths)

    def _words_in_time(self, text: str) -> list[tuple[int, int, str]]:
        try:
            return list(self._words(text))
        except _OverBudgetError:
            return []

    def _words(self, text: str) -> Iterator[tuple[int, int, str]]:
        """Yield the words with their begin and end in the text, whose ends of lines are one character each."""
        lines = _LINE_ENDS.sub("\n", text)
        end = thread_time() + _budget_seconds(text)
        tokens = self._lexer().get_tokens_unprocessed(f"{lines}\n")
        for number, (at, token, value) in enumerate(tokens):
            if number % _TOKENS_BETWEEN_CHECKS == 0 and thread_time() > end:
                raise _OverBudgetError
            kind = _kind(token)
            if kind == "name":
                yield at, at + len(value), "name"
            elif kind != "comment":
                if kind == "punctuation":
                    value = value.replace("{", " ").replace("}", " ")
                for word in _WORD.finditer(value):
                    yield at + word.start(), at + word.end(), word[0]


def _budget_seconds(text: str) -> float:
    """Return the processor time that a text may take."""
    return _BUDGET_SECONDS + _BUDGET_SECONDS_PER_CHARACTER * len(text)


@cache
def _kind(token: Any) -> Literal["comment", "name", "punctuation", "text"]:
    """Return how a type of token of Pygments is read. Directives of a preprocessor are no comments."""
    from pygments.token import Comment, Name, Punctuation, String

    if token in String.Doc:
        return "comment"
    if token in Comment:
        return "text" if token in Comment.Preproc or token in Comment.PreprocFile else "comment"
    if token in Name:
        return "text" if token in Name.Builtin or token in Name.Tag else "name"
    return "punctuation" if token in Punctuation else "text"
