"""Propose the passage length, gap and threshold of the family winnow from a sample of documents."""

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from nearsim_db.analysis.tuning import labels
from nearsim_db.analysis.tuning.labels import Labels, LabelScores
from nearsim_db.analysis.tuning.pair_sample import BINS, Histogram, valley
from nearsim_db.analysis.tuning.proposal import TuningOptions
from nearsim_db.analysis.tuning.sampling import Sample
from nearsim_db.analysis.tuning.tuning import known_labels
from nearsim_db.errors import InputError
from nearsim_db.records import Progress, silent
from nearsim_db.similarity.arrays import Floats, Ints
from nearsim_db.similarity.encoder import Encoder
from nearsim_db.similarity.passages import PassageFinder, find_passages, grams
from nearsim_db.similarity.profile import resolve
from nearsim_db.similarity.recipe import Recipe, override
from nearsim_db.similarity.sketch.winnow import expected_fingerprints
from nearsim_db.similarity.text.tokens import Tokens

LENGTHS = (8, 10, 13, 16, 20, 25, 32, 40)
GAPS = (0, 5, 10, 20, 30, 50, 80)
_FEWEST_PAIRS = 10
_CONTINUED = 0.5  # of the pairs that share a run, in which it is longer than by chance
_COVERED = 0.98
_PAIRS_EXAMINED = 300


@dataclass(frozen=True, slots=True)
class LengthScore:
    """What runs of `passage` equal words tell of the sample.

    `documents` is the share of documents that have such a run in common with another one, `continued` the share of
    pairs that share a run of twice the length too, None without pairs; `fingerprints` are those of a document.
    """

    passage: int
    documents: float
    continued: float | None
    fingerprints: float


@dataclass(frozen=True, slots=True)
class PassageTuning:
    """A proposed recipe with the scores of lengths and gaps; of a gap the equal words in passages, by the most."""

    sample: Sample
    lengths: list[LengthScore]
    gaps: list[tuple[int, float]]
    recipe: Recipe
    reasons: dict[str, str]
    labels: Labels | None
    label_scores: LabelScores | None


def tune_passages(
    sample: Sample,
    recipe: Recipe,
    options: TuningOptions,
    labelled: Labels | None = None,
    progress: Progress = silent,
) -> PassageTuning:
    """Propose match.passage, match.passage_gap and match.threshold; keys in `options.kept` stay the recipe's.

    Raises InputError if there are too few documents or labels.
    """
    encoder = Encoder(resolve(recipe))
    finder = PassageFinder(recipe, encoder.backend)
    texts = [finder.tokens(text) for text in sample.texts]
    if sum(len(one) > 0 for one in texts) < 2:
        raise InputError(
            f"{len(texts):,} documents were sampled; tune compares pairs of texts: give at least two"
        )
    rng = np.random.default_rng(options.seed)
    scored, lengths = {}, [one for one in sorted({*LENGTHS, finder.rules.length}) if one >= finder.rules.k]
    for done, length in enumerate(lengths, 1):
        scored[length] = _score_length(texts, length, recipe, rng)
        progress("judge", done, len(lengths))
    reasons: dict[str, str] = {}
    passage = _chosen_length(scored, finder.rules.length, options, reasons)
    pairs = scored[passage][1]
    gaps = _score_gaps(texts, _drawn(pairs, rng), finder, passage)
    gap = _chosen_gap(gaps, finder.rules.gap, options, reasons)
    known = None if labelled is None else known_labels(sample, labelled)
    scores = None if known is None else _score_labels(encoder, sample, known, options)
    threshold = _chosen_threshold(encoder, sample.texts, pairs, recipe, scores, options, reasons)
    settings = [f"match.passage={passage}", f"match.passage_gap={gap}", f"match.threshold={threshold!r}"]
    found = [one for one, _ in scored.values()]
    return PassageTuning(sample, found, gaps, override(recipe, settings), reasons, known, scores)


def _score_length(
    texts: Sequence[Tokens], length: int, recipe: Recipe, rng: np.random.Generator
) -> tuple[LengthScore, Ints]:
    """Score a length; also return pairs that share a run, each document with the first that has the run."""
    windows = [np.unique(grams(one.ids, length)) for one in texts]
    flat = np.concatenate(windows)
    rows = np.repeat(np.arange(len(windows)), [len(one) for one in windows])
    order = np.argsort(flat, kind="stable")
    flat, rows = flat[order], rows[order]
    first = np.flatnonzero(np.append(True, flat[1:] != flat[:-1])[: len(flat)])
    firsts = np.repeat(rows[first], np.diff(first, append=len(flat)))
    linked = firsts != rows
    pairs = np.unique(np.stack((firsts[linked], rows[linked]), axis=1), axis=0)
    drawn = _drawn(pairs, rng)
    longer = [_share_run(texts[one], texts[other], 2 * length) for one, other in drawn.tolist()]
    shingles = np.array([max(0, len(one) - recipe.words_around) for one in texts])
    fewest = recipe.match.min_fingerprints or 1
    score = LengthScore(
        length,
        len(np.unique(pairs)) / len(texts),
        float(np.mean(longer)) if longer else None,
        float(np.mean(expected_fingerprints(shingles, length - recipe.words_around, fewest))),
    )
    return score, pairs


def _share_run(one: Tokens, other: Tokens, length: int) -> bool:
    return bool(np.isin(grams(one.ids, length), grams(other.ids, length)).any())


def _drawn(pairs: Ints, rng: np.random.Generator) -> Ints:
    return rng.permutation(pairs)[:_PAIRS_EXAMINED]


def _chosen_length(
    scored: dict[int, tuple[LengthScore, Ints]], own: int, options: TuningOptions, reasons: dict[str, str]
) -> int:
    """Return the shortest run that most pairs which share it continue, and give the reason."""
    if "passage" in options.kept:
        reasons["match.passage"] = "given"
        return own
    for length, (score, pairs) in scored.items():
        if len(pairs) >= _FEWEST_PAIRS and (score.continued or 0.0) >= _CONTINUED:
            reasons["match.passage"] = (
                f"the shortest run that is no mere phrase: {score.continued:.0%} of the pairs that share {length} "
                f"equal words share {2 * length}; {score.documents:.1%} of the documents have such a run"
            )
            return length
    reasons["match.passage"] = "the recipe's own, as few documents share long runs"
    return own


def _score_gaps(
    texts: Sequence[Tokens], pairs: Ints, finder: PassageFinder, passage: int
) -> list[tuple[int, float]]:
    """Return for each gap the equal words in the passages of some pairs, as a share of the most."""
    equal = []
    for gap in GAPS:
        rules = replace(finder.rules, gap=gap, length=passage)
        found = (find_passages(texts[one], texts[other], rules) for one, other in pairs.tolist())
        equal.append(sum(passage.equal for own in found for passage in own))
    return [(gap, count / max(*equal, 1)) for gap, count in zip(GAPS, equal, strict=True)]


def _chosen_gap(
    gaps: Sequence[tuple[int, float]], own: int, options: TuningOptions, reasons: dict[str, str]
) -> int:
    enough = [(gap, share) for gap, share in gaps if share >= _COVERED]
    if "passage_gap" in options.kept or not enough:
        reasons["match.passage_gap"] = (
            "given" if enough else "the recipe's own, as no two documents share a passage"
        )
        return own
    gap, share = enough[0]
    reasons["match.passage_gap"] = f"passages have {share:.1%} of the equal words that they have with any gap"
    return gap


def _score_labels(encoder: Encoder, sample: Sample, labelled: Labels, options: TuningOptions) -> LabelScores:
    rows = {name: row for row, name in enumerate(sample.wanted)}
    ends = np.array([(rows[left], rows[right]) for left, right, _ in labelled.pairs], np.int64)
    texts = [encoder.text_of(title, body) for title, body in sample.wanted.values()]
    similarity = _containments(encoder, texts, ends)
    duplicate = np.array([is_duplicate for _, _, is_duplicate in labelled.pairs], bool)
    return labels.score(similarity, duplicate, options.precision, options.threshold)


def _containments(encoder: Encoder, texts: Sequence[str], pairs: Ints) -> Floats:
    """Return the containment of pairs of texts, 0 if either has no features."""
    used, places = np.unique(pairs, return_inverse=True)
    encoded = encoder.encode([texts[row] for row in used.tolist()], keep_features=True)
    left, right = places.reshape(-1, 2).T
    some = (encoded.counts[left] > 0) & (encoded.counts[right] > 0)
    found = np.zeros(len(pairs))
    found[some] = encoder.compare(encoded.features, left[some], right[some]).similarity
    return found


def _chosen_threshold(
    encoder: Encoder,
    texts: Sequence[str],
    pairs: Ints,
    recipe: Recipe,
    scores: LabelScores | None,
    options: TuningOptions,
    reasons: dict[str, str],
) -> float:
    """Return the threshold given, of the labels, or where the containments of pairs with a passage are fewest."""
    if options.threshold is not None:
        reasons["match.threshold"] = "given"
        return options.threshold
    if scores is not None and scores.best.f1 > 0 and scores.separate:
        reasons["match.threshold"] = f"the best F1 of the labelled pairs, {scores.best.f1:.3f}"
        return labels.separating(scores.points, scores.best)
    counts = np.zeros(BINS)
    if len(pairs):
        similarity = _containments(encoder, texts, pairs)
        places = np.minimum((similarity * BINS + 1e-9).astype(np.int64), BINS - 1)
        counts = np.bincount(places, minlength=BINS).astype(np.float64)
    lowest = valley(Histogram(counts, counts, 0.0)) if len(pairs) >= _FEWEST_PAIRS else None
    if lowest is None or not counts[: int(lowest * BINS)].any():
        reasons["match.threshold"] = (
            "the recipe's own, as containments of pairs with a passage have no clear valley; label some pairs "
            "(--labels)"
        )
        return recipe.match.threshold
    reasons["match.threshold"] = f"the valley between quotations and copies, at about {lowest:.2f}"
    return round(lowest, 2)
