"""The result of tuning: a proposed recipe, and what it is based on."""

from dataclasses import dataclass

from nearsim_db.analysis.tuning.checks import Check
from nearsim_db.analysis.tuning.corpus import Forecast
from nearsim_db.analysis.tuning.histogram import Histogram
from nearsim_db.analysis.tuning.labels import Labels, LabelScores
from nearsim_db.analysis.tuning.sampling import Sample
from nearsim_db.analysis.tuning.shingling import Shingling
from nearsim_db.errors import NearsimError
from nearsim_db.similarity.profile import Profile

RECALL = 0.995


@dataclass(frozen=True, slots=True)
class TuningOptions:
    """Recall to reach, an optional fixed threshold, the seed, and the shingle keys (scheme, k) to keep."""

    recall: float = RECALL
    threshold: float | None = None
    seed: int = 1
    kept: frozenset[str] = frozenset()


@dataclass(slots=True)
class Proposal:
    """A proposed profile with its forecast; `reasons` are by recipe key."""

    profile: Profile
    forecast: Forecast
    kept_by_limit: float
    reasons: dict[str, str]

    @property
    def promised_recall(self) -> float:
        """Expected recall of the pairs at or above the threshold, including losses to the bucket limit."""
        return self.forecast.recall * self.kept_by_limit


@dataclass(slots=True)
class Tuning:
    """Measurements of a corpus and the proposal based on them; without one, `refusal` is the reason."""

    sample: Sample
    shinglings: list[Shingling]
    shingling: Shingling
    near_pairs: int
    twins: int
    sets: int
    histogram: Histogram
    valley: float | None
    threshold: float
    proposed: Proposal | None
    refusal: str
    checks: list[Check]
    alternatives: list[Forecast]
    thresholds: list[Forecast]
    labels: Labels | None = None
    label_scores: LabelScores | None = None

    def required(self) -> Proposal:
        """Return the proposal. Raises NearsimError if there is none."""
        if self.proposed is None:
            raise NearsimError(f"no recipe is proposed: {self.refusal}")
        return self.proposed
