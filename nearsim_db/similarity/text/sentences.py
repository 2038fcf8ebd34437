"""Sentence boundaries."""

import re

_MARKS = ".!?…。！？｡"
_CLOSERS = "\"'”’»)\\]」』）"
_CJK = "\u3040-\u30ff\u3400-\u9fff\uf900-\ufaff\U00020000-\U0003ffff"

# A run of marks, with closing quotes and brackets, ends a sentence before a space. CJK marks need no space; nor do
# ! and ? before CJK, which NFKC makes of their wide forms. A blank line ends a sentence too. Runs match only from
# their first mark and without backtracking, so the time is linear also for text of dots alone.
_END = re.compile(
    rf"""(?<![{_MARKS}])[{_MARKS}]*[。！？｡][{_MARKS}]*+[{_CLOSERS}]*+\s*+
       | (?<![{_MARKS}])[{_MARKS}]++[{_CLOSERS}]*+\s++
       | (?<![{_MARKS}])[{_MARKS}]*[!?][{_CLOSERS}]*+(?=[{_CJK}])
       | \n\s*\n
    """,
    re.VERBOSE,
)


def split(text: str) -> list[str]:
    """Return the sentences of a text in order, without blank ones."""
    parts: list[str] = []
    begin = 0
    for end in _END.finditer(text):
        parts.append(text[begin : end.end()])
        begin = end.end()
    parts.append(text[begin:])
    return [part for part in parts if part.strip()]
