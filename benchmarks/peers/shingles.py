"""The shingles of the recipes in recipes/, as a user of other tools would write them in Python."""

import re

# What nearsim takes for a space, so that both cut the same shingles.
_SPACES = re.compile("[\x00-\x20\x7f-\xa0\u1680\u2000-\u200b\u2028\u2029\u202f\u205f\u3000\ufeff]+")


def normalise(text: str) -> str:
    """Lowercase, collapse runs of spaces and controls to one space, strip."""
    return _SPACES.sub(" ", text.lower()).strip(" ")


def character_shingles(text: str, k: int) -> set[bytes]:
    """Return the k-character shingles of a text; a shorter text is one."""
    canonical = normalise(text)
    if len(canonical) <= k:
        return {canonical.encode()} if canonical else set()
    if canonical.isascii():
        encoded = canonical.encode("ascii")
        return {encoded[at : at + k] for at in range(len(encoded) - k + 1)}
    return {canonical[at : at + k].encode() for at in range(len(canonical) - k + 1)}


def word_shingles(text: str, k: int = 3) -> list[str]:
    """Return the k-word shingles of a text, with repetitions; a shorter text is one."""
    words = text.lower().split()
    if len(words) <= k:
        return [" ".join(words)] if words else []
    return [" ".join(words[at : at + k]) for at in range(len(words) - k + 1)]
