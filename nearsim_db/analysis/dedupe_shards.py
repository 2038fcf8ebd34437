"""The remaining documents of `dedupe` in a folder, with a file for each input file."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from nearsim_db.analysis.dedupe_output import copy_unique, open_unique, output_encoding
from nearsim_db.errors import InputError, NearsimError
from nearsim_db.readers.inputs import Input
from nearsim_db.readers.source import Source
from nearsim_db.readers.writers.file_format import SUFFIXES, file_type
from nearsim_db.similarity.arrays import Ints

_NOTHING = np.zeros(0, np.int64)


@dataclass(frozen=True, slots=True)
class Shard:
    """A file to write: of `source`, whose records are those of the input `part` from `begin`, up to `end` if any."""

    path: Path
    source: Input
    part: int
    begin: int
    end: int | None


def find_shards(source: Source, parts: Sequence[Input], folder: Path) -> list[Shard]:
    """Return the files to write, in a folder: each has the path of the input file below the folder of all of them.

    Arrow files become Parquet. Raises InputError for inputs without files of records, and if two have one name.
    """
    root, found = source.folder_of_all(), dict[Path, Shard]()
    for number, part in enumerate(parts):
        for file, begin, end in part.files():
            path = folder / file.path.absolute().relative_to(root)
            path = path.with_suffix(".parquet") if path.suffix.lower() == ".arrow" else path
            if path in found:
                raise InputError(
                    f"{file.path} and {found[path].source.path} would both be written to {path}; name a file"
                )
            found[path] = Shard(path, file, number, begin, end)
    return list(found.values())


def write_shards(shards: Sequence[Shard], origins: Mapping[int, Ints]) -> Iterator[int]:
    """Write the records at some positions of the inputs, and yield the number of records after each step.

    A file is complete or absent. Raises NearsimError if a folder cannot be made.
    """
    before = done = 0
    for shard in shards:
        positions = origins.get(shard.part, _NOTHING)
        inside = positions >= shard.begin
        if shard.end is not None:
            inside &= positions < shard.end
        own = {0: positions[inside] - shard.begin} if inside.any() else {}
        format = None if file_type(shard.path) in SUFFIXES else shard.source.format
        encoding = output_encoding([shard.source], shard.path, format)
        try:
            shard.path.parent.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise NearsimError(
                f"cannot make the folder {shard.path.parent}: {error.strerror or error}"
            ) from error
        with open_unique([shard.source], shard.path, encoding) as writer:
            for count in copy_unique([shard.source], own, writer, encoding.delimiter):
                done = before + count
                yield done
        before = done
