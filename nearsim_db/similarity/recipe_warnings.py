"""Warnings about settings that are valid but likely to give poor results, in general or for a certain corpus."""

import re
from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np

from nearsim_db.messages import count_of
from nearsim_db.similarity.amplification import Amplification
from nearsim_db.similarity.arrays import Keys, Ragged, Sketches, lengths
from nearsim_db.similarity.chains import ClusterSpread
from nearsim_db.similarity.common_shingles import CommonShingles
from nearsim_db.similarity.linked_pairs import links
from nearsim_db.similarity.profile import Profile, make_family
from nearsim_db.similarity.recipe import Recipe, Shingle

# Warn if bands find less than this fraction of the pairs at the threshold.
LOW_RECALL = 0.9
# Warn above this number of distinct shingles, for which a 32-bit hash makes about 11,600 collisions.
CROWDED_32_BITS = 10_000_000
# Report a problem only if it affects at least this fraction of the documents.
NOTABLE_SHARE = 0.05

# Scripts without spaces between words, or with agglutinative words.
_UNSPACED = re.compile(r"[\u0e00-\u0eff\u1000-\u109f\u1100-\u11ff\u1780-\u17ff\u3041-\u30ff\u3130-\u318f\u3400-\u4dbf"
                       r"\u4e00-\u9fff\uac00-\ud7a3\uf900-\ufaff\uff66-\uffdc\U00020000-\U0003ffff]")  # fmt: skip
_LETTER = re.compile(r"[^\W\d_]")
_MARKUP = re.compile(
    r"<(?:!doctype\s+html|/?(?:html|head|body|div|p|span|a|br|b|i|em|strong|img|ul|ol|li|table|tr|td|h[1-6])\b[^<>]*>)",
    re.IGNORECASE,
)
_MIN_TAGS = 2
_SAMPLED_CHARACTERS = 2_000


def of_profile(profile: Profile) -> list[str]:
    """Return warnings about a recipe alone, each with its reason and remedy."""
    recipe = profile.recipe
    warnings = [_single_unit_shingles(recipe.shingle)] if recipe.sketch.input != "vector" else []
    warnings += [_coarse_sketch(profile), _unused_rows(profile), _low_recall(profile)]
    if recipe.bands.hash == "xor" and profile.rows > 1:
        warnings.append(
            "bands.hash = xor ignores the order of the rows of a band, and equal rows cancel; it is meant for "
            "compatibility with other systems: mix64 costs the same without these problems"
        )
    return [warning for warning in warnings if warning is not None]


def _single_unit_shingles(shingle: Shingle) -> str | None:
    if shingle.k > 1 or shingle.scheme not in ("char", "word"):
        return None
    if shingle.scheme == "char":
        return (
            "shingle.k = 1 compares only which characters texts use: a text with all letters equals the alphabet; set "
            "shingle.k to 3 or more"
        )
    return (
        "shingle.k = 1 makes each word a shingle, so texts of the same words in another order are equal; set shingle.k "
        "to 3 or more, or shingle.scheme to bag if that is intended"
    )


def _coarse_sketch(profile: Profile) -> str | None:
    """Return a warning if k positions are too few for the threshold.

    They are too few if two sketches at the threshold are expected to agree in less than one position, or to differ in
    less than one.
    """
    recipe = profile.recipe
    k = recipe.sketch.k
    share = make_family(recipe, "numpy").collision_probability(profile.similarity_at_threshold)
    if 1 / k <= share <= 1 - 1 / k or share == 1:
        return None
    end = "all" if share > 0.5 else "none"
    exact = recipe.match.verify == "exact"
    return (
        f"at the threshold {recipe.match.threshold:g} two sketches of {k} values agree in {share:.6f} of them, less "
        f"than a step of {1 / k:.6f} from {end}, which they cannot resolve; raise sketch.k"
        + ("" if exact else ", or set match.verify to exact")
    )


def _unused_rows(profile: Profile) -> str | None:
    """Return a warning if values of a sketch are in no band, except if the bands were chosen for a recall."""
    if profile.unused_rows == 0 or profile.recipe.bands.recall is not None:
        return None
    used = profile.bands * profile.rows
    remedy = (
        f"lower sketch.k to {used}, or raise bands.count"
        if profile.recipe.bands.rule is None
        else "to use more, set bands.count and bands.rows instead of bands.rule"
    )
    return (
        f"{profile.unused_rows} of the {profile.recipe.sketch.k} values of a sketch are in no band: {profile.bands} "
        f"bands of {profile.rows} rows use {used}; {remedy}"
    )


def _low_recall(profile: Profile) -> str | None:
    if profile.expected_recall >= LOW_RECALL or profile.recipe.bands.recall is not None:
        return None
    return (
        f"of the pairs exactly at the threshold only {profile.expected_recall:.0%} share enough bands to be found, and "
        "more of the pairs that are more similar (see nearsim profile show); use more bands or fewer rows to find more"
    )


@dataclass(slots=True)
class TextSample:
    """Counts of texts, collected while a corpus is read."""

    texts: int = 0
    unspaced: int = 0  # texts in scripts without spaces between words
    html: int = 0  # texts that are HTML

    def add(self, texts: Iterable[str]) -> None:
        """Count texts. Only the beginning of each text is examined."""
        for text in texts:
            beginning = text[:_SAMPLED_CHARACTERS]
            self.texts += 1
            if not beginning.isascii():
                letters = len(_LETTER.findall(beginning))
                self.unspaced += 2 * len(_UNSPACED.findall(beginning)) > letters > 0
            self.html += is_html(text)

    def merge(self, other: "TextSample") -> None:
        """Add the counts of another sample."""
        self.texts += other.texts
        self.unspaced += other.unspaced
        self.html += other.html


def is_html(text: str) -> bool:
    """Whether a text has HTML markup near its beginning."""
    beginning = text[:_SAMPLED_CHARACTERS]
    return "<" in beginning and len(_MARKUP.findall(beginning)) >= _MIN_TAGS


def of_texts(profile: Profile, sample: TextSample) -> list[str]:
    """Return warnings about a recipe that does not suit the scripts and formats of the texts."""
    return [*_unspaced(profile.recipe, sample), *of_markup(profile.recipe, sample.html, sample.texts)]


def of_markup(recipe: Recipe, html: int, texts: int) -> list[str]:
    """Return a warning if many texts are HTML and the recipe does not remove markup.

    `html` is the number of texts that are HTML, of `texts` in all.
    """
    if recipe.normalise.html or recipe.sketch.input == "vector" or not texts:
        return []
    if html / texts < NOTABLE_SHARE:
        return []
    return [
        f"{html / texts:.0%} of the texts are HTML, whose tags and scripts are compared like words; set normalise.html "
        "to main to compare the article of each page, or to true to compare all text that a page displays. Menus and "
        "other parts that the pages of a site share are text, too, so with true different pages may be similar"
    ]


def _unspaced(recipe: Recipe, sample: TextSample) -> list[str]:
    if recipe.shingle.scheme not in ("word", "bag") or not sample.texts:
        return []
    share = sample.unspaced / sample.texts
    if share < NOTABLE_SHARE:
        return []
    return [
        f"{share:.0%} of the texts are in Chinese, Japanese, Korean or another script that does not separate words by "
        "spaces, where word shingles rarely match; set shingle.scheme to char and shingle.k to about 3, as the preset "
        "cjk does"
    ]


@dataclass(frozen=True, slots=True)
class FeatureTotals:
    """Totals over the documents of an index."""

    with_features: int  # documents with features
    with_one: int  # documents with a single feature
    without: int  # documents without features
    features: (
        int  # sum of the features of all documents except twins, an upper bound of the distinct features
    )


def of_features(profile: Profile, sizes: FeatureTotals) -> list[str]:
    """Return warnings about documents with few features, and about collisions of many features."""
    recipe = profile.recipe
    documents, shortest, shingles = sizes.with_features, sizes.with_one, sizes.features
    warnings = _featureless(profile, sizes)
    if recipe.sketch.input == "vector":
        return warnings

    if recipe.shingle.scheme != "sentence" and documents and shortest / documents >= NOTABLE_SHARE:
        warnings.append(
            f"{shortest:,} of {count_of(documents, 'document')} with a single shingle, which only exact copies share; "
            "lower shingle.k, or set shingle.scheme to char"
        )

    if recipe.hash.base != "poly64" and shingles > CROWDED_32_BITS:
        warnings.append(
            f"up to {shingles:,} distinct shingles share the 4,294,967,296 values of {recipe.hash.base}: about "
            f"{shingles**2 / 2**33:,.0f} pairs of them collide; set hash.base to poly64, which has 64 bits"
        )
    return warnings


def _featureless(profile: Profile, sizes: FeatureTotals) -> list[str]:
    documents = sizes.with_features + sizes.without
    if not documents or sizes.without / documents < NOTABLE_SHARE:
        return []
    missing = (
        "vectors"
        if profile.recipe.sketch.input == "vector"
        else "text in " + " or ".join(profile.recipe.fields)
    )
    return [
        f"{sizes.without:,} of {count_of(documents, 'document')} without features, for lack of usable {missing}: such "
        "documents match no other document"
    ]


def of_numbers(recipe: Recipe, differing: int, pairs: int) -> list[str]:
    """Return a warning if the numbers of most pairs differ. `differing` of `pairs` pairs have different numbers.

    There is no warning for a recipe with masks, which compares texts made from one template on purpose.
    """
    is_intended = recipe.normalise.mask and recipe.cluster.numbers_differ == "link"
    if 2 * differing <= pairs or is_intended:
        return []
    if recipe.cluster.numbers_differ == "link":
        return [
            f"the numbers of {differing:,} of {count_of(pairs, 'pair')} differ, as in invoices or prices of one "
            "template, and all but one of such texts are duplicates; to keep them: "
            "cluster.numbers_differ = keep-apart; to find all texts of a template: normalise.mask"
        ]
    return [
        f"cluster.numbers_differ = keep-apart leaves {differing:,} of {count_of(pairs, 'pair')} out of clusters, "
        "because their numbers differ; it is meant for issues of a series, such as prices or weather; set it to link "
        "to cluster these pairs, too"
    ]


# In a smaller collection, a single group of copies may well be most of the documents, or 5 % of them.
_MIN_DOCUMENTS_FOR_DUPLICATES, _MIN_DOCUMENTS_FOR_CLUSTERS = 100, 1_000
_MAX_CLUSTER_SHARE = 0.05


def has_excessive_duplicates(documents: int, duplicates: int, largest_cluster: int) -> bool:
    """Whether most documents are duplicates of others, or one cluster has more than 5 % of them."""
    is_most = documents >= _MIN_DOCUMENTS_FOR_DUPLICATES and 2 * duplicates > documents
    is_large = documents >= _MIN_DOCUMENTS_FOR_CLUSTERS and largest_cluster > _MAX_CLUSTER_SHARE * documents
    return is_most or is_large


def of_duplicates(
    recipe: Recipe, documents: int, duplicates: int, largest_cluster: int, noun: str = "document"
) -> list[str]:
    """Return a warning if most documents are duplicates of others, or if one cluster has more than 5 % of them."""
    if not has_excessive_duplicates(documents, duplicates, largest_cluster):
        return []
    cluster = f", and the largest cluster has {largest_cluster:,}" if largest_cluster else ""
    rules = recipe.cluster
    return [
        f"{duplicates:,} of {count_of(documents, noun)} are duplicates{cluster}; if they are no copies, set a stricter "
        f"match.threshold (now {recipe.match.threshold:g}), cluster.linkage = average (now {rules.linkage}) or "
        f"cluster.numbers_differ = keep-apart (now {rules.numbers_differ})"
    ]


def of_frames(recipe: Recipe, framed: int, pairs: int, *, in_index: bool = False) -> list[str]:
    """Return a warning if most of some pairs share little but what recurs in many documents, such as menus."""
    if 2 * framed <= pairs:
        return []
    rules, remedies = recipe.normalise, []
    if rules.html != "main":
        remedies.append("to compare the article of each page: normalise.html = main")
    if rules.drop_repeated == "none":
        command = " (nearsim dedupe, on files)" if in_index else ""
        remedies.append(f"to leave out lines that recur: normalise.drop_repeated = source{command}")
    if recipe.match.across == "none":
        remedies.append("for pairs of different sources only: match.across = source")
    return [
        f"{framed:,} of {count_of(pairs, 'pair')} looked at have little in common but what recurs in many documents, "
        f"such as menus and footers of one site; {'; '.join(remedies) or 'raise match.threshold'}"
    ]


_SHOWN_SIMILARITY = 0.005


def of_chains(
    profile: Profile, clusters: Iterable[ClusterSpread], noun: str = "document", *, estimated: bool = False
) -> list[str]:
    """Return a warning if a cluster has texts less similar than half of the threshold; it names the worst cluster."""
    chains = [cluster for cluster in clusters if 2 * cluster.similarity < profile.similarity_at_threshold]
    if not chains:
        return []
    worst = min(chains, key=lambda cluster: cluster.similarity)
    others = f" (and {count_of(len(chains) - 1, 'other cluster')})" if len(chains) > 1 else ""
    about = "about " if estimated else ""
    similarity = f"{worst.similarity:.2f} or lower" if worst.similarity >= _SHOWN_SIMILARITY else "0"
    # Averages need the similarity of every pair.
    match = profile.recipe.match
    linkage = "representative" if match.verify == "bands" or match.certain_shared_bands else "average"
    return [
        f"a cluster of {count_of(worst.documents, noun)}{others} joins texts whose similarity is {about}{similarity}, "
        f"through a chain of others, though match.threshold is {match.threshold:g}; to cluster only texts that are "
        f"alike throughout: cluster.linkage = {linkage} (now {profile.recipe.cluster.linkage})"
    ]


def of_limit(limit: int, links: int, buckets: int) -> list[str]:
    """Return a warning if the bucket limit has left out links."""
    if not links:
        return []
    return [
        f"match.bucket_limit = {limit} leaves out {count_of(links, 'link')} in {count_of(buckets, 'bucket')}, counted "
        "once a bucket; raise it, or set it to 0 for no limit"
    ]


def of_common(percent: float, common: CommonShingles) -> list[str]:
    """Return a warning if common shingles are left out."""
    if not len(common.ids):
        return []
    return [
        f"match.ignore_common = {percent:g} leaves out {count_of(len(common.ids), 'shingle')} found in more than "
        f"{percent:g} % of {count_of(common.documents, 'distinct text')}, {common.counts.sum():,} in all; nearsim "
        "fingerprints --common lists them"
    ]


def of_sketches(profile: Profile, sketches: Sketches) -> list[str]:
    """Return warnings about the sketches of a sample, (n, k)."""
    if profile.recipe.sketch.family == "rare":
        return _of_keys(profile.recipe.sketch.k, sketches)
    if profile.recipe.bands.hash != "xor" or profile.rows < 2 or not len(sketches):
        return []
    used = sketches[:, : profile.bands * profile.rows].reshape(-1, profile.rows)
    ordered = np.sort(used, axis=1)
    share = float((ordered[:, 1:] == ordered[:, :-1]).any(axis=1).mean())
    if share == 0:
        return []
    return [
        f"in {share:.2%} of the bands equal rows cancel under bands.hash = xor, so different documents share a bucket; "
        "set bands.hash to mix64, or use a sketch.family whose values do not repeat"
    ]


def _of_keys(k: int, sketches: Sketches) -> list[str]:
    """Return a warning if many documents have at least as many rare shingles as a sketch has keys."""
    share = float((sketches[:, -1:] != sketches[:, -2:-1]).mean()) if k > 1 and len(sketches) else 0.0
    if share < NOTABLE_SHARE:
        return []
    return [
        f"{share:.0%} of the documents have {k} rare shingles that may decide a similarity, or more, of which sketch.k "
        f"= {k} are keys, so some of their pairs may be missed; raise sketch.k"
    ]


# The number of documents whose candidates are counted.
SAMPLE_SIZE = 1_000
# Warn if more candidates are expected.
MAX_CANDIDATES_PER_DOCUMENT = 100


def candidates_per_document(keys: Keys, amplification: Amplification, documents: int) -> float:
    """Estimate the number of candidate pairs per document of a corpus, ignoring the bucket limit.

    `keys` are the band keys of a random sample, and `documents` is the size of the corpus. The corpus is assumed to
    have the same fraction of pairs whose shared bands satisfy the amplification as the sample.
    """
    size = len(keys)
    if size < 2:
        return 0.0
    if isinstance(keys, Ragged):
        linked = _linked_pairs(keys, amplification.min_shared_bands or 1)
        return linked / (size * (size - 1) / 2) * (documents - 1) / 2

    buckets, indexes, sizes = np.unique(keys, return_inverse=True, return_counts=True)
    indexes, in_bucket = indexes.reshape(keys.shape), np.zeros(len(buckets), bool)
    # Leave out documents that are alone in all of their buckets, which most documents of a sample are.
    indexes = indexes[(sizes[indexes] > 1).any(axis=1)]
    linked = 0
    for row in indexes:
        in_bucket[row] = True
        linked += int(amplification.evaluate(in_bucket[indexes]).sum())
        in_bucket[row] = False
    # Do not count the link of each document with itself. All other links have been counted from both sides.
    pairs = (linked - len(indexes)) / 2
    return pairs / (size * (size - 1) / 2) * (documents - 1) / 2


def _linked_pairs(keys: Ragged, min_shared_keys: int) -> int:
    """Count the pairs of documents that share at least `min_shared_keys` keys."""
    order = np.argsort(keys.values, kind="stable")
    rows = np.repeat(np.arange(len(keys)), lengths(keys))[order]
    pairs = [left * len(keys) + right for _, left, right in links(keys.values[order], rows, 0)]
    counts = np.unique(np.concatenate([np.zeros(0, np.int64), *pairs]), return_counts=True)[1]
    return int(np.count_nonzero(counts >= min_shared_keys))


def of_candidates(expected: float, recipe: Recipe) -> str | None:
    """Return a warning and its remedy if a recipe is expected to have too many candidates, otherwise None."""
    if expected <= MAX_CANDIDATES_PER_DOCUMENT:
        return None
    remedy = (
        "lower sketch.k or match.bucket_limit"
        if recipe.sketch.family == "rare"
        else "raise shingle.k or sketch.k, or use more rows per band (lower bands.recall, or set bands.count and "
        "bands.rows)"
    )
    fate = (
        "all of which are pairs" if recipe.match.verify == "bands" else "most of which will fail verification"
    )
    return f"expecting about {expected:,.0f} candidate pairs per document, {fate}; to reduce them, {remedy}"
