"""The command `nearsim evaluate`: score an index by pairs that people labelled."""

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from nearsim_db.cli import options
from nearsim_db.cli.failures import UsageError
from nearsim_db.cli.output import tables, terminal
from nearsim_db.messages import count_of

if TYPE_CHECKING:
    from nearsim_db.analysis.evaluation import Evaluation

_LISTED = 20


def evaluate(
    *,
    labels: Annotated[
        Path | None,
        typer.Option(
            "--labels",
            metavar="PAIRS.csv",
            help="CSV of labelled pairs with the columns id_a, id_b and label (1/0, yes/no, true/false, "
            "duplicate/distinct).",
        ),
    ] = None,
    verdicts: Annotated[
        bool,
        typer.Option(
            "--verdicts",
            help="Take the verdicts in the database for labels: pinned are duplicates, vetoed are not.",
        ),
    ] = False,
    scope: options.Scope,
    result: options.Result,
) -> None:
    """Score pairs and clusters by pairs that people labelled.

    Shows precision, recall and F1 of both, what accepting every labelled pair would give, and the share of duplicates
    by similarity, as far as it is stored: from the threshold on, or from match.review. Then where labels and index
    disagree, by cluster.
    """
    if (labels is None) != verdicts:
        raise UsageError("give either --labels or --verdicts")
    from nearsim_db.analysis.evaluation import evaluate as run
    from nearsim_db.analysis.tuning.labels import PairLabels, read_labels

    given = None if labels is None else read_labels(labels)
    with scope.answers() as answers:
        found = run(answers, given or PairLabels(answers.database.labels(answers.collection)))
    result.show(found, lambda: _print(found))


def _print(found: "Evaluation") -> None:
    terminal.print_line(
        f"Profile {found.profile}, threshold {found.threshold:g}: {found.duplicates:,} duplicate and "
        f"{found.distinct:,} distinct pairs; {count_of(found.unknown, 'pair')} of unknown documents, "
        f"{count_of(found.bad_lines, 'invalid line')}",
        sys.stdout,
    )
    for reason in found.first_reasons:
        terminal.print_line(f"ignored: {reason}", sys.stdout)
    named = (("pairs", found.pairs), ("clusters", found.clusters), ("every pair", found.accept_all))
    rows = [[name, one.precision, one.recall, one.f1] for name, one in named]
    decimals = {"precision": 3, "recall": 3, "F1": 3, "duplicates": 3}
    tables.print_table(("accepted", "precision", "recall", "F1"), rows, decimals=decimals)
    bands = [[f"{one.low:.1f} to {one.high:.1f}", one.pairs, one.precision] for one in found.bands]
    if bands:
        tables.print_table(("similarity", "pairs", "duplicates"), bands, decimals=decimals)
    _print_disagreements(found)


def _print_disagreements(found: "Evaluation") -> None:
    if not found.disagreements:
        return
    rows = [
        [
            one.cluster,
            one.left,
            one.right,
            "duplicate" if one.duplicate else "distinct",
            "pair" if one.is_pair else "",
            "same" if one.same_cluster else "",
            one.similarity,
        ]
        for one in found.disagreements[:_LISTED]
    ]
    columns = ("cluster", "left", "right", "label", "index", "clusters", "similarity")
    tables.print_table(columns, rows, decimals={"similarity": 4})
    if len(found.disagreements) > _LISTED:
        terminal.print_line(
            f"the first {_LISTED} of {len(found.disagreements):,} disagreements; --json lists all", sys.stdout
        )
