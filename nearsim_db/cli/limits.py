"""Options that limit how far two generations may differ."""

from typing import TYPE_CHECKING, Annotated

import typer

if TYPE_CHECKING:
    from nearsim_db.admin.reindex import Limits


def _difference_limit(name: str, what: str) -> typer.models.OptionInfo:
    """Return an option that limits how far two generations may differ."""
    option: typer.models.OptionInfo = typer.Option(
        name, metavar="LIMIT", help=f"Fail if more than LIMIT {what}.", show_default=False
    )
    return option


MaxLost = Annotated[str | None, _difference_limit("--max-lost", "pairs are lost")]
MaxGained = Annotated[str | None, _difference_limit("--max-gained", "pairs are gained")]
MaxRescored = Annotated[str | None, _difference_limit("--max-rescored", "pairs change their similarity")]
MaxMerged = Annotated[str | None, _difference_limit("--max-merged", "clusters are merged")]
MaxSplit = Annotated[str | None, _difference_limit("--max-split", "clusters are split")]


def limits_of(
    lost: str | None, gained: str | None, rescored: str | None, merged: str | None, split: str | None
) -> "Limits":
    """Return the limits of the --max options. Raises RecipeError for a value that is neither share nor count."""
    from nearsim_db.admin.reindex import Limits

    return Limits.parse(lost=lost, gained=gained, rescored=rescored, merged=merged, split=split)
