"""Source code as words: what a lexer of Pygments takes for identifiers is one word, whatever their names.

Comments, documentation strings, spacing and the braces of blocks, which are a matter of style, are left out; all else
is taken as it is. Names that the language defines and tags of markup are words of their own.
"""

import re
from collections.abc import Iterator
from functools import cache
from typing import Any, Literal

import numpy as np

from nearsim_db.errors import RecipeError
from nearsim_db.similarity.arrays import Ints

_WORD = re.compile(r"\S+")
# Blank lines are one line end for lexers, some of which take a time that grows with the square of their number.
_LINE_ENDS = re.compile(r"(?:\r\n?|\n)(?:[^\S\r\n]*+(?:\r\n?|\n))*+")


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

    def written(self, text: str) -> str:
        """Return the words of source code, separated by spaces."""
        return " ".join([word for _, _, word in self._words(text)])

    def located(self, text: str) -> tuple[str, Ints, Ints]:
        """Return what `written` does, with the begin and the end in `text` of what each character is made of."""
        words = list(self._words(text))
        lengths = [len(word) + 1 for _, _, word in words]
        begins, ends = (np.array([one[side] for one in words], np.int64) for side in (0, 1))
        long = [found.span() for found in _LINE_ENDS.finditer(text) if len(found[0]) > 1]
        starts, removed = np.array([start for start, _ in long], np.int64), np.zeros(len(long) + 1, np.int64)
        np.cumsum([end - start - 1 for start, end in long], out=removed[1:])
        before = starts - removed[:-1]  # where each is in the text without the others
        begins += removed[np.searchsorted(before, begins)]
        ends += removed[np.searchsorted(before, ends)]
        return " ".join([word for _, _, word in words]), np.repeat(begins, lengths), np.repeat(ends, lengths)

    def _words(self, text: str) -> Iterator[tuple[int, int, str]]:
        """Yield the words with their begin and end in the text, whose ends of lines are one character each."""
        lines = _LINE_ENDS.sub("\n", text)
        for at, token, value in self._lexer().get_tokens_unprocessed(f"{lines}\n"):
            kind = _kind(token)
            if kind == "name":
                yield at, at + len(value), "name"
            elif kind != "comment":
                if kind == "punctuation":
                    value = value.replace("{", " ").replace("}", " ")
                for word in _WORD.finditer(value):
                    yield at + word.start(), at + word.end(), word[0]


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
