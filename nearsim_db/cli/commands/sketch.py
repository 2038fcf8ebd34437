"""The command `nearsim sketch`: show how a text becomes a signature and its buckets."""

from typing import TYPE_CHECKING, Annotated

import typer

from nearsim_db.cli import options, recipes
from nearsim_db.cli.failures import UsageError

if TYPE_CHECKING:
    from nearsim_db.analysis.sketch_steps import SketchSteps


def sketch(
    *,
    ids: Annotated[
        list[str] | None,
        options.argument("[ID]...", "One or two documents of the collection, instead of --text."),
    ] = None,
    text: Annotated[
        list[str] | None, typer.Option(metavar="TEXT", help="Text to sketch; give it twice to compare two.")
    ] = None,
    recipe_options: recipes.RecipeOptions,
    scope: options.Scope,
    result: options.Result,
) -> None:
    """Show how a text becomes a signature and buckets, step by step.

    Prints the normalised text, its shingles with their hashes, the coefficients of the hash functions (minhash), the
    signature and the band keys. For two texts, also prints what they have in common, their similarity and its estimate.
    --text uses a recipe and needs no database. Documents are sketched with the profile of their collection, or with the
    given recipe.
    """
    texts, names = text or [], ids or []
    if bool(texts) == bool(names) or len(texts) > 2 or len(names) > 2:
        raise UsageError("give one or two IDs, or --text once or twice")
    steps = _of_texts(texts, recipe_options) if texts else _of_documents(names, recipe_options, scope)
    from nearsim_db.cli.output import sketches

    result.show(steps, lambda: sketches.print_steps(steps))


def _of_texts(texts: list[str], recipe_options: recipes.RecipeOptions) -> "SketchSteps":
    from nearsim_db.analysis.sketch_steps import encoder_of, sketch_steps
    from nearsim_db.similarity.text.clean import clean

    cleaned = [clean(text)[0] for text in texts]
    return sketch_steps(encoder_of(recipe_options.chosen(), cleaned), cleaned)


def _of_documents(
    names: list[str], recipe_options: recipes.RecipeOptions, scope: options.Scope
) -> "SketchSteps":
    from nearsim_db.analysis.sketch_steps import sketch_steps
    from nearsim_db.search.encodable import read_encodable

    with scope.answers() as answers:
        return sketch_steps(*read_encodable(answers, names, recipe_options.chosen_if_any()))
