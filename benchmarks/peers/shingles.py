"""The shingles of the recipes in recipes/, computed in Python as a user of other tools would do it."""


def word_shingles(text: str, k: int = 3) -> list[str]:
    """Return the k-word shingles of a text, with repetitions; a shorter text is a single shingle."""
    words = text.lower().split()
    if len(words) <= k:
        return [" ".join(words)] if words else []
    return [" ".join(words[at : at + k]) for at in range(len(words) - k + 1)]
