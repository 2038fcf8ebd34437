"""The sections of a recipe, with their defaults. The key names are an interface."""

from typing import Annotated, Literal

from msgspec import Meta, Struct
from msgspec.structs import force_setattr, replace

from nearsim_db.similarity.recipe import validation
from nearsim_db.similarity.recipe.validation import DEFAULT_GAP, DEFAULT_PASSAGE

Mask = Literal["numbers", "dates", "hex", "uuids", "urls", "emails", "paths"]
Positive = Annotated[int, Meta(ge=1)]

DEFAULT_RECALL = 0.995
_DEFAULT_REVIEW = 0.5
_DEFAULT_COMMON = 5.0  # percent of the documents
_MUCH_IN_COMMON = 0.7
NOWHERE = "none"


class _Section(Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """A frozen section that rejects unknown keys."""


class Normalise(_Section, frozen=True):
    """How a text is normalised before it is split into shingles.

    `invisible` is about the characters that Unicode calls default-ignorable. Each part that `mask` names is replaced by
    one token; numbers of the original count for `cluster.numbers_differ`. `confusables` is about letters of other
    scripts that look like Latin ones, and words such as f.r.e.e.
    """

    unicode: Literal["none", "nfc", "nfkc"] = "nfkc"
    case: Literal["none", "lower", "casefold"] = "casefold"
    whitespace: Literal["none", "collapse"] = "collapse"
    html: bool = False
    invisible: Literal["drop", "keep"] = "drop"
    mask: tuple[Mask, ...] = ()
    confusables: Literal["keep", "fold"] = "keep"

    def __post_init__(self) -> None:
        force_setattr(self, "mask", tuple(sorted(set(self.mask))))


class Shingle(_Section, frozen=True):
    """How a text is split; `k` units make one shingle (in a bag of words, each word is a shingle).

    With `order` free the words of a shingle count in any order. Under tokens = code, `language` names the lexer.
    """

    scheme: Literal["char", "word", "bag", "sentence"] = "word"
    k: Annotated[int, Meta(ge=1, le=1000)] = 3
    tokens: Literal["whitespace", "unicode", "ascii", "code"] = "unicode"
    stopwords: str | tuple[str, ...] = "none"
    stem: str = "none"
    min_token_length: Annotated[int, Meta(ge=1, le=100)] = 1
    order: Literal["kept", "free"] = "kept"
    language: str | None = None


class Hash(_Section, frozen=True):
    """The base hash of shingle ids. djb2a takes bytes as 0 to 255, djb2a-signed as -128 to 127, both of UTF-8.

    djb2a-cast is djb2a-signed of the low bytes of UTF-16 units, each of which counts as a character.
    """

    base: Literal["poly64", "crc32", "djb2a", "djb2a-signed", "djb2a-cast"] = "poly64"


class Sketch(_Section, frozen=True):
    """The sketch family, its size and seed; further options belong to single families and are None for the rest.

    `functions` and `coefficients` (pairs of a and b, instead of those drawn by the seed) are for minhash; `vectors`
    for hyperplane, `width` for projection (0: derived from the threshold). `input` is whether hyperplane, projection
    and dart_minhash take terms or the owner's vectors, and `weights` how terms are weighted: by their count in the
    document, its logarithm, or their inverse document frequency, which every generation freezes.
    """

    family: Literal[
        "fast_similarity", "minhash", "bottom_k", "hyperplane", "projection", "dart_minhash", "winnow", "rare"
    ] = "fast_similarity"
    k: Annotated[int, Meta(ge=1, le=4096)] = 128
    seed: Annotated[int, Meta(ge=0, le=2**63 - 1)] = 1
    functions: Literal["prime32", "java32"] | None = None
    coefficients: tuple[tuple[int, int], ...] | None = None
    input: Literal["terms", "vector"] | None = None
    weights: Literal["count", "log", "idf"] | None = None
    vectors: Literal["gaussian", "sign"] | None = None
    width: Annotated[float, Meta(ge=0)] | None = None

    def __post_init__(self) -> None:
        for option, default in validation.FAMILY_OPTIONS.get(self.family, {}).items():
            if getattr(self, option) is None and not (option == "weights" and self.input == "vector"):
                force_setattr(self, option, default)


class Bands(_Section, frozen=True):
    """How the sketch is cut into bands: chosen for `recall` (0.995 by default), by a `rule`, or by `count` and `rows`.

    `recall_at` is whether the recall is that of pairs at the threshold, which it is by default, or at `match.review`.
    The rule pick_bands is RiskIQ's (see `lsh.pick_bands`).
    """

    recall: Annotated[float, Meta(gt=0, lt=1)] | None = None
    count: Annotated[int, Meta(ge=1, le=256)] | None = None
    rows: Positive | None = None
    rule: Literal["pick_bands"] | None = None
    recall_at: Literal["threshold", "review"] | None = None
    hash: Literal["mix64", "xor", "djb2a-joined"] = "mix64"

    @property
    def is_open(self) -> bool:
        """Whether no banding is given."""
        return (self.recall, self.count, self.rows, self.rule) == (None, None, None, None)


class MatchRules(_Section, frozen=True):
    """When two documents are a pair; `bucket_limit` 0 means no limit.

    Under `verify = "bands"` all candidates are pairs, and their similarity is the estimate. Candidates that share
    `certain_shared_bands` or more are pairs at any similarity; 0: none.

    Candidates from `review` to the threshold are stored to be looked at by a person, outside clusters, removal and
    counts; 0: none. By default 0.5 for exact Jaccard similarities, if the threshold is higher, otherwise 0.

    With `across`, source or the name of an attribute, only pairs of different values count, where none is a value;
    with `within`, one or several of these, only pairs of equal values; with `within_days` only pairs whose dates lie so
    close, and documents without a date are paired with each other.

    `threshold` is the least similarity, for projection the largest distance. `amplification`, such as "or(40,
    and(3))", replaces bands and the minimum. `passage`, `min_fingerprints` and `passage_gap` are for winnow: runs of
    `passage` equal words (or characters, as in shingle.scheme) always make two documents candidates, shorter runs of a
    text that would have fewer than `min_fingerprints` fingerprints too, and a passage may have up to `passage_gap`
    other words between runs of `shingle.k` equal ones. Two documents with a run of `passage_words` equal ones are a
    pair at any similarity; below the threshold it is in no cluster, and nothing is removed for it. Shingles that are in
    more than `ignore_common` percent of the documents, at least 20, and those of the texts `ignore` are left out, as if
    the documents did not have them; 0: none are common.
    """

    threshold: Annotated[float, Meta(gt=0)] = 0.7
    min_shared_bands: Annotated[int, Meta(ge=1, le=256)] = 1
    amplification: str | None = None
    verify: Literal["exact", "estimate", "bands"] = "exact"
    certain_shared_bands: Annotated[int, Meta(ge=0, le=256)] = 0
    bucket_limit: Annotated[int, Meta(ge=0, le=2**31 - 1)] = 128
    review: Annotated[float, Meta(ge=0, le=1)] | None = None
    across: str = NOWHERE
    within: str | tuple[str, ...] = NOWHERE
    within_days: Annotated[int, Meta(ge=0, le=100_000)] = 0
    passage: Annotated[int, Meta(ge=1, le=100_000)] | None = None
    min_fingerprints: Annotated[int, Meta(ge=1, le=100_000)] | None = None
    passage_gap: Annotated[int, Meta(ge=0, le=1_000)] | None = None
    passage_words: Annotated[int, Meta(ge=1, le=100_000)] | None = None
    ignore_common: Annotated[float, Meta(ge=0, le=100)] | None = None
    ignore: tuple[str, ...] | None = None

    def __post_init__(self) -> None:
        if isinstance(self.within, tuple) and len(self.within) < 2:
            force_setattr(self, "within", "".join(self.within) if self.within else NOWHERE)

    @property
    def fields_within(self) -> tuple[str, ...]:
        """The fields whose values are equal in a pair; none if pairs of any values count."""
        if isinstance(self.within, tuple):
            return self.within
        return () if self.within == NOWHERE else (self.within,)


class ClusterRules(_Section, frozen=True):
    """How pairs connect documents, and which document of a cluster to keep.

    With `allow_chains` the linkage may be connected under containment too.
    """

    linkage: Literal["connected", "representative", "average"] = "connected"
    allow_chains: bool = False
    keep: str = "earliest"
    numbers_differ: Literal["link", "keep-apart"] = "link"

    @property
    def needs_all_ties(self) -> bool:
        """Whether clusters, or their survivors, depend on all ties, and not only on what these connect."""
        return self.linkage != "connected" or self.keep == "central"


class Retain(_Section, frozen=True):
    """How long documents stay in the index, and with `delete` in the collection: by published_at, else created_at."""

    age: str = "none"
    delete: bool = False

    @property
    def seconds(self) -> int | None:
        """The age in seconds, with days of 24 hours; None for no limit."""
        return validation.retained_seconds(self.age)


class Recipe(_Section, frozen=True):
    """All parameters of a profile, with their defaults."""

    fields: tuple[Literal["title", "body"], ...] = ("title", "body")
    normalise: Normalise = Normalise()
    shingle: Shingle = Shingle()
    hash: Hash = Hash()
    sketch: Sketch = Sketch()
    bands: Bands = Bands()
    match: MatchRules = MatchRules()
    cluster: ClusterRules = ClusterRules()
    retain: Retain = Retain()

    def __post_init__(self) -> None:
        if self.match.review is None:
            force_setattr(self, "match", replace(self.match, review=default_review(self)))
        if self.sketch.family == "winnow":
            for key, default in (
                ("passage", default_passage(self.match)),
                ("min_fingerprints", default_fingerprints(self.match)),
                ("passage_gap", DEFAULT_GAP),
                ("ignore_common", default_common(self.shingle)),
            ):
                if getattr(self.match, key) is None:
                    force_setattr(self, "match", replace(self.match, **{key: default}))
        elif self.bands.is_open and self.match.amplification is None:
            force_setattr(self, "bands", default_bands(self.sketch, self.bands))
        validation.check(self)

    @property
    def window(self) -> int | None:
        """The consecutive shingles of which winnow keeps the least, so that no passage is missed."""
        return self._shingles_of(self.match.passage)

    @property
    def run_length(self) -> int | None:
        """The consecutive shingles that make a pair of two documents; None if only the threshold does."""
        return self._shingles_of(self.match.passage_words)

    @property
    def never_missed(self) -> int | None:
        """How many equal words in a row, without repetitions, always make candidates; None unless for winnow."""
        if self.window is None:
            return None
        return self.words_around + self.match.min_shared_bands * self.window

    def _shingles_of(self, words: int | None) -> int | None:
        return None if words is None else words - self.words_around

    @property
    def words_around(self) -> int:
        """The words that a run of shingles has more than it has shingles."""
        return 0 if self.shingle.scheme == "bag" else self.shingle.k - 1


def default_passage(match: MatchRules) -> int:
    """Return the default of match.passage: runs that make a pair are then never missed."""
    return min(match.passage_words or DEFAULT_PASSAGE, DEFAULT_PASSAGE)


def default_fingerprints(match: MatchRules) -> int:
    """Return the default of match.min_fingerprints: fewer for pairs of much in common, or that a passage makes.

    Of all pairs of 11,000 Reuters stories, by brute force, 64 find 0.996 of those from 0.5 on, 24 0.998 of those from
    0.7 on; windows of one length 0.884 and 0.968. A build takes 2.4 to 2.6 times the processor time of the default
    recipe with 24 fingerprints, 4.4 to 5.2 times with 64 and a threshold of 0.5.
    """
    return 64 if match.passage_words is None and match.threshold < _MUCH_IN_COMMON else 24


def default_common(shingle: Shingle) -> float:
    """Return the default of match.ignore_common: none of single words and of runs of characters."""
    return _DEFAULT_COMMON if shingle.scheme in ("word", "sentence") and shingle.k > 1 else 0.0


def default_bands(sketch: Sketch, bands: Bands) -> Bands:
    """Return the bands of a recipe that leaves them open: all ids of rare are keys."""
    if sketch.family == "rare":
        return replace(bands, count=sketch.k, rows=1)
    return replace(bands, recall=DEFAULT_RECALL)


def default_review(recipe: Recipe) -> float:
    """Return where pairs to be reviewed begin if a recipe leaves it open."""
    match = recipe.match
    is_jaccard = METRIC_OF_FAMILY[recipe.sketch.family] == "jaccard"
    return (
        _DEFAULT_REVIEW
        if is_jaccard and match.verify == "exact" and match.threshold > _DEFAULT_REVIEW
        else 0.0
    )


def without_review(recipe: Recipe) -> Recipe:
    """Return a recipe that finds no pairs to be reviewed."""
    bands = replace(recipe.bands, recall_at=None)
    return replace(recipe, match=replace(recipe.match, review=0.0), bands=bands)


METRIC_OF_FAMILY = {
    "fast_similarity": "jaccard",
    "minhash": "jaccard",
    "bottom_k": "jaccard",
    "winnow": "containment",
    "dart_minhash": "weighted_jaccard",
    "hyperplane": "cosine",
    "projection": "euclidean",
    "rare": "cosine",
}
