"""What the metadata of a message of an Arrow stream says of its body, which pyarrow decompresses without a limit.

Metadata is a flatbuffer (https://flatbuffers.dev) of the tables Message, RecordBatch and DictionaryBatch in Arrow's
format/Message.fbs and format/Schema.fbs.
"""

from dataclasses import dataclass
from struct import Struct
from typing import Any

_U16, _I32, _U32, _I64, _BUFFER = (Struct(f"<{one}") for one in ("H", "i", "I", "q", "qq"))
_DICTIONARY_BATCH, _RECORD_BATCH = 2, 3
_NOT_COMPRESSED = -1


@dataclass(frozen=True, slots=True)
class Body:
    """The bytes that a batch takes once decompressed (0 if it is not compressed), and the dictionary that it is of."""

    decompressed_bytes: int
    dictionary: int | None = None
    is_delta: bool = False


def read_body(metadata: Any, body: Any) -> Body | None:
    """Read the metadata of a message, None for a schema. Raises IndexError or struct.error if it is damaged."""
    message = _Table.root(memoryview(metadata))
    kind = message.byte(1)
    if kind == _RECORD_BATCH:
        return Body(_decompressed_bytes(message.table(2), memoryview(body)))
    if kind == _DICTIONARY_BATCH:
        header = message.table(2)
        size = _decompressed_bytes(header.table(1), memoryview(body))
        return Body(size, header.number(0), bool(header.byte(2)))
    return None


def _decompressed_bytes(batch: "_Table", body: memoryview) -> int:
    if not batch.at(3):  # the compression
        return 0
    size, buffers = 0, batch.reference(2)
    (count,) = _U32.unpack_from(batch.data, buffers)
    for number in range(count):
        offset, length = _BUFFER.unpack_from(batch.data, buffers + _U32.size + number * _BUFFER.size)
        if length:
            (decompressed,) = _I64.unpack_from(body, offset)
            size += length if decompressed == _NOT_COMPRESSED else abs(decompressed)
    return size


@dataclass(frozen=True, slots=True)
class _Table:
    data: memoryview
    place: int

    @classmethod
    def root(cls, data: memoryview) -> "_Table":
        return cls(data, _U32.unpack_from(data, 0)[0])

    def at(self, field: int) -> int:
        """Return the place of a field, 0 if it is absent."""
        table = self.place - _I32.unpack_from(self.data, self.place)[0]
        entry = _U16.size * (2 + field)
        if table < 0 or entry >= _U16.unpack_from(self.data, table)[0]:
            return 0
        offset = _U16.unpack_from(self.data, table + entry)[0]
        return self.place + offset if offset else 0

    def reference(self, field: int) -> int:
        place = self.at(field)
        return place + int(_U32.unpack_from(self.data, place)[0])

    def table(self, field: int) -> "_Table":
        return _Table(self.data, self.reference(field))

    def byte(self, field: int) -> int:
        place = self.at(field)
        return self.data[place] if place else 0

    def number(self, field: int) -> int:
        place = self.at(field)
        return int(_I64.unpack_from(self.data, place)[0]) if place else 0
