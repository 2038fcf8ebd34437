"""The notation of amplifications: "or(40, and(3))" is 40 bands of 3 rows, "at_least(3, 40, and(3))" needs 3 of them.

The notation is read from the outside in, the reverse of the names in the slides of CS246, which follow the
order of application: their AND-OR of 4 and 4 is "or(4, and(4))", their OR-AND "and(4, or(4))".
"""

import re
from typing import NoReturn, cast

from nearsim_db.errors import RecipeError
from nearsim_db.similarity.lsh.amplification import MAX_DEPTH, Amplification, Kind

_TOKEN = re.compile(r"\s*(?:(?P<word>[A-Za-z_]+)|(?P<number>[0-9]+)|(?P<sign>[(),])|(?P<other>\S)|$)")
_KINDS = ("and", "or", "at_least")
_LONGEST_NUMBER = 9


def parse(text: str) -> Amplification:
    """Parse an amplification such as "or(4, and(4, or(4)))".

    Raises RecipeError for a syntax error, with its position in characters from 1.
    """
    return _Parser(text).parse()


class _Parser:
    """A recursive-descent parser of one text."""

    def __init__(self, text: str) -> None:
        self._text = text
        self._tokens = [match for match in _TOKEN.finditer(text) if match.lastgroup]
        self._at = 0

    def parse(self) -> Amplification:
        amplification = self._amplification(1)
        if self._at < len(self._tokens):
            self._fail("the end")
        return amplification

    def _amplification(self, depth: int) -> Amplification:
        start = self._at
        kind = self._take(
            "word", "and, or, at_least" if depth > 1 else "and(n), or(n) or at_least(m, n)", _KINDS
        )
        if depth > MAX_DEPTH:
            self._at = start
            self._fail(f"at most {MAX_DEPTH} steps")
        self._take("sign", "(", ("(",))
        least = count = self._number()
        if kind == "at_least":
            self._take("sign", "a comma and the count", (",",))
            count = self._number()
        inner = None
        if self._take("sign", "a comma or )", (",", ")")) == ",":
            inner = self._amplification(depth + 1)
            self._take("sign", ")", (")",))
        try:
            return Amplification(cast(Kind, kind), count, inner, least if kind == "at_least" else 0)
        except RecipeError as error:
            raise RecipeError(f"{self._where(start)}: {error}") from error

    def _number(self) -> int:
        return int(self._take("number", f"a whole number of at most {_LONGEST_NUMBER} digits"))

    def _take(self, kind: str, expected: str, allowed: tuple[str, ...] | None = None) -> str:
        token = self._tokens[self._at] if self._at < len(self._tokens) else None
        if token is None or token.lastgroup != kind:
            self._fail(expected)
        found = token[kind]
        if (allowed is not None and found not in allowed) or (
            kind == "number" and len(found) > _LONGEST_NUMBER
        ):
            self._fail(expected)
        self._at += 1
        return found

    def _fail(self, expected: str) -> NoReturn:
        token = self._tokens[self._at] if self._at < len(self._tokens) else None
        found = "the end" if token is None else repr(token[0].strip()[:20])
        raise RecipeError(
            f"{self._where(self._at)}: expected {expected}, found {found}; "
            'amplifications are written from the outside in, as in "or(40, and(3))" for 40 bands of 3 rows, '
            '"and(4, or(4))" or "at_least(3, 40, and(3))"'
        )

    def _where(self, at: int) -> str:
        token = self._tokens[at] if at < len(self._tokens) else None
        place = len(self._text) if token is None else token.start(token.lastgroup or 0)
        return f"the amplification {self._text[:200]!r} at character {place + 1}"
