"""The data of a report as plain dataclasses, rendered by the page and printed by `--json`; formats of values."""

import shlex
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Literal

from nearsim_db.analysis.text_diff import Diff
from nearsim_db.errors import count_of
from nearsim_db.records import Evidence
from nearsim_db.store.clusters.reports import (
    Bucket,
    ClusterFacts,
    Copies,
    Corpus,
    Featureless,
    Member,
    OverTime,
    SourceCount,
    Timeline,
)

Why = Literal["least similar", "numbers differ", "sample"]


@dataclass(frozen=True, slots=True)
class Step:
    """Stored pairs of one histogram step: those with the same numbers, and those whose numbers differ."""

    similarity: float
    same_numbers: int
    other_numbers: int

    @property
    def pairs(self) -> int:
        """Number of pairs of the step."""
        return self.same_numbers + self.other_numbers


@dataclass(frozen=True, slots=True)
class Similarities:
    """Histogram of the stored pairs by similarity, and the profile's S-curve on the same scale.

    `curve` is a list of (similarity, probability of becoming a candidate). Pairs below `threshold` are not counted,
    unless for the bands that they share; `least` is the threshold, or the similarity of the least similar of those.
    Similarities are estimates unless `verified`. `twins` counts documents with the same features as an earlier one,
    at similarity 1; they are not in `steps`.
    """

    metric: str
    threshold: float
    step: float
    steps: tuple[Step, ...]
    curve: tuple[tuple[float, float], ...]
    twins: int
    least: float
    verified: bool

    @property
    def pairs(self) -> int:
        """Number of pairs in the histogram."""
        return sum(one.pairs for one in self.steps)

    @property
    def renumbered(self) -> int:
        """Number of pairs whose numbers differ."""
        return sum(one.other_numbers for one in self.steps)


@dataclass(frozen=True, slots=True)
class ListedCluster:
    """A cluster, its suspicion score (0 to 100), its first members, and when it was published, None if unknown."""

    facts: ClusterFacts
    suspicion: float
    members: tuple[Member, ...]
    timeline: Timeline | None


@dataclass(frozen=True, slots=True)
class Clusters:
    """Cluster counts by size, as (members, clusters), and the largest and most suspicious clusters."""

    clusters: int
    documents: int
    sizes: tuple[tuple[int, int], ...]
    largest: tuple[ListedCluster, ...]
    suspicious: tuple[ListedCluster, ...]
    all_suspicious: int


@dataclass(frozen=True, slots=True)
class Side:
    """One of two compared documents; `stale` if its text changed since it was indexed."""

    external_id: str
    title: str | None
    source: str | None
    date: str | None
    url: str | None
    has_text: bool
    is_cut: bool
    stale: bool


@dataclass(frozen=True, slots=True)
class ShownPassage:
    """A passage to show side by side, with `equal` words in runs that both have, a share of the longer side.

    `documents` is as in `Passage`.
    """

    equal: int
    share: float
    documents: int | None
    diff: Diff


@dataclass(frozen=True, slots=True)
class Comparison(Evidence):
    """A pair to show side by side, why it was chosen, and the verdict on it.

    `passages` are the rarest ones under containment, none under other metrics.
    """

    why: Why
    left: Side
    right: Side
    numbers_differ: bool
    verdict: str | None
    diff: Diff
    passages: tuple[ShownPassage, ...]


@dataclass(frozen=True, slots=True)
class LikeBuckets:
    """Large buckets of one size with the same first members; `bucket` is one of them."""

    bucket: Bucket
    buckets: int


@dataclass(frozen=True, slots=True)
class LargeBuckets:
    """The largest buckets, and totals over the buckets with two or more members.

    `largest` groups `listed` buckets; `left_out` counts links excluded by the bucket limit.
    """

    largest: tuple[LikeBuckets, ...]
    listed: int
    shared: int
    over_limit: int
    left_out: int


@dataclass(frozen=True, slots=True)
class SetAside:
    """Work on a document that was set aside after failures."""

    external_id: str
    stage: str
    attempts: int
    error: str | None


@dataclass(frozen=True, slots=True)
class IndexContents:
    """The part of a report that requires a live index."""

    similarities: Similarities
    clusters: Clusters
    comparisons: tuple[Comparison, ...]
    sources: tuple[SourceCount, ...]
    all_sources: int
    copies: tuple[Copies, ...]
    all_copies: int
    over_time: OverTime | None
    buckets: LargeBuckets
    featureless: tuple[Featureless, ...]
    set_aside: tuple[SetAside, ...]


@dataclass(frozen=True, slots=True)
class Reason:
    """A reason for rejection, with values replaced by …, its count, and its first record."""

    reason: str
    records: int
    example_file: str
    example_line: int
    example: str


@dataclass(frozen=True, slots=True)
class RejectSummary:
    """The records of reject files by reason, most frequent first; `reasons_left_out` counts reasons not listed."""

    files: tuple[str, ...]
    records: int
    reasons: tuple[Reason, ...]
    reasons_left_out: int


@dataclass(frozen=True, slots=True)
class Report:
    """A report; `stats` are those of `nearsim stats`.

    Without a live index, `index` is None and `missing` is the reason.
    """

    title: str
    collection: str
    profile: str | None
    made_at: str
    version: str
    top: int
    corpus: Corpus
    stats: dict[str, Any] | None
    recipe: str | None
    index: IndexContents | None
    missing: str | None
    rejects: RejectSummary | None


# Control characters, and those that change the direction of text, are shown as code points.
_CONTROLS = (*range(0x09), 0x0B, 0x0C, *range(0x0E, 0x20), *range(0x7F, 0xA0))
_BIDIRECTIONAL = (0x061C, 0x200E, 0x200F, *range(0x202A, 0x202F), *range(0x2066, 0x206A))
_VISIBLE: dict[int, str | None] = {code: f"⟨U+{code:04X}⟩" for code in (*_CONTROLS, *_BIDIRECTIONAL)} | {
    0x0D: None
}
_MINUTE, _HOUR, _DAY = 60, 3_600, 86_400
_UNITS = ("bytes", "kB", "MB", "GB", "TB")


def visible(value: Any) -> Any:
    """Return text with control characters made visible, other values unchanged, and a dash for None."""
    if value is None:
        return "–"
    return value.translate(_VISIBLE) if type(value) is str else value


def number(value: float | None, decimals: int = 0) -> str:
    """Return a number with thousands separators; a dash for None."""
    return "–" if value is None else f"{value:,.{decimals}f}"


def share(part: int, whole: int, decimals: int = 0) -> str:
    """Return a percentage; a dash if the whole is 0."""
    return f"{100 * part / whole:.{decimals}f}\u00a0%" if whole else "–"


def duration(seconds: float | None) -> str:
    """Return a duration in a suitable unit, e.g. 3.5 h; a dash for None."""
    if seconds is None:
        return "–"
    for size, unit in ((_DAY, "d"), (_HOUR, "h"), (_MINUTE, "min")):
        if seconds >= size:
            return f"{seconds / size:,.{0 if seconds >= 10 * size else 1}f}\u00a0{unit}"
    return f"{seconds:.0f} s"


def size(count: float | None) -> str:
    """Return bytes in a suitable unit; a dash for None."""
    if count is None:
        return "–"
    place = 0
    while count >= 1000 and place < len(_UNITS) - 1:
        count, place = count / 1000, place + 1
    return f"{count:,.{0 if place == 0 or count >= 100 else 1}f} {_UNITS[place]}"


def short(text: str | None, characters: int = 120) -> str | None:
    """Return text truncated to `characters` with …; None for blank text."""
    if text is None or not text.strip():
        return None
    return text if len(text) <= characters else f"{text[: characters - 1]}…"


def is_link(url: str | None) -> bool:
    """Whether a URL may be linked: one that runs nothing."""
    return url is not None and url.startswith(("http://", "https://"))


def quoted(text: str) -> str:
    """Return text as one word of a shell command."""
    return shlex.quote(text)


FILTERS: dict[str, Callable[..., Any]] = {
    one.__name__: one for one in (number, count_of, share, duration, size, short, is_link, quoted)
}
