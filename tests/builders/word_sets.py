"""Word shingles and Jaccard similarity in plain Python."""

from functools import lru_cache


@lru_cache(maxsize=1000)
def shingles(body: str) -> frozenset[tuple[str, ...]]:
    """The 3-word shingles of a text; a shorter text is one shingle."""
    words = body.split()
    return frozenset(
        zip(words, words[1:], words[2:], strict=False) if len(words) > 2 else {tuple(words)} - {()}
    )


def similarity(left: str, right: str) -> float:
    """The Jaccard similarity of two texts, 0 for two texts without words."""
    one, other = shingles(left), shingles(right)
    return len(one & other) / len(one | other) if one | other else 0.0
