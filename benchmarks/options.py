"""Options that several benchmarks share."""

from pathlib import Path
from typing import Annotated

from typer import Option

RECIPE = Path(__file__).parent / "recipes" / "w3.toml"

Documents = Annotated[int, Option(help="Number of documents of the synthetic corpus.")]
CorpusFile = Annotated[
    Path | None, Option(metavar="FILE", help="File of documents, instead of generated documents.")
]
RecipeFile = Annotated[Path, Option(metavar="FILE", help="Recipe file.")]
Changes = Annotated[list[str], Option("--set", metavar="KEY=VALUE", help="Change a key of the recipe.")]
Major = Annotated[int, Option(help="Major version of PostgreSQL.")]
Rounds = Annotated[int, Option(help="Number of interleaved rounds.")]
Seed = Annotated[int, Option(help="Seed of the corpus.")]
Limit = Annotated[int, Option(help="Maximum number of matches.")]
