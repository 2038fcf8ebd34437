"""Where sentences end."""

import re

# A full stop, question or exclamation mark (or several), with the quotes and brackets that close on it, before a space;
# the CJK marks need no space; a blank line ends a sentence too.
_END = re.compile(
    r"""(?<=[.!?…])(?:[.!?…]*["'”’»)\]]*)\s+   # Latin and its like
      | (?<=[。！？｡])["'”’」』）]*\s*             # CJK
      | \n\s*\n                                  # a paragraph
    """,
    re.VERBOSE,
)


def split(text: str) -> list[str]:
    """The sentences of a text, in order, none of them empty or blank."""
    parts: list[str] = []
    begin = 0
    for end in _END.finditer(text):
        parts.append(text[begin : end.end()])
        begin = end.end()
    parts.append(text[begin:])
    return [part for part in parts if part.strip()]
