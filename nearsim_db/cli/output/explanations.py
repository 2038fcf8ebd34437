"""The explanation of two documents, for people and for programs."""

import sys
from collections.abc import Iterable, Sequence
from dataclasses import asdict

from nearsim_db.analysis.text_diff import InlineDiff, InlineRun, compare_inline
from nearsim_db.cli.output import tables, terminal
from nearsim_db.cli.output.terminal import width_of
from nearsim_db.messages import count_of, suggested_command
from nearsim_db.search.common_fingerprints import CommonFingerprints
from nearsim_db.search.explanation import Explanation
from nearsim_db.search.passages import SpreadPassage
from nearsim_db.similarity.passages import Passage, Span
from nearsim_db.store.settings import wants_colours

_DIGITS = 4


def as_json(found: Explanation, diff: InlineDiff | None = None) -> dict[str, object]:
    """Return an explanation as one JSON object, without the texts, and with their difference if there is one."""
    left, right = found.left, found.right
    sides = {
        "left": left.id,
        "right": right.id,
        "left_title": left.title,
        "right_title": right.title,
        "numbers_only_left": left.only_here,
        "numbers_only_right": right.only_here,
    }
    figures = {name: value for name, value in asdict(found).items() if name not in ("left", "right")}
    figures["signature_similarity"] = found.signature_similarity
    return sides | figures | ({} if diff is None else {"diff": asdict(diff)})


def print_evidence(found: Explanation) -> None:
    """Print the evidence, one figure per line, after the reasons."""
    _print_reasons(found)
    verdict = f"{found.verdict} by {found.verdict_by}: {found.verdict_why}" if found.verdict else None
    tables.print_facts(
        {
            "collection": found.collection,
            "left": terminal.id_and_title(found.left.id, found.left.title),
            "right": terminal.id_and_title(found.right.id, found.right.title),
            **_figures(found),
            "numbers": _numbers(found),
            "same cluster": found.same_cluster,
            "verdict": verdict,
            "estimated at" if found.verified is False else "verified at": found.verified_at,
        }
    )


def print_absence(found: Explanation) -> None:
    """Print why two documents are not a pair, and the recipe under which they would be one."""
    _print_reasons(found)
    tables.print_facts(
        {
            "collection": found.collection,
            "left": terminal.id_and_title(found.left.id, found.left.title),
            "right": terminal.id_and_title(found.right.id, found.right.title),
            **_figures(found),
        }
    )
    for line in _remedy(found):
        terminal.print_line(line)


def print_passages(left: str, right: str, found: Sequence[Passage]) -> None:
    """Print the passages of two documents, each with its places and with the words of one text marked."""
    if not found:
        terminal.print_line("no passage is in both")
    for number, one in enumerate(found):
        if number:
            terminal.print_line()
        words = count_of(one.equal, "equal word")
        seen = (
            "" if one.documents is None else f"; in {count_of(one.documents, 'distinct text')} of the index"
        )
        terminal.print_line(
            f"passage {number + 1}: {words}, {100 * one.share:.0f} % of the longer side{seen}"
        )
        tables.print_facts({left: _place(one.left), right: _place(one.right)})
        terminal.print_line()
        _print_hunks(compare_inline(one.left.text, one.right.text))


def print_spread(found: Sequence[SpreadPassage]) -> None:
    """Print the passages of a document, each with the documents that have it, the earliest first."""
    if not found:
        terminal.print_line("no other document has a passage of it")
    for number, passage in enumerate(found):
        if number:
            terminal.print_line()
        first = "" if passage.first_seen is None else f", first seen in {passage.first_seen}"
        documents = count_of(len({one.id for one in passage.occurrences}), "document")
        terminal.print_line(f"passage {number + 1}: {_place(passage.place)}; in {documents}{first}")
        tables.print_table(
            ["published_at", "id", "source", "words", "share", "title"],
            [
                [one.published_at, one.id, one.source, one.equal, one.share, one.title]
                for one in passage.occurrences
            ],
            shorten=["title"],
        )


def print_common(found: Sequence[CommonFingerprints]) -> None:
    """Print what an index leaves out."""
    if not found:
        terminal.print_line("no fingerprint is left out")
        return
    rows = [[one.documents, one.share, one.shingles, one.example] for one in found]
    tables.print_table(["documents", "share", "shingles", "example"], rows, shorten=["example"])


def _place(span: Span) -> str:
    words = f"words {span.first_word + 1:,} to {span.end_word:,}"
    return f"characters {span.start + 1:,} to {span.end:,}, {words}"


def print_diff(found: Explanation, diff: InlineDiff) -> None:
    """Print the words of both texts, with those of one marked; under containment of their passages."""
    if found.passages:
        print_passages(found.left.id, found.right.id, found.passages)
        terminal.print_line()
    elif diff.is_same:
        same = "the same except for white space" if found.left.text != found.right.text else "the same"
        terminal.print_line(f"the compared texts are {same}")
        return
    else:
        _print_hunks(diff)
        terminal.print_line()
    print_runs([_legend(found)])


def _print_hunks(diff: InlineDiff) -> None:
    lines: list[Sequence[InlineRun]] = []
    for hunk in diff.hunks:
        lines += [_note(f"{hunk.skipped:,} equal words omitted")] if hunk.skipped else []
        lines.append(hunk.runs)
    lines += [_note(f"{diff.skipped:,} equal words omitted")] if diff.skipped else []
    lines += [_note(f"{diff.uncompared:,} words were not compared")] if diff.uncompared else []
    print_runs(lines)


def _legend(found: Explanation) -> Sequence[InlineRun]:
    return [
        InlineRun("left", f"only in {found.left.id}"),
        InlineRun("both", " "),
        InlineRun("right", f"only in {found.right.id}"),
        InlineRun("both", " "),
        InlineRun("right", "number", is_number=True),
        InlineRun("both", " missing in the other"),
    ]


def _note(text: str) -> Sequence[InlineRun]:
    return [InlineRun("both", f"... {text} ...")]


def _print_reasons(found: Explanation) -> None:
    for reason in found.reasons:
        style = "green" if reason.kind in ("pair", "twins", "pinned") else "yellow"
        terminal.print_painted(terminal.paint(terminal.visible(reason.text), style, sys.stdout), sys.stdout)
    terminal.print_line()


def _figures(found: Explanation) -> dict[str, object]:
    required = "" if found.required == "1" else f", of which {found.required} required"
    is_containment = found.metric == "containment"
    of = "fingerprints" if is_containment else f"of {found.bands}"
    shared = None if found.shared_bands is None else f"{found.shared_bands} {of}{required}"
    chance = None if found.probability is None else f"{found.probability:.{_DIGITS}f}"
    such = "with such a run in common" if is_containment else "of this similarity"
    return {
        "profile": f"{found.profile}, generation {found.generation}",
        **_similarity(found),
        "threshold": f"{found.threshold:g}",
        "estimate": None if found.estimate is None else f"{found.estimate:.{_DIGITS}f}",
        "signature similarity": found.signature_similarity and f"{found.signature_similarity:.{_DIGITS}f}",
        "shared_bands": shared,
        "buckets": _buckets(found),
        "probability": chance and f"{chance} that a pair {such} becomes a candidate",
    }


def _similarity(found: Explanation) -> dict[str, object]:
    facts: dict[str, object] = {"metric": found.metric}
    if found.similarity is None:
        facts["similarity"] = found.stored_similarity
    elif found.union is None:
        facts["similarity"] = found.similarity
    elif found.metric == "containment" and found.intersection:
        smaller = round(found.intersection / found.similarity)
        counted = f"{found.intersection:,} of {smaller:,} features of the smaller are in both"
        facts["similarity"] = f"{found.similarity:.{_DIGITS}f}: {counted}"
    else:
        counted = f"{found.intersection:,} of {found.union:,} features are in both"
        facts["similarity"] = f"{found.similarity:.{_DIGITS}f}: {counted}"
    if found.distance is not None:
        facts["distance"] = found.distance
    if None not in (found.similarity, found.stored_similarity) and (
        found.verified is False or found.similarity != found.stored_similarity
    ):
        origin = "of earlier texts" if found.verified else "an estimate"
        facts["stored similarity"] = f"{found.stored_similarity:.{_DIGITS}f}, {origin}"
    return facts


def _buckets(found: Explanation) -> str | None:
    if not found.buckets:
        return None
    limit = found.bucket_limit
    large = [one for one in found.buckets if limit and one.members > limit]
    bands = ", ".join(str(one.band) for one in found.buckets)
    most = max(one.members for one in found.buckets)
    which = f"{len(found.buckets)}" if found.metric == "containment" else f"of bands {bands}"
    text = f"{which}; the largest has {most:,} members"
    return f"{text}, {len(large):,} over the limit of {limit:,}" if large else text


def _numbers(found: Explanation) -> str | None:
    if found.numbers_differ is None:
        return None
    if not found.numbers_differ:
        return "the same in both"
    sides = (("left", found.left.only_here), ("right", found.right.only_here))
    only = [f"only {side}: {', '.join(numbers)}" for side, numbers in sides if numbers]
    return "; ".join(["differ", *only])


def _remedy(found: Explanation) -> list[str]:
    remedy = found.remedy
    if found.is_pair or found.similarity is None:
        return []
    if remedy is None:
        return ["", "no threshold is low enough to make them a pair"]
    changed = " and ".join(remedy.settings)
    bands = f"{remedy.bands} bands of {remedy.rows} rows, of which they share {remedy.shared_bands}"
    if found.metric == "containment":
        bands = f"they share {count_of(remedy.shared_bands, 'fingerprint')}"
    if not remedy.sufficient:
        return ["", f"even with {changed} they would not be candidates: {bands}"]
    if not remedy.settings:
        return []
    settings = [word for one in remedy.settings for word in ("--set", one)]
    command = suggested_command("reindex start", found.collection, found.profile, *settings)
    chance = f"such pairs become candidates with probability {remedy.probability:.{_DIGITS}f}"
    return ["", f"with {changed} they would be a pair: {bands}; {chance}", f"to compare: {command}"]


_STYLES = {"both": "", "left": "red", "right": "green"}
_NUMBER = "bold reverse"
_MARKS = {"both": ("", ""), "left": ("[-", "-]"), "right": ("{+", "+}")}


def print_runs(lines: Iterable[Sequence[InlineRun]]) -> None:
    """Print runs of words, each list from the beginning of a line; wrapped on a terminal."""
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
    """Return a text with its line ends, and every other control character escaped."""
    lines = text.replace("\r\n", "\n").replace("\t", " ").split("\n")
    return "\n".join(map(terminal.visible, lines))
