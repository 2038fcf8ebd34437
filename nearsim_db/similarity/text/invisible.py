"""Characters that no reader sees, which Unicode calls default-ignorable (UAX #44): soft hyphen, joiners, variation
selectors, marks of direction.
"""

import re

# Default_Ignorable_Code_Point of DerivedCoreProperties.txt, the same 4,174 code points in Unicode 14.0 to 16.0.
RANGES = (
    (0xAD, 0xAD), (0x34F, 0x34F), (0x61C, 0x61C), (0x115F, 0x1160), (0x17B4, 0x17B5), (0x180B, 0x180F),
    (0x200B, 0x200F), (0x202A, 0x202E), (0x2060, 0x206F), (0x3164, 0x3164), (0xFE00, 0xFE0F), (0xFEFF, 0xFEFF),
    (0xFFA0, 0xFFA0), (0xFFF0, 0xFFF8), (0x1BCA0, 0x1BCA3), (0x1D173, 0x1D17A), (0xE0000, 0xE0FFF),
)  # fmt: skip
# Scripts of line breaking class SA (UAX #14), which have no spaces between words: Thai and Lao, Myanmar with its
# extensions, Khmer, Tai Le and New Tai Lue with the Khmer symbols, Tai Tham, Tai Viet, Ahom.
UNSPACED = (
    (0xE00, 0xEFF), (0x1000, 0x109F), (0x1780, 0x17FF), (0x1950, 0x19FF), (0x1A20, 0x1AAF), (0xA9E0, 0xA9FF),
    (0xAA60, 0xAADF), (0x116D0, 0x116FF), (0x11700, 0x1174F),
)  # fmt: skip

_ZERO_WIDTH_SPACE = "\u200b"


def _class(*ranges: tuple[int, int]) -> str:
    return "".join(f"{chr(first)}-{chr(last)}" for first, last in ranges)


_RUN = re.compile(f"[{_class(*RANGES)}]+")
# Beyond U+FFFF any character, which takes half the time.
_POSSIBLE = re.compile(f"[{_class(*(one for one in RANGES if one[1] < 0x10000), (0x10000, 0x10FFFF))}]")
_UNSPACED = re.compile(f"[{_class(*UNSPACED)}]")


def drop(text: str) -> str:
    """Return a text without invisible characters, except ZERO WIDTH SPACE between words of scripts without spaces."""
    if not _POSSIBLE.search(text):
        return text
    return _RUN.sub(_remainder, text)


def _remainder(run: re.Match[str]) -> str:
    """Return what stays of a run: a ZERO WIDTH SPACE before or after a character of a script without spaces."""
    if _ZERO_WIDTH_SPACE not in run[0]:
        return ""
    begin, end = run.span()
    around = run.string[max(0, begin - 1) : begin] + run.string[end : end + 1]
    return _ZERO_WIDTH_SPACE if _UNSPACED.search(around) else ""
