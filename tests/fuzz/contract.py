"""The contract of a fuzzing target, and the generator of texts."""

import random
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from typing import Any

Check = Callable[[Sequence[Any], random.Random], None]

_POOL = 2_000
_LONGEST = 2_000


@dataclass(frozen=True, slots=True)
class Target:
    """What to fuzz.

    `draw` returns a number of inputs. `open` yields a function that checks a batch and raises for a fault; it draws
    options from its generator, which has the same state when an input of a failed batch is checked alone.
    """

    draw: Callable[[random.Random, int], Sequence[Any]]
    open: Callable[[], AbstractContextManager[Check]]
    batch: int


class Texts:
    """Draws texts: sequences of tokens, and changed copies of seeds and of texts drawn before.

    Code points from U+DC80 to U+DCFF stand for bytes that are not UTF-8.
    """

    def __init__(self, seeds: Sequence[str], tokens: Sequence[str]) -> None:
        self.seeds = tuple(seeds)
        self.tokens = tuple(tokens)
        self._pool = list(seeds)

    def __call__(self, rng: random.Random, count: int) -> list[str]:
        return [self._draw(rng) for _ in range(count)]

    def _draw(self, rng: random.Random) -> str:
        kind = rng.random()
        if kind < 0.3:
            return "".join(rng.choices(self.tokens, k=int(rng.random() ** 2 * 20)))
        text = self._pool[int(rng.random() * len(self._pool))]
        at = int(rng.random() * (len(text) + 1))
        if kind < 0.8:
            inserted = "".join(rng.choices(self.tokens, k=int(rng.random() * 4)))
        elif kind < 0.95:
            inserted = chr(int(0xD800 * rng.random() ** 3))
        else:
            inserted = rng.choice(self.tokens) * int(rng.random() ** 2 * 200)
        drawn = text[:at] + inserted + text[at + int(rng.random() ** 3 * 24) :]
        if len(drawn) <= _LONGEST and kind > 0.6:
            self._keep(rng, drawn)
        return drawn

    def _keep(self, rng: random.Random, text: str) -> None:
        if len(self._pool) < _POOL:
            self._pool.append(text)
        elif rng.random() < 0.05:
            self._pool[int(rng.random() * _POOL)] = text
