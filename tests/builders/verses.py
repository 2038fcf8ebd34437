"""Invented verses in an older and a newer revision, with labels, to test the choice of a threshold."""

import random
from dataclasses import dataclass

# The older and the newer form of each word that differs. All other words are the same in both revisions.
_REVISED = {
    "thou": "you",
    "thee": "you",
    "thy": "your",
    "ye": "you",
    "unto": "to",
    "upon": "on",
    "hath": "has",
    "doth": "does",
    "saith": "says",
    "shalt": "shall",
    "hearken": "listen",
    "behold": "see",
    "wherefore": "therefore",
    "thereof": "of it",
    "begat": "was the father of",
    "spake": "spoke",
    "smote": "struck",
    "dwelt": "lived",
    "raiment": "clothes",
    "kine": "cattle",
}
_WORDS = {
    "common": "and the of to in that he it shall was for his with a not be they all from him them is",
    "noun": "king house land people son city river mountain field stranger servant shepherd flock bread water gate "
    "wall tower temple altar garment sword stone tree vine harvest night morning judge brother mother "
    "father daughter captain ship island desert road well lamp voice song feast law word name hand heart eye covenant "
    "tribe elder tent camp chariot horse bow",
    "verb": "came went gave took saw heard built called answered sent brought kept broke lifted gathered remembered "
    "blessed feared turned fell rose opened planted carried wept sang",
}
_COMMON, _NOUNS, _VERBS = (_WORDS[kind].split() for kind in ("common", "noun", "verb"))
_FORMULA, _REVISED_FORMULA = "and the voice spake unto the elder saying", "then the voice spoke to the elder"
_OPENINGS = (
    "and it came to pass that",
    "and he spake unto the people saying",
    "behold the days come when",
    "wherefore hearken unto the word and",
    "now these are the names of the men that",
)


@dataclass(frozen=True)
class Verses:
    """Texts by id: `old-7` and `new-7` are the same verse."""

    texts: dict[str, str]

    @property
    def verses(self) -> int:
        """The number of verses, each of which has two texts."""
        return len(self.texts) // 2

    @property
    def different(self) -> int:
        """The number of verses without the repetitions of the formula."""
        return len({text for name, text in self.texts.items() if name.startswith("old")})

    def labels(self, count: int, seed: int = 1) -> list[tuple[str, str, bool]]:
        """Return `count` pairs of the same verse and `count` pairs of different verses, drawn at random."""
        generator = random.Random(seed)
        numbers = generator.sample(range(self.verses), count)
        labels = [(f"old-{number}", f"new-{number}", True) for number in numbers]
        for _ in range(count):
            left, right = generator.sample(range(self.verses), 2)
            labels.append((f"old-{left}", f"new-{right}", False))
        return labels


def make_verses(count: int, seed: int = 11) -> Verses:
    """Return `count` verses of 7 to 38 words; in the newer revision some words are replaced or left out."""
    generator = random.Random(seed)
    texts = {}
    for number in range(count):
        older = _words(generator)
        texts[f"old-{number}"] = " ".join(older)
        texts[f"new-{number}"] = " ".join(_revised(older, generator))
    return Verses(texts)


def _words(generator: random.Random) -> list[str]:
    """Return the words of a verse in the older revision; about one verse in ten is the same formula."""
    if generator.random() < 1 / 10:
        return _FORMULA.split()
    words = generator.choice(_OPENINGS).split() if generator.random() < 0.4 else []
    length = generator.randrange(12, 36)
    while len(words) < length:
        words += [
            generator.choice(_COMMON),
            generator.choice([*_COMMON, *_REVISED]),
            generator.choice(_NOUNS),
            generator.choice(_VERBS),
        ]
    return words


def _revised(older: list[str], generator: random.Random) -> list[str]:
    """Return the words of a verse in the newer revision."""
    if older == _FORMULA.split():
        return _REVISED_FORMULA.split()
    newer = []
    for word in older:
        chance = generator.random()
        if chance < 0.05:
            continue
        changed = generator.choice([*_NOUNS, *_COMMON]) if chance < 0.15 else word
        newer.append(_REVISED.get(changed, changed))
    return newer
