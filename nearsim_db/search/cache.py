"""A cache of limited size that threads may share."""

from collections import OrderedDict
from collections.abc import Iterable
from threading import Lock
from typing import Generic, TypeVar

Key = TypeVar("Key")
Value = TypeVar("Value")


class BoundedCache(Generic[Key, Value]):
    """Values by key, at most `capacity_bytes` of them; those unused for longest go first."""

    def __init__(self, capacity_bytes: int) -> None:
        self._capacity = capacity_bytes
        self._size = 0
        self._lock = Lock()
        self._kept: OrderedDict[Key, tuple[Value, int]] = OrderedDict()

    def get(self, key: Key) -> Value | None:
        """The value of a key, where it is here."""
        return self.get_many((key,))[0]

    def get_many(self, keys: Iterable[Key]) -> list[Value | None]:
        """The values of some keys, in their order, None for what is not here."""
        found: list[Value | None] = []
        with self._lock:
            for key in keys:
                entry = self._kept.get(key)
                if entry is None:
                    found.append(None)
                else:
                    self._kept.move_to_end(key)
                    found.append(entry[0])
        return found

    def put(self, key: Key, value: Value, size: int) -> None:
        """Keep a value of so many bytes, in place of the one before. What is larger than all the room is not kept."""
        with self._lock:
            before = self._kept.pop(key, None)
            self._size += size - (before[1] if before else 0)
            self._kept[key] = (value, size)
            while self._size > self._capacity:
                _, (_, dropped) = self._kept.popitem(last=False)
                self._size -= dropped

    def __len__(self) -> int:
        return len(self._kept)
