"""The result of one check of `nearsim doctor`."""

from dataclasses import dataclass
from typing import Literal

Verdict = Literal["ok", "warning", "problem"]


@dataclass(frozen=True, slots=True)
class Finding:
    """What was checked, the verdict, the facts, and advice on what to do unless it is `ok`."""

    check: str
    verdict: Verdict
    finding: str
    advice: str = ""
