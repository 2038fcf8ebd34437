"""Options that limit how far two generations may differ."""

from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated

import typer

if TYPE_CHECKING:
    from nearsim_db.admin.reindex import Limits


def _limit(what: str) -> typer.models.OptionInfo:
    option: typer.models.OptionInfo = typer.Option(
        metavar="LIMIT", help=f"Fail if more than LIMIT {what}.", show_default=False
    )
    return option


@dataclass(frozen=True, slots=True)
class LimitOptions:
    """How far two generations may differ, by kind of difference."""

    max_lost: Annotated[str | None, _limit("pairs are lost")] = None
    max_gained: Annotated[str | None, _limit("pairs are gained")] = None
    max_rescored: Annotated[str | None, _limit("pairs change their similarity")] = None
    max_merged: Annotated[str | None, _limit("clusters are merged")] = None
    max_split: Annotated[str | None, _limit("clusters are split")] = None

    def parsed(self) -> "Limits":
        """Return the limits. Raises RecipeError for a value that is neither share nor count."""
        from nearsim_db.admin.reindex import Limits

        return Limits.parse(
            lost=self.max_lost,
            gained=self.max_gained,
            rescored=self.max_rescored,
            merged=self.max_merged,
            split=self.max_split,
        )
