"""Write nearsim_db/similarity/text/look_alikes.py from confusables.txt of Unicode's security mechanisms (UTS #39).

python -m docs.look_alikes confusables.txt

The module lists letters of any script that have case, that NFKC keeps, and whose skeleton is also the skeleton of a
Latin letter.
"""

import re
import string
import sys
import unicodedata
from pathlib import Path

MODULE = Path(__file__).parent.parent / "nearsim_db" / "similarity" / "text" / "look_alikes.py"
_ENTRY = re.compile(r"^(?P<source>[0-9A-F]+)\s*;\s*(?P<target>[0-9A-F ]+?)\s*;", re.MULTILINE)


def look_alikes(table: str) -> dict[str, str]:
    """Return the letters that look like each Latin letter."""
    prototypes = {
        chr(int(entry["source"], 16)): "".join(chr(int(code, 16)) for code in entry["target"].split())
        for entry in _ENTRY.finditer(table)
    }
    latin: dict[str, list[str]] = {}
    for letter in string.ascii_letters:
        latin.setdefault(_skeleton(letter, prototypes), []).append(letter)

    alike: dict[str, list[str]] = {letter: [] for letter in string.ascii_letters}
    for character in sorted(filter(_is_letter_with_case, prototypes)):
        letters = latin.get(_skeleton(character, prototypes), [])
        # I and l have the same skeleton: take the letter with the same case.
        letters = [
            letter for letter in letters if len(letters) == 1 or letter.isupper() == character.isupper()
        ]
        for letter in letters:
            alike[letter].append(character)
    return {letter: "".join(characters) for letter, characters in alike.items() if characters}


def _is_letter_with_case(character: str) -> bool:
    is_kept = unicodedata.normalize("NFKC", character) == character
    return is_kept and not character.isascii() and unicodedata.category(character) in ("Lu", "Ll", "Lt")


def _skeleton(character: str, prototypes: dict[str, str]) -> str:
    decomposed = unicodedata.normalize("NFD", character)
    return unicodedata.normalize("NFD", "".join(prototypes.get(part, part) for part in decomposed))


def render(table: str) -> str:
    """Return the text of the module for a table of confusable characters."""
    version = re.search(r"^# Version: (?P<version>\S+)", table, re.MULTILINE)
    if version is None:
        raise ValueError("the table does not say its version")
    lines = [f'    "{letter}": "{characters}",' for letter, characters in look_alikes(table).items()]
    return "\n".join(
        [
            f'"""Letters that look like Latin ones, from confusables.txt of Unicode {version["version"]}.',
            "",
            "Written by docs/look_alikes.py.",
            '"""',
            "",
            f'UNICODE_VERSION = "{version["version"]}"',
            "LOOK_ALIKES = {",
            *lines,
            "}",
            "",
        ]
    )


if __name__ == "__main__":
    MODULE.write_text(render(Path(sys.argv[1]).read_text("utf-8-sig")), "utf-8")
