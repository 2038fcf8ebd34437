"""The shingles of the recipes in recipes/, as a user of other tools would write them in Python."""


def word_shingles(text: str, k: int = 3) -> list[str]:
    """Return the k-word shingles of a text, with repetitions; a shorter text is one."""
    words = text.lower().split()
    if len(words) <= k:
        return [" ".join(words)] if words else []
    return [" ".join(words[at : at + k]) for at in range(len(words) - k + 1)]
