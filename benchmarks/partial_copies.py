"""Write a set of partial copies, made from a file of stories; the containment benchmark finds its pairs from here.

    python -m benchmarks partial-copies --corpus F.jsonl.gz --output made.jsonl

The copies are of five kinds, in turns: a story embedded between parts of other stories; a part of a story; parts of a
story and of two others, stitched together; a story shuffled in blocks of 25 to 60 words; and a story in which about one
of twenty words is replaced.
"""

import json
import random
import re
from collections import Counter, defaultdict
from collections.abc import Hashable, Iterable, Iterator, Mapping, Sequence
from itertools import combinations
from pathlib import Path
from typing import Annotated

from typer import Option

from benchmarks.options import Seed
from benchmarks.truth import read_documents

MIN_WORDS = 60
# The number of words in a shingle, and in the shortest run that winnowing never misses.
K, RUN = 5, 20
_REWORDED = 0.05

Pairs = set[tuple[str, str]]


def read_stories(corpus: Path, count: int) -> list[list[str]]:
    """Return the words of the first stories that are long enough."""
    texts = ("\n".join(filter(None, (document.title, document.body))) for document in read_documents(corpus))
    words = (re.findall(r"\w+", text.casefold()) for text in texts)
    return [story for story in words if len(story) >= MIN_WORDS][:count]


def make_copies(stories: Sequence[Sequence[str]], seed: int) -> Iterator[tuple[str, list[str]]]:
    """Yield each story and a partial copy of it, with their names."""
    rng = random.Random(seed)
    for number, story in enumerate(stories):
        yield f"story-{number}", list(story)
        kind = KINDS[number % len(KINDS)]
        yield f"{kind}-{number}", _copy(kind, list(story), stories, rng)


KINDS = ("embedded", "cut", "stitched", "shuffled", "reworded")


def _copy(kind: str, story: list[str], stories: Sequence[Sequence[str]], rng: random.Random) -> list[str]:
    before, after = rng.sample(stories, 2)

    match kind:
        case "embedded":
            return [*before[: len(before) // 2], *story, *after[len(after) // 2 :]]
        case "cut":
            return _part(story, rng.uniform(0.4, 0.9), rng)
        case "stitched":
            return [
                word for part in (before, story, after) for word in _part(part, rng.uniform(0.3, 0.6), rng)
            ]
        case "shuffled":
            blocks, at = [], 0
            while at < len(story):
                size = rng.randrange(25, 61)
                blocks.append(story[at : at + size])
                at += size
            rng.shuffle(blocks)
            return [word for block in blocks for word in block]
        case _:
            return [rng.choice(before) if rng.random() < _REWORDED else word for word in story]


def _part(words: Sequence[str], share: float, rng: random.Random) -> list[str]:
    size = round(share * len(words))
    begin = rng.randrange(len(words) - size + 1)
    return list(words[begin : begin + size])


def containments(texts: Mapping[str, Sequence[str]]) -> dict[tuple[str, str], float]:
    """Return the containment of all pairs that share a run of K words.

    It is the number of runs in both texts as a share of the runs of the text that has fewer.
    """
    sets = {name: runs(words, K) for name, words in texts.items()}
    return {
        (left, right): both / min(len(sets[left]), len(sets[right]))
        for (left, right), both in Counter(_sharing(sets)).items()
    }


def pairs_with_runs(texts: Mapping[str, Sequence[str]], length: int) -> Pairs:
    """Return all pairs that share a run of `length` words."""
    return set(_sharing({name: runs(words, length) for name, words in texts.items()}))


def runs(words: Sequence[str], length: int) -> set[tuple[str, ...]]:
    """Return the distinct runs of `length` words in a text; none if the text is shorter."""
    return {tuple(words[at : at + length]) for at in range(len(words) - length + 1)}


def _sharing(sets: Mapping[str, Iterable[Hashable]]) -> Iterator[tuple[str, str]]:
    """Yield each pair of names, in alphabetical order, once for each member that both sets have."""
    holders: dict[Hashable, list[str]] = defaultdict(list)
    for name in sorted(sets):
        for member in sets[name]:
            holders[member].append(name)
    for names in holders.values():
        yield from combinations(names, 2)


def write_texts(texts: Mapping[str, Sequence[str]], output: Path) -> None:
    """Write JSON lines of id and text."""
    with output.open("w", encoding="utf-8") as stream:
        stream.writelines(
            json.dumps({"id": name, "text": " ".join(words)}) + "\n" for name, words in texts.items()
        )


def main(
    corpus: Annotated[Path, Option(metavar="FILE", help="File of stories.")],
    output: Annotated[Path, Option(metavar="FILE", help="Output file of JSON lines.")],
    documents: Annotated[int, Option(help="Number of stories; as many copies are made.")] = 3_000,
    seed: Seed = 1,
) -> dict[str, object]:
    """Write the set."""
    texts = dict(make_copies(read_stories(corpus, documents), seed))
    write_texts(texts, output)
    return {"documents": len(texts), "seed": seed}
