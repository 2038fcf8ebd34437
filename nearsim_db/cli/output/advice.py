"""Advice with the answers of an index."""

from typing import Protocol

from nearsim_db.errors import suggested_command


class Answering(Protocol):
    """An index that is asked."""

    def least_similarity(self) -> tuple[str, float, float]:
        """Return the profile, its threshold, and the least similarity that it stores."""
        ...


def of_unstored(answers: Answering, collection: str, wanted: float) -> list[str]:
    """Return a warning if similarities are asked for that the index does not store, with what finds them."""
    if not wanted:
        return []
    profile, threshold, least = answers.least_similarity()
    if wanted >= least:
        return []
    lower = wanted if least == threshold else 1 / wanted - 1
    command = suggested_command("reindex start", collection, profile, "--threshold", f"{lower:.4g}")
    return [
        f"profile {profile} has no pair below similarity {least:.4g}, its threshold; to find pairs from {wanted:g}: "
        f"{command}"
    ]
