"""A cache with a limited total size, which threads may share."""

from collections import OrderedDict
from collections.abc import Iterable
from threading import Lock
from typing import Generic, TypeVar

Key = TypeVar("Key")
Value = TypeVar("Value")


class BoundedCache(Generic[Key, Value]):
    """Values by key, of a total size of at most `capacity`. The least recently used values are dropped first."""

    def __init__(self, capacity: int) -> None:
        self._capacity = capacity
        self._free = capacity
        self._lock = Lock()
        self._entries: OrderedDict[Key, tuple[Value, int]] = OrderedDict()

    def get(self, key: Key) -> Value | None:
        """Return the value of a key, or None if it is not cached."""
        return self.get_many((key,))[0]

    def get_many(self, keys: Iterable[Key]) -> list[Value | None]:
        """Return the values of keys, in the order of the keys, with None for keys that are not cached."""
        entries, values = self._entries, list[Value | None]()
        with self._lock:
            for key in keys:
                entry = entries.get(key)
                if entry is None:
                    values.append(None)
                else:
                    entries.move_to_end(key)
                    values.append(entry[0])
        return values

    def put(self, key: Key, value: Value, size: int) -> None:
        """Cache a value, replacing the previous value of the key. A value larger than the capacity is not cached."""
        with self._lock:
            if key in self._entries:
                self._free += self._entries.pop(key)[1]
            if size <= self._capacity:
                self._entries[key] = (value, size)
                self._free -= size
            while self._free < 0:
                self._free += self._entries.popitem(last=False)[1][1]

    def clear(self) -> None:
        """Drop all values."""
        with self._lock:
            self._entries.clear()
            self._free = self._capacity

    def __len__(self) -> int:
        return len(self._entries)
