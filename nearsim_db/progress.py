"""How long work tells where it is: a callable that any caller may give."""

from collections.abc import Callable

# (what is being done, how much is done, how much there is or None when that is not known)
Progress = Callable[[str, int, int | None], None]


def silent(step: str, done: int, total: int | None) -> None:
    """Tell nobody."""
