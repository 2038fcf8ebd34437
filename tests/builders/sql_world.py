"""A small indexed collection, with expected results from brute force in Python."""

import random
import re
import unicodedata
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import numpy as np

from nearsim_db import Document, Index
from nearsim_db.similarity.encoder import Encoder
from nearsim_db.similarity.profile import Profile
from nearsim_db.similarity.recipe import Recipe, override

THRESHOLD, MINIMUM = 0.5, 3
RULES = [
    'fields=["body"]',
    "shingle.k=2",
    f"match.threshold={THRESHOLD}",
    f"match.min_shared_bands={MINIMUM}",
    "bands.count=40",
    "bands.rows=3",
]
EMPTY, ALONE = "empty", "alone"


def write_documents(seed: int) -> list[Document]:
    """Families of edited texts, with twins in capitals, copies with other numbers, a single text and an empty text."""
    rng = random.Random(seed)
    words = [f"word{first}{second}" for first in "abcdefgh" for second in "ijklmnop"]
    texts = [" ".join(rng.choices(words, k=20)) for _ in range(8)]
    bodies = {EMPTY: " ?! ", ALONE: "nothing that any other one says, in no order"}
    for number in range(60):
        text = rng.choice(texts).split()
        if rng.random() < 0.5:
            for _ in range(rng.randint(1, 4)):
                text[rng.randrange(len(text))] = rng.choice(words)
        amounts = f"{rng.randint(1, 3)} and {rng.choice('１2')}"
        written = " ".join([*text, amounts])
        bodies[f"d{number}"] = written.upper() if rng.random() < 0.3 else written
    return [Document(name, title=f"Title 7 of {name}", body=body) for name, body in bodies.items()]


@dataclass
class World:
    """An indexed collection."""

    index: Index
    profile: Profile
    texts: dict[int, str]  # the compared bodies, by doc_id
    names: dict[int, str]  # external ids, by doc_id

    def __post_init__(self) -> None:
        encoder = Encoder(self.profile)
        self.doc_ids = list(self.texts)
        texts = list(self.texts.values())
        features = encoder.features(texts)
        self.features = {
            doc_id: set(features.of(place).tolist()) for place, doc_id in enumerate(self.doc_ids)
        }
        self.sketches = dict(zip(self.doc_ids, encoder.encode(texts).sketches, strict=True))
        self._encoder = encoder

    @classmethod
    def build(
        cls, index: Index, rules: list[str], documents: list[Document], profile: str = "default"
    ) -> "World":
        """Create the profile, add the documents, and read their doc_ids."""
        made = index.create_profile(profile, override(Recipe(), rules))
        index.add(documents)
        return cls.read(index, made, documents)

    @classmethod
    def read(cls, index: Index, profile: Profile, documents: list[Document]) -> "World":
        """The world of a database whose documents are already indexed."""
        bodies = {document.external_id: document.body or "" for document in documents}
        with index.database.engine.begin() as connection:
            rows = connection.execute(
                "SELECT doc_id, external_id FROM nearsim.document JOIN nearsim.collection USING (collection_id) "
                "WHERE name = %s AND external_id = ANY(%s) ORDER BY doc_id",
                (index.collection, list(bodies)),
            )
            names = {int(str(doc_id)): str(name) for doc_id, name in rows}
        return cls(index, profile, {doc_id: bodies[name] for doc_id, name in names.items()}, names)

    @property
    def generation_id(self) -> int:
        """The number of the generation that answers."""
        return self.index.serving().context.leaves.generation_id

    def ask(self, command: str, *values: object) -> list[tuple[Any, ...]]:
        """Run SQL and return its rows."""
        with self.index.database.engine.begin() as connection:
            cursor = connection.execute(command.encode(), values)
            return cursor.fetchall() if cursor.description else []

    def row(self, command: str, *values: object) -> dict[str, Any]:
        """The only row of a query's result, by column."""
        with self.index.database.engine.begin() as connection:
            cursor = connection.execute(command.encode(), values)
            (row,) = cursor.fetchall()
            return {column.name: value for column, value in zip(cursor.description or (), row, strict=True)}

    def sizes(self, left: int, right: int) -> tuple[int, int]:
        """Intersection and union of the features."""
        return len(self.features[left] & self.features[right]), len(
            self.features[left] | self.features[right]
        )

    def similarity(self, left: int, right: int) -> float:
        """The exact similarity, 0 for two documents without features."""
        intersection, union = self.sizes(left, right)
        return intersection / union if union else 0.0

    def estimate(self, left: int, right: int) -> float:
        """The similarity estimated from the sketches, 0 if a document has no features."""
        if not (self.features[left] and self.features[right]):
            return 0.0
        return float(self._encoder.family.estimate(self.sketches[left][None], self.sketches[right][None])[0])

    def shared(self, left: int, right: int) -> int:
        """The number of shared bands, 0 if a document has no features."""
        if not (self.features[left] and self.features[right]):
            return 0
        return int(self._encoder.shared_bands(self.sketches[left][None], self.sketches[right][None])[0])

    def bands(self, left: int, right: int) -> list[int]:
        """The shared bands, empty if a document has no features."""
        if not (self.features[left] and self.features[right]):
            return []
        keys = self._encoder.matrix_keys(np.stack([self.sketches[left], self.sketches[right]]))
        return np.flatnonzero(keys[0] == keys[1]).tolist()

    def is_pair(self, left: int, right: int) -> bool:
        """Whether two documents are a pair under the recipe, if no bucket exceeds its limit."""
        if not self.meets(left, right):
            return False
        return self.similarity(left, right) >= self.profile.recipe.match.threshold

    def meets(self, left: int, right: int) -> bool:
        """Whether the shared bands satisfy the amplification of the recipe."""
        if self.profile.recipe.match.amplification is None:
            return self.shared(left, right) >= self.profile.recipe.match.min_shared_bands
        matched = np.zeros((1, self.profile.bands), bool)
        matched[0, self.bands(left, right)] = True
        return bool(self.profile.amplification.evaluate(matched)[0])

    def numbers(self, doc_id: int) -> Counter[str]:
        """The runs of digits of a text."""
        return Counter(re.findall("[0-9]+", unicodedata.normalize("NFKC", self.texts[doc_id])))

    def retire(self, rules: list[str]) -> None:
        """Attach a retired generation of the same profile, built by another recipe."""
        self.index.create_profile("earlier", override(Recipe(), rules))
        self.ask(
            "UPDATE nearsim.generation SET state = 'retired', profile_id = ("
            "SELECT profile_id FROM nearsim.profile WHERE name = 'default') "
            "WHERE profile_id = (SELECT profile_id FROM nearsim.profile WHERE name = 'earlier')"
        )
        self.ask("DELETE FROM nearsim.profile WHERE name = 'earlier'")


@contextmanager
def world(url: str, *rules: str, seed: int = 1) -> Iterator[World]:
    """The default collection, with a retired generation attached."""
    with Index.connect(url) as index:
        built = World.build(index, [*RULES, *rules], write_documents(seed))
        built.retire(["shingle.k=1", "match.threshold=0.2"])
        yield built


def fill(url: str) -> None:
    """Create the default collection with the default rules."""
    with world(url):
        pass


@contextmanager
def filled(url: str) -> Iterator[World]:
    """The default collection in a database that already contains it."""
    with Index.connect(url) as index:
        profile = index.serving().context.encoder.profile
        yield World.read(index, profile, write_documents(1))
