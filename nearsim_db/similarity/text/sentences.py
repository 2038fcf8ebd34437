"""Where sentences end."""

import re

_MARKS = ".!?…。！？｡"
_CLOSERS = "\"'”’»)\\]」』）"
_CJK = "\u3040-\u30ff\u3400-\u9fff\uf900-\ufaff\U00020000-\U0003ffff"

# A run of marks, with the quotes and brackets that close on it, ends a sentence before a space. CJK marks need none;
# nor do ! and ? before CJK, for that is what compatibility forms make of their wide twins. A blank line ends one too.
# Runs are only entered at their first mark, and not backed out of, so that a page of dots costs no more than prose.
_END = re.compile(
    rf"""(?<![{_MARKS}])[{_MARKS}]*[。！？｡][{_MARKS}]*+[{_CLOSERS}]*+\s*+
       | (?<![{_MARKS}])[{_MARKS}]++[{_CLOSERS}]*+\s++
       | (?<![{_MARKS}])[{_MARKS}]*[!?][{_CLOSERS}]*+(?=[{_CJK}])
       | \n\s*\n
    """,
    re.VERBOSE,
)


def split(text: str) -> list[str]:
    """The sentences of a text, in order, none of them blank; what only spaces would part off is left out."""
    parts: list[str] = []
    begin = 0
    for end in _END.finditer(text):
        parts.append(text[begin : end.end()])
        begin = end.end()
    parts.append(text[begin:])
    return [part for part in parts if part.strip()]
