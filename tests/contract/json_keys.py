"""The keys of JSON documents with the types of their values, as lines of text."""

import re
from collections import Counter, defaultdict

# Objects whose keys are data, or are described elsewhere: a recipe with the names of Python.
CLOSED = re.compile(r"\.(attributes|differs|recipe|section)$|\.proposal\.reasons$")
_TYPES = {str: "string", bool: "boolean", int: "number", float: "number", type(None): "null", dict: "object"}


class Keys:
    """The keys of any number of documents of one command."""

    def __init__(self) -> None:
        self._types: dict[str, set[str]] = defaultdict(set)
        self._objects: Counter[str] = Counter()
        self._present: Counter[str] = Counter()

    def add(self, value: object, path: str = "") -> None:
        """Add a document, or a part of one at a path."""
        self._types[path].add("array" if isinstance(value, list) else _TYPES[type(value)])
        if isinstance(value, list):
            for one in value:
                self.add(one, f"{path}[]")
        elif isinstance(value, dict) and not CLOSED.search(path):
            self._objects[path] += 1
            for key, one in value.items():
                self._present[f"{path}.{key}"] += 1
                self.add(one, f"{path}.{key}")

    def lines(self) -> list[str]:
        """Return a line for each path: its types, and whether some objects leave it out."""
        return [
            f"{path or 'document'}: {' | '.join(sorted(types))}{self._optional(path)}"
            for path, types in sorted(self._types.items())
        ]

    def _optional(self, path: str) -> str:
        is_optional = path in self._present and self._present[path] < self._objects[path.rpartition(".")[0]]
        return ", optional" if is_optional else ""
