"""The command `nearsim evaluate`: measure the quality of an index by pairs that people labelled."""

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
            help="Use the verdicts in the database as labels: pinned pairs are duplicates, vetoed pairs are not.",
        ),
    ] = False,
    scope: options.Scope,
    result: options.Result,
) -> None:
    """Score pairs and clusters by pairs that people labelled.

    Shows precision, recall and F1 of the pairs and of the clusters, and for comparison the figures of accepting every
    labelled pair. Then shows the share of duplicates by similarity, for all pairs that the index stores: from the
    threshold on, or from match.review on. Last come the pairs on which labels and index disagree, by cluster.
    """
    if (labels is None) != verdicts:
        raise UsageError("give either --labels or --verdicts")
    from nearsim_db.analysis.evaluation import evaluate as run
    from nearsim_db.analysis.tuning.labels import PairLabels, read_labels

    labelled = None if labels is None else read_labels(labels)
    with scope.answers() as answers:
        evaluation = run(answers, labelled or PairLabels(answers.database.labels(answers.collection)))
    result.show(evaluation, lambda: _print(evaluation))


def _print(evaluation: "Evaluation") -> None:
    terminal.print_line(
        f"Profile {evaluation.profile}, threshold {evaluation.threshold:g}: {evaluation.duplicates:,} duplicate and "
        f"{evaluation.distinct:,} distinct pairs; {count_of(evaluation.unknown, 'pair')} of unknown documents, "
        f"{count_of(evaluation.bad_lines, 'invalid line')}",
        sys.stdout,
    )
    for reason in evaluation.first_reasons:
        terminal.print_line(f"ignored: {reason}", sys.stdout)
    named = (
        ("pairs", evaluation.pairs),
        ("clusters", evaluation.clusters),
        ("every pair", evaluation.accept_all),
    )
    rows = [[name, band.precision, band.recall, band.f1] for name, band in named]
    decimals = {"precision": 3, "recall": 3, "F1": 3, "duplicates": 3}
    tables.print_table(("accepted", "precision", "recall", "F1"), rows, decimals=decimals)

    bands = [[f"{band.low:.1f} to {band.high:.1f}", band.pairs, band.precision] for band in evaluation.bands]
    if bands:
        tables.print_table(("similarity", "pairs", "duplicates"), bands, decimals=decimals)
    _print_disagreements(evaluation)


def _print_disagreements(evaluation: "Evaluation") -> None:
    if not evaluation.disagreements:
        return

    rows = [
        [
            pair.cluster,
            pair.left,
            pair.right,
            "duplicate" if pair.duplicate else "distinct",
            "pair" if pair.is_pair else "",
            "same" if pair.same_cluster else "",
            pair.similarity,
        ]
        for pair in evaluation.disagreements[:_LISTED]
    ]

    columns = ("cluster", "left", "right", "label", "index", "clusters", "similarity")
    tables.print_table(columns, rows, decimals={"similarity": 4})

    if len(evaluation.disagreements) > _LISTED:
        terminal.print_line(
            f"the first {_LISTED} of {len(evaluation.disagreements):,} disagreements; --json lists all",
            sys.stdout,
        )
