"""The invented words, and the numbers, of the synthetic language."""

import numpy as np

ONSETS = [*"bcdfghjklmnprstvw", "br", "cr", "dr", "fl", "gr", "pl", "pr", "sh", "st", "th", "tr"]
VOWELS = [*"aeiouaeio", "ai", "ea", "ou"]
CODAS = [""] * 6 + [*"nrstldm", "ck", "nd", "st", "rt", "ng"]


def invent_words(rng: np.random.Generator, count: int) -> list[str]:
    """Return `count` distinct pronounceable words in lower case; the frequent words come first and are short."""
    words: dict[str, None] = {}
    while len(words) < count:
        batch = 20_000
        parts = [rng.integers(0, len(kind), (batch, 4)).tolist() for kind in (ONSETS, VOWELS, CODAS)]
        for onset, vowel, coda in zip(*parts, strict=True):
            syllables = 1 + (len(words) >= 150) + (len(words) >= 4_000) + (len(words) >= 40_000)
            # Only the last syllable is closed: inner codas make words hard to pronounce.
            open_part = "".join(ONSETS[onset[i]] + VOWELS[vowel[i]] for i in range(syllables))
            words[open_part + CODAS[coda[0]]] = None
            if len(words) == count:
                break
    return list(words)


def invent_numbers(rng: np.random.Generator, count: int) -> list[str]:
    """Return `count` numbers as newspapers print them: counts, decimals, thousands and years; some are repeated."""
    kinds = rng.integers(0, 4, count).tolist()
    values = rng.integers(2, 1_000_000, count).tolist()
    forms = {
        0: lambda value: str(value % 500),
        1: lambda value: f"{value % 1_000 / 10:.1f}",
        2: lambda value: f"{value:,}",
        3: lambda value: str(1950 + value % 80),
    }
    return [forms[kind](value) for kind, value in zip(kinds, values, strict=True)]
