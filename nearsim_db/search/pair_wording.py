"""The words for what two documents have in common or lack as a pair, for each place that gives a reason."""

from nearsim_db.errors import count_of
from nearsim_db.search.pair_figures import required_bands
from nearsim_db.similarity.metrics import Scores
from nearsim_db.similarity.profile import Profile

_MEASURES = {"euclidean": "distance", "cosine": "cosine"}


def value_of(metric: str, value: float) -> str:
    """Return a similarity, or a distance, with its name."""
    return f"{_MEASURES.get(metric, 'similarity')} {value:.4f}"


def measured(metric: str, scores: Scores) -> str:
    """Return the first of the scores."""
    return value_of(metric, float((scores.similarity if scores.distance is None else scores.distance)[0]))


def threshold_of(profile: Profile) -> str:
    """Return the threshold."""
    return f"the threshold of {profile.recipe.match.threshold:g}"


def missed_threshold(metric: str, scores: Scores, profile: Profile) -> str:
    """Say that a pair does not reach the threshold."""
    side = "above" if metric == "euclidean" else "below"
    return f"{measured(metric, scores)} is {side} {threshold_of(profile)}"


def shared_too_few(profile: Profile, shared: int) -> str:
    """Say that two documents share too few bands to be candidates."""
    required = required_bands(profile)
    if not shared:
        return f"they share none of {count_of(profile.bands, 'band')}"
    if required.isdigit():
        return f"they share {count_of(shared, 'band')}, and {required} are required"
    return f"they share {count_of(shared, 'band')}, and not those that {required} requires"


def separated(profile: Profile) -> str:
    """Say that the bucket limit keeps two documents from being compared."""
    limit = profile.recipe.match.bucket_limit
    return f"the bucket limit separates them: neither is among the first {limit} of a bucket that they share"


def unexplained(metric: str, scores: Scores, profile: Profile) -> str:
    """Say that nothing explains why two documents are not a pair."""
    stored = f"{measured(metric, scores)} reaches {threshold_of(profile)}, but the pair is not stored"
    return f"{stored}; check the index with: nearsim verify-index"
