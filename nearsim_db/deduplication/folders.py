"""Write the remaining documents of `dedupe` to a folder, with a file for each input file."""

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from nearsim_db.deduplication.kept_records import copy_unique, open_unique, output_encoding
from nearsim_db.errors import InputError, NearsimError
from nearsim_db.readers.arrow import ARROW
from nearsim_db.readers.folder import list_files
from nearsim_db.readers.inputs import Input
from nearsim_db.readers.leftovers import sweep_parts
from nearsim_db.readers.output import open_output
from nearsim_db.readers.source import Source
from nearsim_db.readers.writers.file_format import SUFFIXES, Encoding, file_type
from nearsim_db.records import STANDARD_OUTPUT
from nearsim_db.similarity.arrays import Ints

# The name of the empty file that Hadoop and Spark write last.
COMPLETE = "_SUCCESS"
_RECORDS = frozenset({*SUFFIXES, ARROW})
_NOTHING = np.zeros(0, np.int64)


@dataclass(frozen=True, slots=True)
class Shard:
    """An output file in the folder."""

    path: Path
    source: Input  # the input file
    part: int  # number of the input that the input file belongs to
    begin: int  # position of its first record in that input
    end: int | None  # position after its last record, None at the end of the input

    @property
    def encoding(self) -> Encoding:
        """The format and compression of the file."""
        format = None if file_type(self.path) in SUFFIXES else self.source.format
        return output_encoding([self.source], self.path, format)


def find_shards(
    source: Source, parts: Sequence[Input], folder: Path, further_outputs: Collection[Path] = ()
) -> list[Shard]:
    """Return the files to write in a folder. Each has the path of its input file below the folder of all input files.

    Arrow files become Parquet. If the folder is the folder of all input files, each file must replace its own input;
    otherwise no file may replace an input. Raises InputError for inputs without files of records, and for a file that
    would be outside of the folder, or that would replace another input, another shard or one of `further_outputs`, the
    other outputs of the command.
    """
    shards, root = dict[Path, Shard](), folder.resolve()
    other_outputs = {path.resolve() for path in further_outputs if path != STANDARD_OUTPUT}
    if root / COMPLETE in other_outputs:
        raise InputError(f"{folder / COMPLETE} says that the folder is complete; name another output file")
    for number, (part, names) in enumerate(zip(parts, source.names_within_all(), strict=True)):
        for file, begin, end in part.files():
            path = folder / names / file.path.relative_to(part.path)
            path = path.with_suffix(".parquet") if path.suffix.lower() == ".arrow" else path
            written = path.resolve()
            if not written.is_relative_to(root):
                raise InputError(
                    f"{file.path} would be written to {written}, outside of {folder}; name a file"
                )
            if written in shards:
                raise InputError(
                    f"{file.path} and {shards[written].source.path} would both be written to {path}; name a file"
                )
            if written in other_outputs:
                raise InputError(f"{path} would be written twice: for {file.path}, and as another output")
            shards[written] = Shard(path, file, number, begin, end)

    in_place = source.has_all_in(folder)
    inputs = {shard.source.path.resolve(): shard for shard in shards.values()}
    for written, shard in shards.items():
        replaced = inputs.get(written)
        if replaced is None and in_place:
            raise InputError(
                f"{shard.path} would lie beside {shard.source.path}, which it does not replace; name another folder"
            )
        if replaced is not None and (replaced is not shard or not in_place):
            raise InputError(
                f"{shard.path}, for {shard.source.path}, would replace the input {replaced.source.path}; "
                "name another folder"
            )
    return list(shards.values())


def find_stale(shards: Sequence[Shard], folder: Path, further_outputs: Collection[Path] = ()) -> list[Path]:
    """Return the files of records in an output folder that this run does not write, such as files of an earlier run.

    `further_outputs` are the further outputs of the command.
    """
    if not folder.is_dir():
        return []
    written = {path.resolve() for path in (*(shard.path for shard in shards), *further_outputs)}
    types = _RECORDS | {file_type(shard.path) for shard in shards}
    files = (path for path in list_files(folder) if isinstance(path, Path) and path.name != COMPLETE)
    return [path for path in files if file_type(path) in types and path.resolve() not in written]


def write_shards(shards: Sequence[Shard], folder: Path, origins: Mapping[int, Ints]) -> Iterator[int]:
    """Write the records at some positions of the inputs; after each step, yield the number of records so far.

    Each file is complete or absent. After the last file, an empty file COMPLETE is written to the folder. Raises
    NearsimError if a folder cannot be created.
    """
    (folder / COMPLETE).unlink(missing_ok=True)
    for subfolder in {shard.path.parent for shard in shards}:
        make_folder(subfolder)
        sweep_parts(subfolder)
    before = done = 0
    for shard in shards:
        positions = origins.get(shard.part, _NOTHING)
        inside = positions >= shard.begin
        if shard.end is not None:
            inside &= positions < shard.end
        shard_origins = {0: positions[inside] - shard.begin} if inside.any() else {}
        encoding = shard.encoding
        # The folders were swept above; sweeping before each of thousands of files would take longer than writing them.
        with open_unique([shard.source], shard.path, encoding, sweep=False) as writer:
            for count in copy_unique([shard.source], shard_origins, writer, encoding.delimiter):
                done = before + count
                yield done
        before = done

    with open_output(folder / COMPLETE):
        pass


def make_folder(folder: Path) -> None:
    """Create a folder and its parents. Raises NearsimError if that is not possible."""
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise NearsimError(f"cannot make the folder {folder}: {error.strerror or error}") from error
