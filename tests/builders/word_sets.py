"""Word shingles and Jaccard similarity in plain Python."""

from functools import lru_cache


@lru_cache(maxsize=1000)
def shingles(body: str) -> frozenset[tuple[str, ...]]:
    """The 3-word shingles of a text of plain words. A shorter text is a single shingle."""
    words = body.casefold().split()
    return frozenset(
        zip(words, words[1:], words[2:], strict=False) if len(words) > 2 else {tuple(words)} - {()}
    )


def counts(left: str, right: str) -> tuple[int, int]:
    """The sizes of intersection and union of two texts' shingles."""
    return len(shingles(left) & shingles(right)), len(shingles(left) | shingles(right))


def similarity(left: str, right: str) -> float:
    """The Jaccard similarity of two texts, 0 for two texts without words."""
    intersection, union = counts(left, right)
    return intersection / union if union else 0.0
