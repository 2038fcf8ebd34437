"""The output files of `dedupe`: the remaining documents, in a file or a folder, and the lists of pairs and so on."""

import os
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from nearsim_db.deduplication.folders import Shard, find_shards, find_stale, make_folder, write_shards
from nearsim_db.deduplication.kept_records import copy_unique, open_unique, output_encoding
from nearsim_db.deduplication.reading import REPORT_EVERY
from nearsim_db.messages import count_of
from nearsim_db.readers import Source, refuse_overwriting_inputs
from nearsim_db.readers.inputs import Input
from nearsim_db.readers.writers.file_format import FileFormat
from nearsim_db.records import Progress
from nearsim_db.similarity.arrays import Ints


@dataclass(frozen=True, slots=True)
class Outputs:
    """The files to write; None for a file that is not wanted."""

    unique: Path | None = None  # the remaining documents; if None, they are only counted
    pairs: Path | None = None
    clusters: Path | None = None
    rejects: Path | None = None
    review: Path | None = None  # pairs to be reviewed
    format: FileFormat | None = (
        None  # of `unique`, if its suffix names none; by default the format of the input
    )
    sharded: bool = (
        False  # `unique` is a folder, with a file for each input file, of the same name and format
    )
    cuts: Path | None = None  # the passages that were cut

    def shards(self, source: Source, parts: Sequence[Input]) -> list[Shard]:
        """Create the folder `unique`, and return the files to write in it; no file if `unique` is not a folder."""
        if self.unique is None or not self.sharded:
            return []
        shards = find_shards(source, parts, self.unique, self.lists())
        make_folder(self.unique)
        return shards

    def lists(self) -> list[Path]:
        """Return all files to write except the remaining documents."""
        paths = (self.pairs, self.clusters, self.rejects, self.review, self.cuts)
        return [path for path in paths if path is not None]

    def stale_warnings(self, shards: Sequence[Shard]) -> list[str]:
        """Return a warning if the folder has files that this run does not write."""
        if self.unique is None or not self.sharded:
            return []
        stale = find_stale(shards, self.unique, self.lists())
        if not stale:
            return []
        further_files = "" if len(stale) == 1 else f" and {count_of(len(stale) - 1, 'other file')}"
        return [
            f"{self.unique} has {stale[0]}{further_files} besides what is written now, as of an earlier run; a program "
            "that reads the whole folder reads them, too"
        ]

    def refuse_links_to(self, files: Sequence[Path]) -> None:
        """Raise InputError if the file of remaining documents is an input file under another name.

        The output may replace an input under the same name only.
        """
        if self.unique is not None and not self.sharded:
            # Unlike resolve(), abspath does not follow links.
            names = {os.path.abspath(path) for path in files}  # noqa: PTH100
            if os.path.abspath(self.unique) not in names:  # noqa: PTH100
                refuse_overwriting_inputs([self.unique], files)

    def of_records(self, shards: Sequence[Shard]) -> list[Path | None]:
        """Return the files of the remaining documents."""
        return [shard.path for shard in shards] if self.sharded else [self.unique]


def copy_records(
    parts: Sequence[Input],
    outputs: Outputs,
    shards: Sequence[Shard],
    origins: Mapping[int, Ints],
    progress: Progress,
) -> int:
    """Write the records at the positions of `origins`, by number of the input; return how many records there are."""
    if outputs.unique is None:
        return sum(len(positions) for positions in origins.values())
    unique = reported = 0
    if outputs.sharded:
        written = write_shards(shards, outputs.unique, origins)
    else:
        written = _copy_to_one(parts, outputs.unique, outputs.format, origins)
    for unique in written:
        if unique >= reported + REPORT_EVERY:
            progress("write", reported := unique, None)
    progress("write", unique, unique)
    return unique


def _copy_to_one(
    parts: Sequence[Input], path: Path, format: FileFormat | None, origins: Mapping[int, Ints]
) -> Iterator[int]:
    encoding = output_encoding(parts, path, format)
    with open_unique(parts, path, encoding) as writer:
        yield from copy_unique(parts, origins, writer, encoding.delimiter)
