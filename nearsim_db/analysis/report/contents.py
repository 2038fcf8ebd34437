"""The data of a report, as plain dataclasses that the page renders and `--json` prints, and the templates' filters."""

import shlex
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Literal

from nearsim_db.analysis.text_diff import Diff
from nearsim_db.messages import count_of
from nearsim_db.records import Evidence
from nearsim_db.store.clusters.reports import (
    Bucket,
    ClusterFacts,
    Copies,
    CorpusCounts,
    Featureless,
    Member,
    OverTime,
    SourceCount,
    Timeline,
)

Why = Literal["least similar", "numbers differ", "sample"]


@dataclass(frozen=True, slots=True)
class Step:
    """The stored pairs whose similarities are in one step of the histogram."""

    similarity: float  # where the step begins
    same_numbers: int  # pairs whose texts have the same numbers
    other_numbers: int  # pairs whose texts have different numbers

    @property
    def pairs(self) -> int:
        """Number of pairs in the step."""
        return self.same_numbers + self.other_numbers


@dataclass(frozen=True, slots=True)
class Similarities:
    """Histogram of the stored pairs by similarity, and the profile's S-curve on the same scale.

    Pairs that are stored only for review are left out. Other pairs below the threshold are stored only if they share
    enough bands.
    """

    metric: str
    threshold: float  # as a similarity
    step: float  # width of a step
    steps: tuple[Step, ...]
    curve: tuple[tuple[float, float], ...]  # similarity, and probability of becoming a candidate
    twins: int  # documents with the same features as an earlier document; `steps` does not count their pairs
    least: float  # the lowest similarity of a stored pair, or the threshold if no stored pair is below it
    verified: bool  # True if similarities are exact, False if they are estimates

    @property
    def pairs(self) -> int:
        """Number of pairs in the histogram."""
        return sum(step.pairs for step in self.steps)

    @property
    def renumbered(self) -> int:
        """Number of pairs whose numbers differ."""
        return sum(step.other_numbers for step in self.steps)


@dataclass(frozen=True, slots=True)
class ListedCluster:
    """A cluster in a table of clusters."""

    facts: ClusterFacts
    suspicion: float  # score from 0 to 100
    members: tuple[Member, ...]  # the first members, the survivor at their head
    timeline: Timeline | None  # when the cluster's documents were published, None without dates


@dataclass(frozen=True, slots=True)
class ClusterOverview:
    """Counts of clusters by size, and the largest and the most suspicious clusters."""

    clusters: int
    documents: int  # in clusters
    sizes: tuple[tuple[int, int], ...]  # a number of members, and how many clusters have that number
    largest: tuple[ListedCluster, ...]
    suspicious: tuple[ListedCluster, ...]
    all_suspicious: int  # number of suspicious clusters, listed or not


@dataclass(frozen=True, slots=True)
class Side:
    """One of two compared documents."""

    external_id: str
    title: str | None
    source: str | None
    date: str | None
    url: str | None
    has_text: bool
    is_cut: bool  # whether only the beginning of the text was compared
    stale: bool  # whether the text changed since the document was indexed


@dataclass(frozen=True, slots=True)
class ShownPassage:
    """A passage that two documents share, to show side by side."""

    equal: int  # words in runs that both documents have
    share: float  # `equal` as a fraction of the words of the longer side
    documents: int | None  # as in `Passage`
    diff: Diff


@dataclass(frozen=True, slots=True)
class ShownPair(Evidence):
    """A pair to show side by side."""

    why: Why  # why it was chosen
    left: Side
    right: Side
    numbers_differ: bool
    verdict: str | None
    diff: Diff
    passages: tuple[ShownPassage, ...]  # the rarest passages; empty if the metric is not containment


@dataclass(frozen=True, slots=True)
class LikeBuckets:
    """Large buckets that have the same size and the same first members."""

    bucket: Bucket  # one of the buckets
    buckets: int  # number of the buckets


@dataclass(frozen=True, slots=True)
class LargeBuckets:
    """The largest buckets, and totals over all buckets with two or more members."""

    largest: tuple[LikeBuckets, ...]
    listed: int  # buckets in `largest`
    shared: int | None  # buckets with two or more members; None in a report on files
    over_limit: int  # buckets with more members than the bucket limit
    left_out: int  # links that the bucket limit leaves out


@dataclass(frozen=True, slots=True)
class SetAside:
    """A piece of work on a document that was set aside because it failed too often."""

    external_id: str
    stage: str
    attempts: int
    error: str | None


@dataclass(frozen=True, slots=True)
class IndexContents:
    """The part of a report that describes a live index, or the near-duplicates of files.

    The fields `all_...` count all rows of a table, listed or not.
    """

    similarities: Similarities
    clusters: ClusterOverview
    comparisons: tuple[ShownPair, ...]
    sources: tuple[SourceCount, ...]
    all_sources: int
    copies: tuple[Copies, ...]
    all_copies: int
    over_time: OverTime | None
    buckets: LargeBuckets
    featureless: tuple[Featureless, ...]
    set_aside: tuple[SetAside, ...]


@dataclass(frozen=True, slots=True)
class RejectReason:
    """A reason why records were rejected, with the first of these records as an example."""

    reason: str  # with values replaced by …
    records: int  # rejected for this reason
    example_file: str
    example_line: int
    example: str  # the reason with its values


@dataclass(frozen=True, slots=True)
class RejectSummary:
    """The records of reject files, counted by reason."""

    files: tuple[str, ...]
    records: int
    reasons: tuple[RejectReason, ...]  # most frequent first
    reasons_left_out: int  # number of reasons that are not listed


@dataclass(frozen=True, slots=True)
class InputCounts:
    """How many records of an input file `dedupe` kept, removed and rejected."""

    file: str
    kept: int
    removed: int
    removed_for_other_file: int  # removed records that duplicate a record of another file
    rejected: int

    @property
    def records(self) -> int:
        """Number of records of the file."""
        return self.kept + self.removed + self.rejected


@dataclass(frozen=True, slots=True)
class Report:
    """A report on a profile of a collection, or on files."""

    title: str
    collection: str | None  # None for files
    profile: str | None  # None for files, or if the collection has no profile
    made_at: str  # in UTC, to the minute
    version: str  # of nearsim
    top: int  # maximum number of rows of each table
    corpus: CorpusCounts
    stats: dict[str, Any] | None  # as `nearsim stats` prints them
    recipe: str | None  # as TOML
    index: IndexContents | None
    missing: str | None  # why there is no live index, None if there is one
    rejects: RejectSummary | None
    inputs: tuple[InputCounts, ...] = ()  # the input files of `dedupe`


# Control characters and characters that change the direction of text are shown as code points.
_CONTROLS = (*range(0x09), 0x0B, 0x0C, *range(0x0E, 0x20), *range(0x7F, 0xA0))
_BIDIRECTIONAL = (0x061C, 0x200E, 0x200F, *range(0x202A, 0x202F), *range(0x2066, 0x206A))
_VISIBLE: dict[int, str | None] = {code: f"⟨U+{code:04X}⟩" for code in (*_CONTROLS, *_BIDIRECTIONAL)} | {
    0x0D: None
}
_MINUTE, _HOUR, _DAY = 60, 3_600, 86_400
_UNITS = ("bytes", "kB", "MB", "GB", "TB")


def visible(value: Any) -> Any:
    """Return a text with its control characters made visible, a dash for None, and any other value unchanged."""
    if value is None:
        return "–"
    return value.translate(_VISIBLE) if type(value) is str else value


def number(value: float | None, decimals: int = 0) -> str:
    """Return a number with thousands separators; a dash for None."""
    return "–" if value is None else f"{value:,.{decimals}f}"


def share(part: int, whole: int, decimals: int = 0) -> str:
    """Return `part` as a percentage of `whole`; a dash if `whole` is 0."""
    return f"{100 * part / whole:.{decimals}f}\u00a0%" if whole else "–"


def duration(seconds: float | None) -> str:
    """Return a duration in a suitable unit, such as 3.5 h; a dash for None."""
    if seconds is None:
        return "–"
    for size, unit in ((_DAY, "d"), (_HOUR, "h"), (_MINUTE, "min")):
        if seconds >= size:
            return f"{seconds / size:,.{0 if seconds >= 10 * size else 1}f}\u00a0{unit}"
    return f"{seconds:.0f} s"


def size(count: float | None) -> str:
    """Return a number of bytes in a suitable unit, such as 1.2 MB; a dash for None."""
    if count is None:
        return "–"
    power = 0
    while count >= 1000 and power < len(_UNITS) - 1:
        count, power = count / 1000, power + 1
    return f"{count:,.{0 if power == 0 or count >= 100 else 1}f} {_UNITS[power]}"


def short(text: str | None, characters: int = 120) -> str | None:
    """Return text truncated to `characters` with …; None for blank text."""
    if text is None or not text.strip():
        return None
    return text if len(text) <= characters else f"{text[: characters - 1]}…"


def is_link(url: str | None) -> bool:
    """Whether a page may link to a URL. Only http and https are allowed, as other schemes can run scripts."""
    return url is not None and url.startswith(("http://", "https://"))


def quoted(text: str) -> str:
    """Return a text quoted as one word of a shell command."""
    return shlex.quote(text)


FILTERS: dict[str, Callable[..., Any]] = {
    function.__name__: function
    for function in (number, count_of, share, duration, size, short, is_link, quoted)
}
