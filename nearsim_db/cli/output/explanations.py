"""Print explanations of two documents, shared passages and text differences, for people and for programs."""

import sys
from collections.abc import Iterable, Sequence
from dataclasses import asdict

from nearsim_db.analysis.text_diff import InlineDiff, InlineRun, compare_inline
from nearsim_db.cli.output import layouts, tables, terminal
from nearsim_db.cli.output.terminal import width_of
from nearsim_db.messages import count_of, suggested_command
from nearsim_db.search.common_fingerprints import CommonFingerprints
from nearsim_db.search.explanation import Explanation
from nearsim_db.search.passages import SpreadPassage
from nearsim_db.similarity.passages import Passage, Span
from nearsim_db.store.settings import wants_colours

_DIGITS = 4


def as_json(explanation: Explanation, diff: InlineDiff | None = None) -> dict[str, object]:
    """Return an explanation as one JSON object, without the texts, and with their difference if there is one."""
    left, right = explanation.left, explanation.right
    sides = {
        "left": left.id,
        "right": right.id,
        "left_title": left.title,
        "right_title": right.title,
        "numbers_only_left": left.only_here,
        "numbers_only_right": right.only_here,
    }
    figures = {name: value for name, value in asdict(explanation).items() if name not in ("left", "right")}
    for name in layouts.SIGNATURE_PARTS:
        figures[name] = getattr(explanation, name)
    return sides | figures | ({} if diff is None else {"diff": asdict(diff)})


def print_evidence(explanation: Explanation) -> None:
    """Print the evidence, one figure per line, after the reasons."""
    _print_reasons(explanation)

    verdict = (
        f"{explanation.verdict} by {explanation.verdict_by}: {explanation.verdict_why}"
        if explanation.verdict
        else None
    )

    tables.print_facts(
        {
            "collection": explanation.collection,
            "left": terminal.id_and_title(explanation.left.id, explanation.left.title),
            "right": terminal.id_and_title(explanation.right.id, explanation.right.title),
            **_figures(explanation),
            "numbers": _numbers(explanation),
            "same cluster": explanation.same_cluster,
            "verdict": verdict,
            "estimated at" if explanation.verified is False else "verified at": explanation.verified_at,
        }
    )


def print_absence(explanation: Explanation) -> None:
    """Print why two documents are not a pair, and the recipe under which they would be one."""
    _print_reasons(explanation)
    tables.print_facts(
        {
            "collection": explanation.collection,
            "left": terminal.id_and_title(explanation.left.id, explanation.left.title),
            "right": terminal.id_and_title(explanation.right.id, explanation.right.title),
            **_figures(explanation),
        }
    )
    for line in _remedy(explanation):
        terminal.print_line(line)


def print_passages(left: str, right: str, passages: Sequence[Passage]) -> None:
    """Print the passages of two documents, each with its places and with the words of one text marked."""
    if not passages:
        terminal.print_line("no passage is in both")

    for number, passage in enumerate(passages):
        if number:
            terminal.print_line()

        words = count_of(passage.equal, "equal word")
        seen = (
            ""
            if passage.documents is None
            else f"; in {count_of(passage.documents, 'distinct text')} of the index"
        )
        terminal.print_line(
            f"passage {number + 1}: {words}, {100 * passage.share:.0f} % of the longer side{seen}"
        )

        tables.print_facts({left: _place(passage.left), right: _place(passage.right)})
        terminal.print_line()
        _print_hunks(compare_inline(passage.left.text, passage.right.text))


def print_spread(passages: Sequence[SpreadPassage]) -> None:
    """Print the passages of a document, each with the documents that have it, the earliest first."""
    if not passages:
        terminal.print_line("no other document has a passage of it")

    for number, passage in enumerate(passages):
        if number:
            terminal.print_line()

        first = "" if passage.first_seen is None else f", first seen in {passage.first_seen}"
        documents = count_of(len({occurrence.id for occurrence in passage.occurrences}), "document")
        terminal.print_line(f"passage {number + 1}: {_place(passage.place)}; in {documents}{first}")

        tables.print_table(
            ["published_at", "id", "source", "words", "share", "title"],
            [
                [
                    occurrence.published_at,
                    occurrence.id,
                    occurrence.source,
                    occurrence.equal,
                    occurrence.share,
                    occurrence.title,
                ]
                for occurrence in passage.occurrences
            ],
            shorten=["title"],
        )


def print_common(fingerprints: Sequence[CommonFingerprints]) -> None:
    """Print the fingerprints that an index leaves out as too common."""
    if not fingerprints:
        terminal.print_line("no fingerprint is left out")
        return
    rows = [
        [fingerprint.documents, fingerprint.share, fingerprint.shingles, fingerprint.example]
        for fingerprint in fingerprints
    ]
    tables.print_table(["documents", "share", "shingles", "example"], rows, shorten=["example"])


def _place(span: Span) -> str:
    words = f"words {span.first_word + 1:,} to {span.end_word:,}"
    return f"characters {span.start + 1:,} to {span.end:,}, {words}"


def print_diff(explanation: Explanation, diff: InlineDiff) -> None:
    """Print the differences of two texts, or for containment their shared passages; mark words of one text only."""
    if explanation.passages:
        print_passages(explanation.left.id, explanation.right.id, explanation.passages)
        terminal.print_line()
    elif diff.is_same:
        same = (
            "the same except for white space"
            if explanation.left.text != explanation.right.text
            else "the same"
        )
        terminal.print_line(f"the compared texts are {same}")
        return
    else:
        _print_hunks(diff)
        terminal.print_line()

    print_runs([_legend(explanation)])


def _print_hunks(diff: InlineDiff) -> None:
    lines: list[Sequence[InlineRun]] = []
    for hunk in diff.hunks:
        lines += [_note(f"{hunk.skipped:,} equal words omitted")] if hunk.skipped else []
        lines.append(hunk.runs)
    lines += [_note(f"{diff.skipped:,} equal words omitted")] if diff.skipped else []
    lines += [_note(f"{diff.uncompared:,} words were not compared")] if diff.uncompared else []
    print_runs(lines)


def _legend(explanation: Explanation) -> Sequence[InlineRun]:
    return [
        InlineRun("left", f"only in {explanation.left.id}"),
        InlineRun("both", " "),
        InlineRun("right", f"only in {explanation.right.id}"),
        InlineRun("both", " "),
        InlineRun("right", "number", is_number=True),
        InlineRun("both", " missing in the other"),
    ]


def _note(text: str) -> Sequence[InlineRun]:
    return [InlineRun("both", f"... {text} ...")]


def _print_reasons(explanation: Explanation) -> None:
    for reason in explanation.reasons:
        style = "green" if reason.kind in ("pair", "twins", "pinned") else "yellow"
        terminal.print_painted(terminal.paint(terminal.visible(reason.text), style, sys.stdout), sys.stdout)
    terminal.print_line()


def _figures(explanation: Explanation) -> dict[str, object]:
    required = "" if explanation.required == "1" else f", of which {explanation.required} required"
    is_containment = explanation.metric == "containment"
    unit = "fingerprints" if is_containment else f"of {explanation.bands}"
    shared = None if explanation.shared_bands is None else f"{explanation.shared_bands} {unit}{required}"
    chance = None if explanation.probability is None else f"{explanation.probability:.{_DIGITS}f}"
    condition = "with such a run in common" if is_containment else "of this similarity"

    return {
        "profile": f"{explanation.profile}, generation {explanation.generation}",
        **_similarity(explanation),
        "threshold": f"{explanation.threshold:g}",
        "estimate": None if explanation.estimate is None else f"{explanation.estimate:.{_DIGITS}f}",
        "signature similarity": _signature_similarity(explanation),
        "shared_bands": shared,
        "buckets": _buckets(explanation),
        "probability": chance and f"{chance} that a pair {condition} becomes a candidate",
    }


def _signature_similarity(explanation: Explanation) -> str | None:
    if explanation.signature_similarity is None:
        return None
    shown = f"{explanation.signature_similarity:.{_DIGITS}f}"
    if explanation.signature_intersection is None:
        return shown
    return f"{shown}: {explanation.signature_intersection:,} of {explanation.signature_union:,} values are in both"


def _similarity(explanation: Explanation) -> dict[str, object]:
    facts: dict[str, object] = {"metric": explanation.metric}
    if explanation.similarity is None:
        facts["similarity"] = explanation.stored_similarity
    elif explanation.union is None:
        facts["similarity"] = explanation.similarity
    elif explanation.metric == "containment" and explanation.intersection:
        # Containment is the intersection divided by the size of the smaller set.
        smaller = round(explanation.intersection / explanation.similarity)
        counted = f"{explanation.intersection:,} of {smaller:,} features of the smaller are in both"
        facts["similarity"] = f"{explanation.similarity:.{_DIGITS}f}: {counted}"
    else:
        counted = f"{explanation.intersection:,} of {explanation.union:,} features are in both"
        facts["similarity"] = f"{explanation.similarity:.{_DIGITS}f}: {counted}"

    if explanation.distance is not None:
        facts["distance"] = explanation.distance

    if None not in (explanation.similarity, explanation.stored_similarity) and (
        explanation.verified is False or explanation.similarity != explanation.stored_similarity
    ):
        origin = "of earlier texts" if explanation.verified else "an estimate"
        facts["stored similarity"] = f"{explanation.stored_similarity:.{_DIGITS}f}, {origin}"
    return facts


def _buckets(explanation: Explanation) -> str | None:
    if not explanation.buckets:
        return None
    limit = explanation.bucket_limit
    large = [bucket for bucket in explanation.buckets if limit and bucket.members > limit]

    bands = ", ".join(str(bucket.band) for bucket in explanation.buckets)
    largest = max(bucket.members for bucket in explanation.buckets)
    buckets = f"{len(explanation.buckets)}" if explanation.metric == "containment" else f"of bands {bands}"

    text = f"{buckets}; the largest has {largest:,} members"
    return f"{text}, {len(large):,} over the limit of {limit:,}" if large else text


def _numbers(explanation: Explanation) -> str | None:
    if explanation.numbers_differ is None:
        return None
    if not explanation.numbers_differ:
        return "the same in both"
    sides = (("left", explanation.left.only_here), ("right", explanation.right.only_here))
    only = [f"only {side}: {', '.join(numbers)}" for side, numbers in sides if numbers]
    return "; ".join(["differ", *only])


def _remedy(explanation: Explanation) -> list[str]:
    remedy = explanation.remedy
    if explanation.is_pair or explanation.similarity is None:
        return []
    if remedy is None:
        return ["", "no threshold is low enough to make them a pair"]

    changed = " and ".join(remedy.settings)
    bands = f"{remedy.bands} bands of {remedy.rows} rows, of which they share {remedy.shared_bands}"
    if explanation.metric == "containment":
        bands = f"they share {count_of(remedy.shared_bands, 'fingerprint')}"
    if not remedy.sufficient:
        return ["", f"even with {changed} they would not be candidates: {bands}"]
    if not remedy.settings:
        return []

    settings = [word for setting in remedy.settings for word in ("--set", setting)]
    command = suggested_command("reindex start", explanation.collection, explanation.profile, *settings)
    chance = f"such pairs become candidates with probability {remedy.probability:.{_DIGITS}f}"
    return ["", f"with {changed} they would be a pair: {bands}; {chance}", f"to compare: {command}"]


_STYLES = {"both": "", "left": "red", "right": "green"}
_NUMBER = "bold reverse"
# The marks of each side on outputs without colours.
_MARKS = {"both": ("", ""), "left": ("[-", "-]"), "right": ("{+", "+}")}


def print_runs(lines: Iterable[Sequence[InlineRun]]) -> None:
    """Print lists of runs of words, each on a new line, wrapped on a terminal."""
    if sys.stdout.isatty() and wants_colours():
        _print_coloured(lines)
        return
    width = width_of(sys.stdout)
    for runs in lines:
        text = ""
        for run in runs:
            before, after = _MARKS[run.side]
            text += f"{before}{'#' if run.is_number else ''}{_escaped(run.text)}{after}"
        sys.stdout.write("".join(f"{line}\n" for line in tables.wrap_text(text.rstrip(), width)))


def _print_coloured(lines: Iterable[Sequence[InlineRun]]) -> None:
    from rich.console import Console
    from rich.text import Text

    console = Console(file=sys.stdout, width=width_of(sys.stdout), highlight=False)
    for runs in lines:
        text = Text()
        for run in runs:
            text.append(
                _escaped(run.text), f"{_STYLES[run.side]} {_NUMBER}" if run.is_number else _STYLES[run.side]
            )
        text.rstrip()
        console.print(text)


def _escaped(text: str) -> str:
    """Return a text whose control characters are escaped, except line ends."""
    # `visible` escapes line ends and tabs, so apply it to each line, and replace tabs before.
    lines = text.replace("\r\n", "\n").replace("\t", " ").split("\n")
    return "\n".join(map(terminal.visible, lines))
