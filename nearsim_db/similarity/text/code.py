"""Source code as words: the tokens of a Pygments lexer, in which every identifier is the same word.

Comments, documentation strings, spacing and the braces of blocks are left out, because they are a matter of style.
Names that the language defines and tags of markup keep their own words. All other tokens are taken as they are.

Some lexers take a time quadratic in the length of certain texts, such as 100,000 brackets. A text therefore has a
budget of processor time in proportion to its length, and a text that exceeds its budget has no words. Only time can be
limited, because the regular expressions of a lexer do not report how many characters they read. The budget is several
times what real source code takes, so the speed of the machine matters only for texts that are not real source code.
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
# A line end with the blank lines after it. Lexers get a single line end for it, because some of them take a time
# quadratic in the number of blank lines.
_LINE_ENDS = re.compile(r"(?:\r\n?|\n)(?:[^\S\r\n]*+(?:\r\n?|\n))*+")

# Measured: source code takes 0.3 to 4.4 microseconds of processor time a character, Python the most (2 cores under
# load).
_BUDGET_SECONDS, _BUDGET_SECONDS_PER_CHARACTER = 1.0, 3e-5
_TOKENS_BETWEEN_CHECKS = 16
_MAX_KEPT_CHARACTERS = 50_000_000


class _OverBudgetError(Exception):
    """Lexing a text has exceeded its budget of processor time."""


class _CheckedTexts:
    """The words of texts that were lexed to check them, until `take` returns them. Threads may share it.

    The oldest texts are dropped if all together exceed _MAX_KEPT_CHARACTERS.
    """

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
    """Reads source code of one language. Threads may share it."""

    def __init__(self, language: str) -> None:
        """Find the lexer with the alias `language`.

        Raises RecipeError if no lexer has this alias, or if Pygments is not installed.
        """
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

        # The first instance compiles the rules of the lexer, which two threads must not do at the same time.
        self._lexer()
        self._language = language

    def refusal(self, text: str) -> str | None:
        """Return why a text is not compared, or None if it is. The words of the text are kept for `written`."""
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
        """Return the words of source code, separated by spaces; an empty text if it exceeds its budget of time."""
        checked = _CHECKED.take(self._language, text)
        return (
            checked if checked is not None else " ".join([word for _, _, word in self._words_in_time(text)])
        )

    def located(self, text: str) -> tuple[str, Ints, Ints]:
        """Return the words of `written`, and the begin and end in `text` of the part that each character comes from."""
        words = self._words_in_time(text)
        lengths = [len(word) + 1 for _, _, word in words]
        begins, ends = (np.array([word[side] for word in words], np.int64) for side in (0, 1))

        # The words have places in a text in which every line end is one character. Add what was removed before them.
        long = [line_end.span() for line_end in _LINE_ENDS.finditer(text) if len(line_end[0]) > 1]
        starts, removed = np.array([start for start, _ in long], np.int64), np.zeros(len(long) + 1, np.int64)
        np.cumsum([end - start - 1 for start, end in long], out=removed[1:])
        shortened_starts = starts - removed[:-1]
        begins += removed[np.searchsorted(shortened_starts, begins)]
        ends += removed[np.searchsorted(shortened_starts, ends)]
        return " ".join([word for _, _, word in words]), np.repeat(begins, lengths), np.repeat(ends, lengths)

    def _words_in_time(self, text: str) -> list[tuple[int, int, str]]:
        try:
            return list(self._words(text))
        except _OverBudgetError:
            return []

    def _words(self, text: str) -> Iterator[tuple[int, int, str]]:
        """Yield the begin, the end and the text of each word. Places count every line end as one character.

        Raises _OverBudgetError if the text exceeds its budget of processor time.
        """
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
    """Return the processor time that lexing a text may take."""
    return _BUDGET_SECONDS + _BUDGET_SECONDS_PER_CHARACTER * len(text)


@cache
def _kind(token: Any) -> Literal["comment", "name", "punctuation", "text"]:
    """Return how tokens of a Pygments type are treated. Preprocessor directives do not count as comments."""
    from pygments.token import Comment, Name, Punctuation, String

    if token in String.Doc:
        return "comment"
    if token in Comment:
        return "text" if token in Comment.Preproc or token in Comment.PreprocFile else "comment"
    if token in Name:
        return "text" if token in Name.Builtin or token in Name.Tag else "name"
    return "punctuation" if token in Punctuation else "text"
