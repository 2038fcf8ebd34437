"""A thread-safe cache bounded by bytes."""

from collections.abc import Iterable
from threading import Lock
from typing import Generic, TypeVar

from cachetools import LRUCache

Key = TypeVar("Key")
Value = TypeVar("Value")


class BoundedCache(Generic[Key, Value]):
    """Values by key, at most `capacity_bytes` of them; the least recently used are dropped first."""

    def __init__(self, capacity_bytes: int) -> None:
        self._capacity = capacity_bytes
        self._lock = Lock()
        self._entries: LRUCache[Key, tuple[Value, int]] = LRUCache(capacity_bytes, lambda entry: entry[1])

    def get(self, key: Key) -> Value | None:
        """Return the value of a key, None if it is not cached."""
        return self.get_many((key,))[0]

    def get_many(self, keys: Iterable[Key]) -> list[Value | None]:
        """Return the values of keys, in their order, None for those not cached."""
        with self._lock:
            entries = [self._entries.get(key) for key in keys]
        return [None if entry is None else entry[0] for entry in entries]

    def put(self, key: Key, value: Value, size: int) -> None:
        """Cache a value of `size` bytes in place of an older one. A value larger than the capacity is not cached."""
        with self._lock:
            self._entries.pop(key, None)
            if size <= self._capacity:
                self._entries[key] = (value, size)

    def __len__(self) -> int:
        return len(self._entries)
