"""Precision and recall of nearsim on pairs that people labelled, with confidence intervals.

    python -m benchmarks labels CORPUS LABELS.csv [--preset default] [--threshold 0.7]
    python -m benchmarks labels FOLDER            # of a copy of webis-de/ecir20-effect-of-near-duplicates-...
    python -m benchmarks labels FOLDER --halves 200

CORPUS is any file that nearsim reads, and LABELS.csv has the columns of `nearsim tune --labels`. FOLDER is
s3-document-pair-sample of that repository (Froebe et al., ECIR 2020): each pair is a folder with two texts and a label,
which is 0 for pairs that are not the same. Each pair is de-duplicated by itself, so it also has to become a candidate
by its bands. The intervals are 95 % Wilson intervals. They are valid for the labelled pairs, not for the
documents from which the authors drew them. With --halves, a random half of each part is judged like the sample of the
review desk, from a similarity of 0.5 on, and the suggested threshold is scored on the other half.
"""

import random
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

from typer import Argument, Option

from benchmarks.truth import read_documents, wilson_interval
from nearsim_db import Document, dedupe
from nearsim_db.analysis.evaluation import estimate
from nearsim_db.analysis.tuning.labels import read_labels, scored
from nearsim_db.similarity import presets
from nearsim_db.similarity.recipe import Recipe, override

_THRESHOLDS = (0.5, 0.6, 0.7, 0.8)
# With --halves, only pairs with at least this similarity are judged, as if match.review were set to it.
_MIN_STORED_SIMILARITY = 0.5


@dataclass(frozen=True, slots=True)
class Labelled:
    """A labelled pair of documents."""

    left: Document
    right: Document
    same: bool  # whether people say that the two are the same
    part: str  # the part of the labels that the pair belongs to


def read_folder(folder: Path) -> Iterator[Labelled]:
    """Yield the labelled pairs of a folder; skip pairs without a label."""
    for label in sorted(folder.glob("*/*/label")):
        texts = sorted(label.parent.glob("full-text-*"))
        value = label.read_text(encoding="utf-8").strip()
        if len(texts) == 2 and value:
            left, right = (
                Document(path.name, None, path.read_text(encoding="utf-8", errors="replace"))
                for path in texts
            )
            yield Labelled(left, right, int(value) > 0, label.parent.parent.name)


def read_pairs(corpus: Path, labels: Path) -> Iterator[Labelled]:
    """Yield the labelled pairs of documents of a file; skip pairs of documents that the file does not have."""
    documents = {document.external_id: document for document in read_documents(corpus)}
    for left, right, same in read_labels(labels).pairs:
        if left in documents and right in documents:
            yield Labelled(documents[left], documents[right], same, corpus.name)


def called_same(pairs: list[Labelled], recipe: Recipe) -> list[bool]:
    """Return for each pair whether a recipe finds that the two are near-duplicates."""
    return [bool(dedupe([pair.left, pair.right], recipe=recipe).removed) for pair in pairs]


def halved(pairs: list[Labelled], preset: str, turns: int) -> str:
    """Return a row of the table for --halves.

    It has the mean threshold that random halves of the pairs suggest, its mean F1 on the other halves, and the mean F1
    of the present threshold there.
    """
    recipe = presets.load(preset)
    # With this threshold, `removed` has the similarity of every pair that is judged.
    wide = override(recipe, [f"match.threshold={_MIN_STORED_SIMILARITY}", "match.review=0"])
    removed_of_pairs = [dedupe([pair.left, pair.right], recipe=wide).removed for pair in pairs]
    rows = [
        (removed[0].similarity or 0.0 if removed else 0.0, pair.same)
        for removed, pair in zip(removed_of_pairs, pairs, strict=True)
    ]

    today, rng = recipe.match.threshold, random.Random(1)
    scores = []
    for _ in range(turns):
        rng.shuffle(rows)
        judged, held_out = rows[: len(rows) // 2], rows[len(rows) // 2 :]
        sampled = [
            (similarity, same, 1.0) for similarity, same in judged if similarity >= _MIN_STORED_SIMILARITY
        ]
        suggested = estimate(sampled, today).suggested or today
        scores.append((suggested, _f1(held_out, suggested), _f1(held_out, today)))
    means = [sum(column) / turns for column in zip(*scores, strict=True)]
    return f"| {preset}, {pairs[0].part} | {turns} | {' | '.join(f'{mean:.3f}' for mean in means)} |"


def _f1(rows: list[tuple[float, bool]], threshold: float) -> float:
    called = [same for similarity, same in rows if similarity >= threshold]
    all_of_both = len(called) + sum(same for _, same in rows)
    # If neither the recipe nor the labels have a duplicate, nothing was wrong.
    return 2 * sum(called) / all_of_both if all_of_both else 1.0


def line(name: str, threshold: float, pairs: list[Labelled], called: list[bool]) -> str:
    """Return a row of the table."""
    hits = sum(pair.same and is_called for pair, is_called in zip(pairs, called, strict=True))
    same = sum(pair.same for pair in pairs)
    point = scored(hits, sum(called), same, threshold)
    cells = [
        f"{point.precision:.3f} {_interval(hits, sum(called))}",
        f"{point.recall:.3f} {_interval(hits, same)}",
    ]
    return f"| {name} | {threshold:g} | {len(pairs)} | {' | '.join(cells)} | {point.f1:.3f} |"


def _interval(successes: int, trials: int) -> str:
    low, high = wilson_interval(successes, trials)
    return f"({low:.3f} to {high:.3f})"


def main(
    corpus: Annotated[Path, Argument(help="A file of documents, or the folder of labelled pairs.")],
    labels: Annotated[Path | None, Argument(help="CSV of labelled pairs.")] = None,
    preset: Annotated[list[str] | None, Option(help="Presets to score, by default default.")] = None,
    threshold: Annotated[list[float] | None, Option(help="Thresholds, by default 0.5 to 0.8.")] = None,
    halves: Annotated[int, Option(help="Judge N random halves, and score the other halves.")] = 0,
) -> str:
    """Score presets on labelled pairs, on all pairs and by part."""
    pairs = list(read_folder(corpus) if labels is None else read_pairs(corpus, labels))
    parts = sorted({pair.part for pair in pairs})
    if halves:
        rows = [
            "| preset, pairs | halves | suggested | its F1 | F1 of today's threshold |",
            "|---|---|---|---|---|",
        ]
        of_part = {part: [pair for pair in pairs if pair.part == part] for part in parts}
        rows += [
            halved(of_part[part], name, halves) for name in preset or [presets.DEFAULT] for part in parts
        ]
        return "\n".join(rows)

    rows = ["| preset, pairs | threshold | labelled | precision | recall | F1 |", "|---|---|---|---|---|---|"]
    for name in preset or [presets.DEFAULT]:
        for value in threshold or _THRESHOLDS:
            recipe = override(presets.load(name), [f"match.threshold={value!r}"])
            called = called_same(pairs, recipe)
            rows.append(line(f"{name}, all", value, pairs, called))
            for part in parts if len(parts) > 1 else ():
                places = [at for at, pair in enumerate(pairs) if pair.part == part]
                rows.append(
                    line(
                        f"{name}, {part}", value, [pairs[at] for at in places], [called[at] for at in places]
                    )
                )
    return "\n".join(rows)
