"""Products of two shops. Each shop has its own words, order and spelling. Many products differ only in the model."""

import random
import string
from dataclasses import dataclass

_BRANDS = ["acorn", "belmont", "corvida", "delphin", "estrella", "fulmar", "gentian", "halcyon"]
_KINDS = (
    ("cordless drill", "power drill without cable"),
    ("desk lamp", "led lamp for desks"),
    ("steam iron", "iron with steam"),
    ("travel kettle", "kettle for travelling"),
    ("wireless mouse", "optical mouse without cable"),
    ("garden hose", "flexible hose"),
    ("kitchen scale", "digital scale"),
    ("radio alarm clock", "clock radio"),
)
_EXTRAS = ["black", "white", "silver", "compact", "deluxe", "portable", "new", "set", "warranty", "edition"]


@dataclass(frozen=True)
class TwoShops:
    """Texts by id: `left-7` and `right-7` are the same product. A product without a counterpart is in one shop only."""

    texts: dict[str, str]

    @property
    def matches(self) -> list[tuple[str, str]]:
        """The pairs of the same product."""
        lefts = (name for name in self.texts if name.startswith("left"))
        pairs = ((name, name.replace("left", "right")) for name in lefts)
        return [pair for pair in pairs if pair[1] in self.texts]

    def labels(self, count: int, seed: int = 1) -> list[tuple[str, str, bool]]:
        """Draw `count` pairs of the same product and `count` pairs of different products, both across the shops."""
        generator = random.Random(seed)
        labels = [(left, right, True) for left, right in generator.sample(self.matches, count)]
        lefts, rights = ([name for name in self.texts if name.startswith(shop)] for shop in ("left", "right"))
        while len(labels) < 2 * count:
            left, right = generator.choice(lefts), generator.choice(rights)
            if left.replace("left", "right") != right:
                labels.append((left, right, False))
        return labels


def make_two_shops(count: int, seed: int = 29) -> TwoShops:
    """Return `count` products. Two thirds of them are in both shops."""
    generator = random.Random(seed)
    texts = {}
    for number in range(count):
        brand, kinds = generator.choice(_BRANDS), generator.choice(_KINDS)
        model = f"{''.join(generator.choices(string.ascii_lowercase, k=2))}{generator.randrange(1000):03}"
        in_both = generator.random() < 2 / 3
        first = generator.randrange(2)
        for shop in range(2):
            if in_both or shop == first:
                name = f"{('left', 'right')[shop]}-{number}"
                texts[name] = _described(brand, kinds[shop], model, generator)
    return TwoShops(texts)


def _described(brand: str, kind: str, model: str, generator: random.Random) -> str:
    """Return a shop's words for a product, in any order. In one of eight models, two letters are swapped."""
    if generator.random() < 1 / 8:
        at = generator.randrange(len(model) - 1)
        model = model[:at] + model[at + 1] + model[at] + model[at + 2 :]
    words = [brand, model, *kind.split(), *generator.sample(_EXTRAS, generator.randrange(4))]
    if generator.random() < 0.3:
        words.remove(brand)
    generator.shuffle(words)
    return " ".join(words)
