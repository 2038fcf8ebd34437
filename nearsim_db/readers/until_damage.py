"""Records of files up to the first one that cannot be read further."""

from collections.abc import Iterator
from itertools import chain

from nearsim_db.errors import InputError
from nearsim_db.records import ReadDocument, Reject

_MOST_REJECTS = 1_000


class UntilDamage:
    """The records of a source up to the first read error, which is kept in `damage`."""

    def __init__(self, records: Iterator[ReadDocument | Reject]) -> None:
        self._records = records
        self._begun: list[ReadDocument | Reject] = []
        self.damage: InputError | None = None

    def has_documents(self) -> bool:
        """Read up to the first document; whether there is one, or more rejects than are kept in memory."""
        try:
            for record in self._records:
                self._begun.append(record)
                if isinstance(record, ReadDocument) or len(self._begun) == _MOST_REJECTS:
                    return True
        except InputError as error:
            self.damage = error
        return False

    def __iter__(self) -> Iterator[ReadDocument | Reject]:
        try:
            yield from chain(self._begun, self._records)
        except InputError as error:
            self.damage = error
