"""The sections of a recipe, with their defaults. The key names are an interface."""

from typing import Annotated, Literal

from msgspec import Meta, Struct
from msgspec.structs import force_setattr, replace

from nearsim_db.similarity.recipe import validation
from nearsim_db.similarity.recipe.validation import DEFAULT_GAP_WORDS, DEFAULT_PASSAGE

Mask = Literal["numbers", "dates", "hex", "uuids", "urls", "emails", "paths"]
Positive = Annotated[int, Meta(ge=1)]

DEFAULT_RECALL = 0.995
_DEFAULT_REVIEW = 0.5
_DEFAULT_COMMON_PERCENT = 5.0
_MUCH_IN_COMMON = 0.7
NOWHERE = "none"


class _Section(Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """A frozen section that rejects unknown keys."""


class Normalise(_Section, frozen=True):
    """How a text is normalised before it is split into shingles."""

    unicode: Literal["none", "nfc", "nfkc"] = "nfkc"
    """Unicode normalisation form."""
    case: Literal["none", "lower", "casefold"] = "casefold"
    """Case conversion."""
    whitespace: Literal["none", "collapse"] = "collapse"
    """With collapse, each run of spaces and control characters becomes one space. Matters for character shingles only:
    any run separates words."""
    html: bool | Literal["main"] = False
    """With true, remove tags, scripts, styles and comments, and decode entities. With main, compare only the article of
    a page, or all of its text if it has none: needs trafilatura (extra `web`)."""
    invisible: Literal["drop", "keep"] = "drop"
    """With drop, characters that no reader sees (Unicode calls them default-ignorable: soft hyphens, joiners, variation
    selectors, marks of direction, the byte order mark) are left out, so that texts that look alike are compared alike.
    With keep, most of them separate words."""
    mask: tuple[Mask, ...] = ()
    """Kinds of parts that become one word each, so that texts of one template are compared by what does not vary: see
    masks."""
    confusables: Literal["keep", "fold"] = "keep"
    """With fold, letters of other scripts that look like Latin ones become these (confusables.txt of Unicode 17, such
    as Cyrillic а), and letters with the same mark between them are one word (f.r.e.e). Capitals whose small letters
    look otherwise only in words that also have a Latin letter, or have such capitals alone. Needs `unicode =
    "nfkc"`."""

    def __post_init__(self) -> None:
        force_setattr(self, "mask", tuple(sorted(set(self.mask))))


class Shingle(_Section, frozen=True):
    """How a text is split into shingles."""

    scheme: Literal["char", "word", "bag", "sentence"] = "word"
    """Runs of k characters, runs of k words, single words, or runs of k sentences."""
    k: Annotated[int, Meta(ge=1, le=1000)] = 3
    """Units in a shingle; a bag always has one word. A text shorter than a shingle is one shingle."""
    tokens: Literal["whitespace", "unicode", "ascii", "code"] = "unicode"
    """What a word is: text between spaces; a run of letters, marks, numbers and connectors (`\\w` of UTS #18); a run of
    a to z and 0 to 9; or a token of source code."""
    stopwords: str | tuple[str, ...] = "none"
    """Words that are left out: none, a language (`en` is the classic list of 127 English words, `en-long` one of 1,333,
    others are those of the package stop-words), or a list of words."""
    stem: str = "none"
    """Language of the Snowball stemmer that reduces words of up to 256 characters, such as english, or none."""
    min_token_length: Annotated[int, Meta(ge=1, le=100)] = 1
    """Shorter words are left out."""
    order: Literal["kept", "free"] = "kept"
    """With free, a shingle is its words in any order, for reworded texts: with `scheme = "word"`, `hash.base =
    "poly64"` and k up to 32."""
    language: str | None = None
    """Lexer of Pygments with `tokens = "code"`, such as java, python, c++."""


class Hash(_Section, frozen=True):
    """The base hash of shingle ids."""

    base: Literal["poly64", "crc32", "djb2a", "djb2a-signed", "djb2a-cast"] = "poly64"
    """Hash that makes a shingle an id: 64 bits, or one of 32 bits for compatibility, which allow k up to 128. djb2a
    takes the bytes of UTF-8 as 0 to 255, djb2a-signed as -128 to 127, djb2a-cast the low bytes of UTF-16 units, with
    `scheme = "char"` only."""


class Sketch(_Section, frozen=True):
    """The sketch family, its size and seed; options that belong to other families are None."""

    family: Literal[
        "fast_similarity", "minhash", "bottom_k", "hyperplane", "projection", "dart_minhash", "winnow", "rare"
    ] = "fast_similarity"
    """How features become a sketch, which determines the metric: see sketch families."""
    k: Annotated[int, Meta(ge=1, le=4096)] = 128
    """Values in a sketch, by default 10 for rare. The standard error of an estimate is about sqrt(s (1 - s) / k), for
    the angles of hyperplane sqrt(θ (π - θ) / k)."""
    seed: Annotated[int, Meta(ge=0, le=2**63 - 1)] = 1
    """Another seed gives an independent sketch."""
    functions: Literal["prime32", "java32"] | None = None
    """For minhash: (a x + b) mod 4294967311 (the default), or 32-bit wrap-around with the coefficients of
    java.util.Random."""
    coefficients: tuple[tuple[int, int], ...] | None = None
    """For minhash: k pairs [a, b] instead of those drawn by `seed`."""
    input: Literal["terms", "vector"] | None = None
    """For hyperplane, projection and dart_minhash: compare the document's shingles with their counts (the default), or
    its vector; the sections normalise, shingle and hash have no effect then."""
    weights: Literal["count", "log", "idf"] | None = None
    """For the same families with terms: a shingle weighs its count n (the default), 1 + ln n, or its inverse document
    frequency, the only one of rare. Each generation keeps the frequencies that it was built with."""
    vectors: Literal["gaussian", "sign"] | None = None
    """For hyperplane: random vectors with normally distributed components (the default), or of +1 and -1, which are
    about three times as fast for terms and as accurate for texts of many words."""
    width: Annotated[float, Meta(ge=0)] | None = None
    """For projection: width of a bucket; 0 (the default) is 4.25 times the threshold."""

    def __post_init__(self) -> None:
        for option, default in validation.FAMILY_OPTIONS.get(self.family, {}).items():
            if getattr(self, option) is None and not (option == "weights" and self.input == "vector"):
                force_setattr(self, option, default)


class Bands(_Section, frozen=True):
    """How the sketch is cut into bands: chosen for a recall, by a rule, or by count and rows."""

    recall: Annotated[float, Meta(gt=0, lt=1)] | None = None
    """Least probability of sharing enough bands at the threshold, by default 0.995. The most rows that reach it are
    chosen, and the fewest bands of these: 20 bands of 4 rows at 0.7."""
    count: Annotated[int, Meta(ge=1, le=256)] | None = None
    """Number of bands, with `rows` instead of `recall`."""
    rows: Positive | None = None
    """Values of the sketch in a band."""
    rule: Literal["pick_bands"] | None = None
    """Instead of `recall`, the smallest number b of bands with b ln b >= -k ln(threshold), of k / b rows each (RiskIQ),
    which puts the middle of the S-curve near the threshold. Not for bottom_k."""
    recall_at: Literal["threshold", "review"] | None = None
    """Whether `recall` is that of pairs at the threshold (the default) or at `match.review`, which takes more bands of
    fewer rows: 40 of 3 at 0.5, 1.7 times the space and 1.25 times the time of a build."""
    hash: Literal["mix64", "xor", "djb2a-joined"] = "mix64"
    """Hash of the rows of a band; xor and djb2a-joined are for compatibility."""

    @property
    def is_open(self) -> bool:
        """Whether no banding is given."""
        return (self.recall, self.count, self.rows, self.rule) == (None, None, None, None)


class MatchRules(_Section, frozen=True):
    """When two documents are a pair."""

    threshold: Annotated[float, Meta(gt=0)] = 0.7
    """Least similarity of a pair, for projection the largest distance. Jaccard similarities are
    compared as integers, so 7 of 10 reaches 0.7; others to 12 decimals."""
    min_shared_bands: Annotated[int, Meta(ge=1, le=256)] = 1
    """Bands that a candidate must share. With winnow and m of them, runs of passage + (m - 1) w words are never
    missed, w being the shingles of a window: passage - k + 1."""
    amplification: str | None = None
    """Which shared bands make a candidate, instead of `bands.recall`, `count`, `rows`, `rule` and `min_shared_bands`,
    from the outside in: `or(40, and(3))` is any of 40 bands of 3 rows, `at_least(3, 40, and(3))` three of them, `and(4,
    or(4))` one in each of four groups, to any depth. The innermost `and` is a band; its values times all counts are at
    most k, bands at most 256. bottom_k supports only `or(n)` and `at_least(m, n)`."""
    verify: Literal["exact", "estimate", "bands"] = "exact"
    """Whether a similarity is computed from the texts, or taken from the sketches; with bands every candidate is a
    pair. With estimate and bands `verified` is false, intersection counts the equal places of the two sketches, and
    union the places compared."""
    certain_shared_bands: Annotated[int, Meta(ge=0, le=256)] = 0
    """Candidates that share so many bands are pairs at any similarity; 0: none."""
    bucket_limit: Annotated[int, Meta(ge=0, le=2**31 - 1)] = 128
    """The first so many documents of a bucket are its anchors; two documents are linked in a bucket if one of them is
    an anchor. 0: no limit. `nearsim stats` reports what the limit left out."""
    review: Annotated[float, Meta(ge=0, le=1)] | None = None
    """Candidates from this similarity to the threshold are stored for a person to look at (`nearsim pairs --review`),
    outside clusters, removal, events and counts; 0: none. Default: 0.5 for exact Jaccard similarities, if the threshold
    is higher, else 0. Bands are chosen for the threshold, so not all are found. Not for projection, nor with `verify =
    "bands"`."""
    across: str = NOWHERE
    """Only pairs count whose documents differ in this field, source or an attribute by name or path (`shop.name`),
    where no value is a value too. Look-ups of a text ignore it. Documents of one value with the same features are no
    twins, so of equal texts beyond `bucket_limit` not all are compared."""
    within: str | tuple[str, ...] = NOWHERE
    """Only pairs count whose documents have equal values of this field, or of each of a list: notes of one patient,
    listings of one shop; no value is a value too. The value is a part of every bucket, so a template that thousands of
    values share fills none (not with bottom_k). A look-up of a text finds documents without a value; give a document
    with its value."""
    within_days: Annotated[int, Meta(ge=0, le=100_000)] = 0
    """Only pairs count whose dates (`published_at`) are at most so many days of 24 hours apart; documents without a
    date are compared with each other; 0: any. Of `within`, `within_days` and `across` at most two are given."""
    length_ratio: Annotated[float, Meta(ge=0, le=1)] = 0.0
    """Only pairs count of which the shorter text has at least this share of the longer one's number of distinct
    shingles; 0: any. For containment, under which a line is a pair with any text that quotes it; a Jaccard similarity
    of s needs a ratio of s anyway. With `verify = "exact"` only."""
    passage: Annotated[int, Meta(ge=1, le=100_000)] | None = None
    """For winnow: equal words in a row (characters, if shingles are) that are never missed, at least `shingle.k`, by
    default 20."""
    min_fingerprints: Annotated[int, Meta(ge=1, le=100_000)] | None = None
    """For winnow: about the fewest fingerprints of a text that has as many shingles, by default 64, or 24 from a
    threshold of 0.7 on and with `passage_words`; 1: windows of one length."""
    passage_gap: Annotated[int, Meta(ge=0, le=1_000)] | None = None
    """For winnow: most words between two runs of `shingle.k` equal ones in one passage, by default 30."""
    passage_words: Annotated[int, Meta(ge=1, le=100_000)] | None = None
    """For winnow: two texts with so many equal words in a row are a pair whatever their similarity; below the threshold
    it is in no cluster, and nothing is removed or rejected for it. At least the run that is never missed, to which
    `passage` is lowered if it is not given."""
    ignore_common: Annotated[float, Meta(ge=0, le=100)] | None = None
    """For winnow: shingles that more than this percentage of the distinct texts share, and 20 at least, are left out;
    0: none. Default: 5, 0 for single words and characters."""
    ignore: tuple[str, ...] | None = None
    """For winnow: texts whose shingles are left out, at most 100,000 characters; `--ignore FILE` adds a file."""

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
    """How pairs connect documents, and which document of a cluster to keep."""

    linkage: Literal["connected", "representative", "average"] = "connected"
    """connected: a chain of pairs makes one cluster. representative: every member is paired with the survivor or is its
    twin; in the order of `keep` a document joins the most similar earlier representative that it is paired with, or
    becomes one. average: the two clusters whose texts are most similar on average are merged, as long as the average
    reaches the threshold, where two texts that are no pair count as 0 (UPGMA); best for records. The last two not with
    `verify = "bands"` or `certain_shared_bands`."""
    allow_chains: bool = False
    """Accept connected with the family winnow, where chains tie texts that have nothing in common."""
    keep: str = "earliest"
    """Which document survives: earliest or latest by published_at (else the time it was added), longest, source:A,B,C
    (the first source of the list), highest:COLUMN (the largest number in a column or at a path, as in
    `highest:meta.quality`), or central (the one most similar to the others that it is paired with; not with
    representative). It is an error if no document has the source, the number, or in `dedupe` a date for latest."""
    numbers_differ: Literal["link", "keep-apart"] = "link"
    """With keep-apart, documents whose numbers differ are not put into one cluster: for versioned or serial texts, such
    as results or notices made from a template. Elsewhere clusters fall apart."""

    @property
    def needs_all_ties(self) -> bool:
        """Whether clusters, or their survivors, depend on all ties, and not only on what these connect."""
        return self.linkage != "connected" or self.keep == "central"


class Retain(_Section, frozen=True):
    """How long documents stay in the index, by published_at, else created_at."""

    age: str = "none"
    """none, or a whole number of minutes, hours, days (of 24 hours) or weeks, as in `30 days`. Older documents are not
    in the index; they stay in `document`."""
    delete: bool = False
    """Delete these documents from `document` too, from all profiles of the collection. Only a live index deletes;
    refused for an attached table."""

    @property
    def seconds(self) -> int | None:
        """The age in seconds, with days of 24 hours; None for no limit."""
        return validation.retained_seconds(self.age)


class Recipe(_Section, frozen=True):
    """All parameters of a profile, with their defaults."""

    fields: tuple[Literal["title", "body"], ...] = ("title", "body")
    """Parts of a document that are compared, joined by a newline; missing or empty ones are left out."""
    normalise: Normalise = Normalise()
    """How a text is normalised."""
    shingle: Shingle = Shingle()
    """How it is split."""
    hash: Hash = Hash()
    """How a shingle becomes an id."""
    sketch: Sketch = Sketch()
    """How ids become a sketch."""
    bands: Bands = Bands()
    """How a sketch is cut into bands."""
    match: MatchRules = MatchRules()
    """When two documents are a pair."""
    cluster: ClusterRules = ClusterRules()
    """How pairs become clusters."""
    retain: Retain = Retain()
    """How long documents stay."""

    def __post_init__(self) -> None:
        if self.match.review is None:
            force_setattr(self, "match", replace(self.match, review=default_review(self)))
        if self.sketch.family == "winnow":
            for key, default in (
                ("passage", default_passage(self.match)),
                ("min_fingerprints", default_fingerprints(self.match)),
                ("passage_gap", DEFAULT_GAP_WORDS),
                ("ignore_common", default_common(self.shingle)),
            ):
                if getattr(self.match, key) is None:
                    force_setattr(self, "match", replace(self.match, **{key: default}))
        elif self.bands.is_open and self.match.amplification is None:
            force_setattr(self, "bands", default_bands(self.sketch, self.bands))
        validation.check(self)

    @property
    def window(self) -> int | None:
        """The shingles of a window, of which winnow keeps the smallest hash, so that no passage is missed."""
        return self._shingles_of(self.match.passage)

    @property
    def run_length(self) -> int | None:
        """How many consecutive shared shingles make two documents a pair; None if only the threshold does."""
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
    return _DEFAULT_COMMON_PERCENT if shingle.scheme in ("word", "sentence") and shingle.k > 1 else 0.0


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
