"""The kernel that collapses separators, in NumPy; see `TextKernels`."""

import numpy as np
from numpy.typing import NDArray

from nearsim_db.similarity.text.kernels import Bytes, Offsets
from nearsim_db.similarity.text.separators import SEPARATOR

_SPACE = 32


def squeeze(data: Bytes, offsets: Offsets, table: Bytes) -> tuple[Bytes, Offsets]:
    if not len(data):
        return data, offsets
    if data.max() < 128:
        return _squeeze_ascii(data, offsets, table)
    points = np.frombuffer(data.tobytes().decode("utf-8").encode("utf-32-le"), "<u4")
    starts = np.concatenate(([0], np.cumsum(_widths(points))))
    classes = table[points]
    separates = classes == SEPARATOR
    written = np.where(points < 128, classes, points)
    written[separates] = _SPACE
    keep, kept_offsets = _collapse(separates, np.searchsorted(starts, offsets))
    kept = written[keep]
    out = np.frombuffer(kept.astype("<u4").tobytes().decode("utf-32-le").encode("utf-8"), np.uint8)
    return out, np.concatenate(([0], np.cumsum(_widths(kept))))[kept_offsets]


def _squeeze_ascii(data: Bytes, offsets: Offsets, table: Bytes) -> tuple[Bytes, Offsets]:
    separators = table[:256] == SEPARATOR
    text = data.tobytes()
    separates = np.frombuffer(text.translate(separators.tobytes()), np.bool_)
    written = text.translate(np.where(separators, _SPACE, table[:256]).astype(np.uint8).tobytes())
    keep, kept_offsets = _collapse(separates, offsets)
    return np.frombuffer(written, np.uint8)[keep], kept_offsets


def _collapse(separates: NDArray[np.bool_], offsets: Offsets) -> tuple[NDArray[np.bool_], Offsets]:
    """Return what is kept: of a run of separators the last, if words of the same document surround it."""
    follows = ~separates
    follows &= ~document_starts(offsets, len(separates))
    gaps = separates.copy()
    gaps[:-1] &= follows[1:]
    gaps[-1] = False
    begins = offsets[:-1][np.diff(offsets) > 0]
    led = begins[separates[begins]]
    if len(led):
        places = np.flatnonzero(gaps)
        first = np.searchsorted(places, led)
        ends = offsets[np.searchsorted(offsets, led, side="right")]
        found = first < len(places)
        found[found] = places[first[found]] < ends[found]
        gaps[places[first[found]]] = False
    keep = gaps | ~separates
    return keep, offsets - np.searchsorted(np.flatnonzero(~keep), offsets)


def document_starts(offsets: Offsets, total: int) -> NDArray[np.bool_]:
    starts = np.zeros(total + 1, bool)
    starts[offsets[:-1]] = True
    return starts[:total]


def _widths(points: NDArray[np.unsignedinteger]) -> NDArray[np.int64]:
    return 1 + (points >= 0x80).astype(np.int64) + (points >= 0x800) + (points >= 0x10000)
