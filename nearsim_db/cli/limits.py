"""Options that say how much two generations may differ, for the commands that compare or promote them."""

from typing import TYPE_CHECKING, Annotated

import typer

if TYPE_CHECKING:
    from nearsim_db.admin.reindex import Limits


def _limit(name: str, what: str) -> typer.models.OptionInfo:
    """An option of that name."""
    option: typer.models.OptionInfo = typer.Option(
        name, metavar="LIMIT", help=f"At most so many {what}.", show_default=False
    )
    return option


MaxLost = Annotated[str | None, _limit("--max-lost", "pairs lost")]
MaxGained = Annotated[str | None, _limit("--max-gained", "pairs gained")]
MaxRescored = Annotated[str | None, _limit("--max-rescored", "pairs with another similarity")]
MaxMerged = Annotated[str | None, _limit("--max-merged", "clusters made of several")]
MaxSplit = Annotated[str | None, _limit("--max-split", "clusters split")]


def limits_of(
    lost: str | None, gained: str | None, rescored: str | None, merged: str | None, split: str | None
) -> "Limits":
    """The limits that options give. Raises UsageError for one that cannot be read."""
    from nearsim_db.admin.reindex import Limits
    from nearsim_db.cli.failures import UsageError
    from nearsim_db.errors import RecipeError

    try:
        return Limits.of(lost=lost, gained=gained, rescored=rescored, merged=merged, split=split)
    except RecipeError as error:
        raise UsageError(str(error)) from error
