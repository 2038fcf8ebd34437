"""Target: Parquet files with columns of any type and extreme values, some of them damaged."""

import io
import random
from collections.abc import Callable, Sequence
from typing import Any

_TEXTS = ["one", "", "é", "\0", "x" * 2_000, None]
_NAMES = ["id", "text", "title", "vector", "published_at", "source", "more", "é", "", "id"]


def draw_files(rng: random.Random, count: int) -> list[bytes]:
    """Return the contents of files."""
    return [_damaged(rng, _file(rng)) if rng.random() < 0.5 else _file(rng) for _ in range(count)]


def _damaged(rng: random.Random, content: bytes) -> bytes:
    changed = bytearray(content)
    for _ in range(rng.choice([1, 1, 3, 20])):
        changed[rng.randrange(len(changed))] = rng.randrange(256)
    return bytes(changed[: rng.choice([None, None, rng.randrange(len(changed))])])


def _file(rng: random.Random) -> bytes:
    import pyarrow
    import pyarrow.parquet

    rows = rng.choice([0, 1, 3, 20])
    names = rng.sample(_NAMES[:-1], rng.randrange(1, 6)) if rng.random() < 0.95 else ["id", "id"]
    if rng.random() < 0.8 and "id" not in names:
        names.append("id")
    columns = [_column(rng, name, rows) for name in names]
    stream = io.BytesIO()
    pyarrow.parquet.write_table(
        pyarrow.table(columns, names=names),
        stream,
        compression=rng.choice(["none", "snappy", "gzip", "zstd"]),
    )
    return stream.getvalue()


def _column(rng: random.Random, name: str, rows: int) -> Any:
    import pyarrow

    if name in ("id", "text", "title") and rng.random() < 0.7:
        return pyarrow.array([rng.choice(_TEXTS) for _ in range(rows)], pyarrow.string())
    if name == "vector" and rng.random() < 0.7:
        numbers = [0.5, -1.0, 1e39, float("nan"), None]
        values = [rng.choices(numbers[: rng.choice([2, 5])], k=rng.randrange(4)) for _ in range(rows)]
        return pyarrow.array(values, pyarrow.list_(pyarrow.float64()))
    return rng.choice(_makers())(rng, rows)


def _makers() -> Sequence[Callable[[random.Random, int], Any]]:
    import pyarrow as pa

    fixed = [
        pa.int8(), pa.uint64(), pa.float16(), pa.float32(), pa.float64(), pa.date32(), pa.date64(), pa.timestamp("us"),
        pa.timestamp("ns"), pa.timestamp("us", "UTC"), pa.timestamp("ms", "Asia/Tokyo"), pa.time32("ms"),
        pa.time64("ns"), pa.duration("ns"), pa.decimal128(38, 5), pa.decimal256(76, 70), pa.binary(7),
    ]  # fmt: skip
    nested = pa.struct([("a", pa.timestamp("ns")), ("b", pa.struct([("c", pa.string())]))])
    made: list[tuple[Any, Sequence[Any]]] = [
        (pa.large_string(), _TEXTS),
        (pa.binary(), [b"\xff", b"\0", None]),
        (pa.bool_(), [True, None]),
        (pa.null(), [None]),
        (pa.list_(pa.list_(pa.string())), [[["a"]], [], None, [None]]),
        (pa.list_(pa.int64(), 2), [[1, 2], None]),
        (pa.map_(pa.string(), pa.int32()), [[("a", 1), ("a", 2)], [], None]),
        (pa.map_(pa.int32(), pa.string()), [[(1, "a")]]),
        (nested, [{"a": 1, "b": {"c": "\0"}}, None]),
        (pa.dictionary(pa.int8(), pa.string()), ["a", None]),
    ]

    def fill(kind: Any) -> Callable[[random.Random, int], Any]:
        width = kind.bit_width // 8
        return lambda rng, rows: pa.Array.from_buffers(
            kind, rows, [None, pa.py_buffer(rng.randbytes(width * rows))]
        )

    def choose(kind: Any, values: Sequence[Any]) -> Callable[[random.Random, int], Any]:
        return lambda rng, rows: pa.array([rng.choice(values) for _ in range(rows)], kind)

    return [*map(fill, fixed), *(choose(kind, values) for kind, values in made)]
