"""Which optional fields the records read have, and which of their other fields look like a publication date."""

import re
import shlex
from collections import Counter

from nearsim_db.readers.document_maker import parsed_instant
from nearsim_db.records import Document

_DATE_NAME = re.compile(
    "date|(date)?time(stamp)?|(pub|publish|publication|published|create|created|post|posted|issue|issued)(date|time|at|on)"
    "|published|created|posted|issued|date(published|created|posted|issued)"
)
_SEPARATORS = dict.fromkeys(map(ord, "_- .:"))
_UNDATED_READ = 1_000  # records without a date whose other fields are looked at


class FieldUse:
    """Notes whether any document has a source or a publication date."""

    def __init__(self) -> None:
        self.has_source = self.has_date = False
        self._undated = 0
        self._dates: Counter[str] = Counter()

    def note(self, document: Document) -> None:
        """Note the fields of a document."""
        self.has_source = self.has_source or bool(document.source and document.source.strip())
        self.has_date = self.has_date or document.published_at is not None
        if self.has_date or self._undated == _UNDATED_READ:
            return
        self._undated += 1
        self._dates.update(name for name, value in document.attributes.items() if _is_date(name, value))

    def hints(self) -> list[str]:
        """Return a hint if no document has a publication date and another field holds dates."""
        if self.has_date or not self._dates:
            return []
        ((name, _),) = self._dates.most_common(1)
        return [
            f"no record has a publication date, but {name!r} holds dates; to use them: "
            f"--published-field {shlex.quote(name)}"
        ]


def _is_date(name: str, value: object) -> bool:
    if not _DATE_NAME.fullmatch(name.casefold().translate(_SEPARATORS)):
        return False
    try:
        return parsed_instant(value) is not None
    except ValueError:
        return False
