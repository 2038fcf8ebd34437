"""Tuning of passages: choose passage length, gap and threshold for the family winnow on a sample of documents."""

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from nearsim_db.analysis.tuning import labels
from nearsim_db.analysis.tuning.labels import LabelScores, PairLabels
from nearsim_db.analysis.tuning.pair_sample import BINS, Histogram, valley
from nearsim_db.analysis.tuning.proposal import TuningOptions
from nearsim_db.analysis.tuning.sampling import Sample
from nearsim_db.analysis.tuning.tuning import known_labels
from nearsim_db.errors import InputError
from nearsim_db.records import Progress, silent
from nearsim_db.similarity.arrays import Floats, Ints, are_fresh
from nearsim_db.similarity.encoder import Encoder
from nearsim_db.similarity.passages import PassageFinder, find_passages, grams
from nearsim_db.similarity.profile import resolve
from nearsim_db.similarity.recipe import Recipe, override
from nearsim_db.similarity.sketch.winnow import expected_fingerprints
from nearsim_db.similarity.text.tokens import Tokens

LENGTHS = (8, 10, 13, 16, 20, 25, 32, 40)
GAPS = (0, 5, 10, 20, 30, 50, 80)
_MIN_PAIRS = 10
# Runs are more than mere phrases if this fraction of the pairs that share a run also share a run of twice the length.
_MIN_CONTINUED = 0.5
_MIN_COVERED = 0.98
_PAIRS_EXAMINED = 300


@dataclass(frozen=True, slots=True)
class LengthScore:
    """How common runs of equal words of some length are in the sample."""

    passage: int  # length of the runs
    documents: float  # fraction of the documents that have such a run in common with another document
    # Fraction of the pairs with a common run that also have a common run of twice the length, None without pairs.
    continued: float | None
    fingerprints: float  # mean number of fingerprints of a document


@dataclass(frozen=True, slots=True)
class PassageTuning:
    """A proposed recipe with the scores of lengths and gaps."""

    sample: Sample
    lengths: list[LengthScore]
    # Each gap, with the equal words in passages as a fraction of the equal words with the best gap.
    gaps: list[tuple[int, float]]
    recipe: Recipe
    reasons: dict[str, str]  # by recipe key
    labels: PairLabels | None
    label_scores: LabelScores | None


def tune_passages(
    sample: Sample,
    recipe: Recipe,
    options: TuningOptions,
    labelled: PairLabels | None = None,
    progress: Progress = silent,
) -> PassageTuning:
    """Propose match.passage, match.passage_gap and match.threshold. Keys in `options.kept` stay as in the recipe.

    Raises InputError if there are too few documents or labels.
    """
    encoder = Encoder(resolve(recipe))
    finder = PassageFinder(recipe, encoder.backend)
    texts = [finder.tokens(text) for text in sample.texts]
    if sum(len(tokens) > 0 for tokens in texts) < 2:
        raise InputError(
            f"{len(texts):,} documents were sampled; tune compares pairs of texts: give at least two"
        )

    rng = np.random.default_rng(options.seed)
    lengths = [length for length in sorted({*LENGTHS, finder.rules.length}) if length >= finder.rules.k]
    scored = {}
    for done, length in enumerate(lengths, 1):
        scored[length] = _score_length(texts, length, recipe, rng)
        progress("judge", done, len(lengths))

    reasons: dict[str, str] = {}
    passage = _choose_length(scored, finder.rules.length, options, reasons)
    pairs = scored[passage][1]
    gaps = _score_gaps(texts, _draw(pairs, rng), finder, passage)
    gap = _choose_gap(gaps, finder.rules.gap, options, reasons)

    usable_labels = None if labelled is None else known_labels(sample, labelled)
    label_scores = None if usable_labels is None else _score_labels(encoder, sample, usable_labels, options)
    threshold = _choose_threshold(encoder, sample.texts, pairs, recipe, label_scores, options, reasons)

    settings = [f"match.passage={passage}", f"match.passage_gap={gap}", f"match.threshold={threshold!r}"]
    length_scores = [score for score, _ in scored.values()]
    proposed = override(recipe, settings)
    return PassageTuning(sample, length_scores, gaps, proposed, reasons, usable_labels, label_scores)


def _score_length(
    texts: Sequence[Tokens], length: int, recipe: Recipe, rng: np.random.Generator
) -> tuple[LengthScore, Ints]:
    """Return the score of a length, and the pairs that share a run of this length.

    Each document with a run is paired with the first document that has the run.
    """
    windows = [np.unique(grams(tokens.ids, length)) for tokens in texts]
    runs = np.concatenate(windows)
    rows = np.repeat(np.arange(len(windows)), [len(ids) for ids in windows])
    order = np.argsort(runs, kind="stable")
    runs, rows = runs[order], rows[order]

    begins = np.flatnonzero(are_fresh(runs))
    firsts = np.repeat(rows[begins], np.diff(begins, append=len(runs)))
    is_pair = firsts != rows
    pairs = np.unique(np.stack((firsts[is_pair], rows[is_pair]), axis=1), axis=0)
    continued = [
        _share_run(texts[left], texts[right], 2 * length) for left, right in _draw(pairs, rng).tolist()
    ]

    shingles = np.array([max(0, len(tokens) - recipe.words_around) for tokens in texts])
    min_fingerprints = recipe.match.min_fingerprints or 1
    score = LengthScore(
        length,
        len(np.unique(pairs)) / len(texts),
        float(np.mean(continued)) if continued else None,
        float(np.mean(expected_fingerprints(shingles, length - recipe.words_around, min_fingerprints))),
    )
    return score, pairs


def _share_run(left: Tokens, right: Tokens, length: int) -> bool:
    return bool(np.isin(grams(left.ids, length), grams(right.ids, length)).any())


def _draw(pairs: Ints, rng: np.random.Generator) -> Ints:
    return rng.permutation(pairs)[:_PAIRS_EXAMINED]


def _choose_length(
    scored: dict[int, tuple[LengthScore, Ints]],
    recipe_length: int,
    options: TuningOptions,
    reasons: dict[str, str],
) -> int:
    """Return the shortest length at which half of the pairs also share a run of twice the length; note the reason."""
    if "passage" in options.kept:
        reasons["match.passage"] = "set by the user"
        return recipe_length

    for length, (score, pairs) in scored.items():
        if len(pairs) >= _MIN_PAIRS and (score.continued or 0.0) >= _MIN_CONTINUED:
            reasons["match.passage"] = (
                f"the shortest run that is no mere phrase: {score.continued:.0%} of the pairs that share {length} "
                f"equal words share {2 * length}; {score.documents:.1%} of the documents have such a run"
            )
            return length
    reasons["match.passage"] = "the recipe's own, as few documents share long runs"
    return recipe_length


def _score_gaps(
    texts: Sequence[Tokens], pairs: Ints, finder: PassageFinder, passage: int
) -> list[tuple[int, float]]:
    """Return for each gap the equal words in the passages of pairs, as a fraction of the words with the best gap."""
    equal_words = []
    for gap in GAPS:
        rules = replace(finder.rules, gap=gap, length=passage)
        by_pair = (find_passages(texts[left], texts[right], rules) for left, right in pairs.tolist())
        equal_words.append(sum(passage.equal for passages in by_pair for passage in passages))
    return [(gap, count / max(*equal_words, 1)) for gap, count in zip(GAPS, equal_words, strict=True)]


def _choose_gap(
    gaps: Sequence[tuple[int, float]], recipe_gap: int, options: TuningOptions, reasons: dict[str, str]
) -> int:
    """Return the smallest gap with which passages contain nearly all equal words, and note the reason."""
    sufficient = [(gap, share) for gap, share in gaps if share >= _MIN_COVERED]
    if "passage_gap" in options.kept:
        reasons["match.passage_gap"] = "set by the user"
        return recipe_gap
    if not sufficient:
        reasons["match.passage_gap"] = "the recipe's own, as no two documents share a passage"
        return recipe_gap

    gap, share = sufficient[0]
    reasons["match.passage_gap"] = f"passages have {share:.1%} of the equal words that they have with any gap"
    return gap


def _score_labels(
    encoder: Encoder, sample: Sample, labelled: PairLabels, options: TuningOptions
) -> LabelScores:
    rows = {name: row for row, name in enumerate(sample.wanted)}
    ends = np.array([(rows[left], rows[right]) for left, right, _ in labelled.pairs], np.int64)
    texts = [encoder.text_of(title, body) for title, body in sample.wanted.values()]
    similarity = _containments(encoder, texts, ends)
    duplicate = np.array([is_duplicate for _, _, is_duplicate in labelled.pairs], bool)
    return labels.score(similarity, duplicate, options.precision, options.threshold)


def _containments(encoder: Encoder, texts: Sequence[str], pairs: Ints) -> Floats:
    """Return the containment of pairs of texts, 0 if either has no features."""
    rows, places = np.unique(pairs, return_inverse=True)
    encoded = encoder.encode([texts[row] for row in rows.tolist()], keep_features=True)
    left, right = places.reshape(-1, 2).T
    have_features = (encoded.counts[left] > 0) & (encoded.counts[right] > 0)
    containment = np.zeros(len(pairs))
    containment[have_features] = encoder.compare(
        encoded.features, left[have_features], right[have_features]
    ).similarity
    return containment


def _choose_threshold(
    encoder: Encoder,
    texts: Sequence[str],
    pairs: Ints,
    recipe: Recipe,
    scores: LabelScores | None,
    options: TuningOptions,
    reasons: dict[str, str],
) -> float:
    """Return the threshold that the user set, the best threshold for the labels, or the valley of the containments.

    The containments are those of the pairs that share a passage. The reason is noted in `reasons`.
    """
    if options.threshold is not None:
        reasons["match.threshold"] = "set by the user"
        return options.threshold

    if scores is not None and scores.best.f1 > 0 and scores.separate:
        reasons["match.threshold"] = f"the best F1 of the labelled pairs, {scores.best.f1:.3f}"
        return labels.separating(scores.points, scores.best)

    counts = np.zeros(BINS)
    if len(pairs):
        similarity = _containments(encoder, texts, pairs)
        places = np.minimum((similarity * BINS + 1e-9).astype(np.int64), BINS - 1)
        counts = np.bincount(places, minlength=BINS).astype(np.float64)
    lowest = valley(Histogram(counts, counts, 0.0)) if len(pairs) >= _MIN_PAIRS else None
    if lowest is None or not counts[: int(lowest * BINS)].any():
        reasons["match.threshold"] = (
            "the recipe's own, as containments of pairs with a passage have no clear valley; label some pairs "
            "(--labels)"
        )
        return recipe.match.threshold

    reasons["match.threshold"] = f"the valley between quotations and copies, at about {lowest:.2f}"
    return round(lowest, 2)
