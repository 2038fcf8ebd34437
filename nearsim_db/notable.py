"""What a process at work tells of: one notable thing at a time."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Literal

Level = Literal["info", "warning", "error"]


@dataclass(frozen=True, slots=True)
class Notable:
    """Something worth a line: the event by its name, a message for people, and the facts in it for programs."""

    event: str
    message: str
    level: Level = "info"
    facts: Mapping[str, object] = field(default_factory=dict)


def counted(number: int, noun: str) -> str:
    """A number of things, as "1 document" or "2,000 documents"."""
    return f"{number:,} {noun}" if number == 1 else f"{number:,} {noun}s"


Tell = Callable[[Notable], None]
