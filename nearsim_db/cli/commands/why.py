"""The commands why and why-not: the evidence for two documents as a pair."""

from typing import TYPE_CHECKING, Annotated

import typer

from nearsim_db.cli import formats, options
from nearsim_db.cli.formats import Format

if TYPE_CHECKING:
    from nearsim_db.search.explanation import Explanation

One = Annotated[str, typer.Argument(metavar="ID", help="Id of a document.", show_default=False)]
Other = Annotated[str, typer.Argument(metavar="ID", help="Id of another document.", show_default=False)]


def why(
    one: One,
    other: Other,
    collection: options.Collection = options.DEFAULT,
    profile: options.Profile = None,
    format: formats.ResultFormat = Format.TABLE,
    quiet: options.Quiet = False,
) -> None:
    """Show the evidence for two documents as a pair, and the words in which they differ.

    The similarity is computed from the texts, also of documents that are no pair. Words of one text only are coloured
    on a terminal and elsewhere marked [-left-] {+right+}; # marks numbers that the other text lacks. With --quiet only
    the difference is printed.
    """
    found = _explain(one, other, collection, profile)
    from nearsim_db.analysis.text_diff import compare_inline
    from nearsim_db.cli.output import explanations, terminal
    from nearsim_db.cli.output.documents import print_document

    diff = compare_inline(found.left.text, found.right.text)
    if format.is_machine:
        print_document(format, explanations.as_json(found, diff))
        return
    if not quiet:
        explanations.print_evidence(found)
        terminal.print_line()
    explanations.print_diff(found, diff)


def why_not(
    one: One,
    other: Other,
    collection: options.Collection = options.DEFAULT,
    profile: options.Profile = None,
    format: formats.ResultFormat = Format.TABLE,
) -> None:
    """Show why two documents are not a pair, and which settings would make them one.

    Reasons are a verdict, a document that is not indexed or has no features, a similarity below the threshold, too few
    shared bands, and the bucket limit. The settings are checked on the two texts.
    """
    found = _explain(one, other, collection, profile)
    from nearsim_db.cli.output import explanations
    from nearsim_db.cli.output.documents import print_document

    if format.is_machine:
        print_document(format, explanations.as_json(found))
    else:
        explanations.print_absence(found)


def _explain(one: str, other: str, collection: str, profile: str | None) -> "Explanation":
    from nearsim_db.search.queries import Queries

    with Queries.connect(collection=collection, profile=profile) as index:
        return index.explain(one, other)
