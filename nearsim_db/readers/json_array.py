"""JSON files: an array of objects or texts, possibly inside an object, parsed piece by piece; or JSON lines."""

import codecs
import json
import re
from collections.abc import Iterator
from dataclasses import dataclass, replace
from itertools import chain
from json.scanner import make_scanner

from nearsim_db.errors import InputError
from nearsim_db.readers.contract import Fields
from nearsim_db.readers.document_maker import DocumentMaker
from nearsim_db.readers.input_file import InputFile
from nearsim_db.readers.jsonl import fault, read_jsonl, too_many_digits
from nearsim_db.records import ReadDocument, Reject

_BLANKS = re.compile(r"[ \t\r\n]*")
_COMMA = re.compile(r"[ \t\r\n]*,[ \t\r\n]*")
# Parsing is not strict: strings may contain control characters.
_scan = make_scanner(json.JSONDecoder(strict=False))  # type: ignore[arg-type]
_BLANK_BYTES = b" \t\r\n"
_OF_NUMBERS = "0123456789.eE+-"
# Parsing an incomplete value fails at its end or at the beginning of its last token; the longest tokens are \uXXXX and
# -Infinity.
_LONGEST_TOKEN = 16
_REST_OF_STRING = r'[^"\\]*+(?:\\.[^"\\]*+)*+'
_IN_STRING = re.compile(_REST_OF_STRING, re.DOTALL)
_MARK = re.compile(r'["\[\]{},]')
_STRING_OR_MARK = re.compile(rf'"{_REST_OF_STRING}"?|[\[\]{{}},]', re.DOTALL)


@dataclass(frozen=True, slots=True)
class Unparsed:
    """An element that was not parsed because it exceeds a limit."""

    reason: str


def read_json(file: InputFile, fields: Fields) -> Iterator[ReadDocument | Reject]:
    """Read a file that is one JSON array of objects or texts, each of which is a document, or else JSON lines.

    The line of a document is the line on which its element begins. Raises InputError if the array is not valid JSON,
    after the valid elements before were yielded. Also raises InputError if the file is one object with an array of
    objects and `file.records` does not name the array.
    """
    is_array, begun = begin(file)
    if not is_array:
        yield from read_jsonl(begun, fields)
        return

    name = file.name
    maker = DocumentMaker(name, fields)
    for line, value in elements(begun):
        match value:
            case dict():
                yield maker.make(value, line)
            case str():
                yield maker.make({maker.body_names[0]: value}, line)
            case Unparsed():
                yield Reject(name, line, value.reason)
            case _:
                yield Reject(name, line, "not a JSON object")


def begin(file: InputFile) -> tuple[bool, InputFile]:
    """Return whether a file contains a JSON array of records, and the file itself, which can be read once."""
    pieces = file.pieces()
    start = b""
    for piece in pieces:
        start += piece
        if start.removeprefix(codecs.BOM_UTF8).strip(_BLANK_BYTES):
            break
    content = start.removeprefix(codecs.BOM_UTF8).lstrip(_BLANK_BYTES)
    is_array = file.records is not None or content.startswith(b"[")
    # In JSON lines, the first line is a whole object.
    if not is_array and b"\n" in content and not content.partition(b"\n")[0].rstrip().endswith(b"}"):
        _refuse_object(replace(file, begun=iter((start,))))
    return is_array, replace(file, begun=chain((start,), pieces))


def _refuse_object(file: InputFile) -> None:
    """Raise InputError if a file begins with an object that has an array of objects under a key."""
    try:
        key = _Text(file).find_array()
    except InputError:  # the file is not an object, or its beginning has no such key
        return
    raise InputError(
        f"{file.name} is one JSON object; if the array in {key!r} has the records: --records {key}"
    )


def elements(file: InputFile) -> Iterator[tuple[int, object]]:
    """Yield the elements of an array, each with the line on which it begins; `Unparsed` for one that exceeds a limit.

    If `file.records` is set, the array is at this path in an object, and what follows the array is not read. Raises
    InputError for invalid JSON.
    """
    text = _Text(file)
    if file.records is not None:
        text.enter(file.records)

    text.skip("[")
    if text.next_character() == "]":
        text.skip("]")
    else:
        while True:
            # First the elements that have been read completely, then one for which more of the file may be read.
            yield from text.values()
            yield text.line, text.value()
            if text.next_character() != ",":
                text.skip("]")
                break
            text.skip(",")

    if file.records is None and text.next_character():
        raise text.error("there is text after the end of the array")


class _Text:
    """The text of a file from the next value on; the text before it is dropped."""

    def __init__(self, file: InputFile) -> None:
        self._file = file
        self._pieces = file.pieces()
        self._decode = codecs.getincrementaldecoder("utf-8-sig")("surrogateescape").decode
        self._parse = json.JSONDecoder(strict=False).raw_decode
        self._text = ""
        self._at = 0
        self._values = 0
        self._is_dense = False  # whether the text may contain an element with too many values
        self.line = 1

    def next_character(self) -> str:
        """Return the next character that is not blank, without passing it; an empty string at the end."""
        while True:
            blanks = _BLANKS.match(self._text, self._at)
            self._advance(blanks.end() if blanks else self._at)
            if self._at < len(self._text) or not self._read():
                return self._text[self._at : self._at + 1]

    def skip(self, character: str) -> None:
        """Pass the next character that is not blank, and the blanks after it.

        Raises InputError if it is not `character`.
        """
        if self.next_character() != character:
            shown = repr(self.next_character()) if self.next_character() else "the end of the file"
            raise self.error(f"{shown} instead of {character!r}")
        self._advance(self._at + 1)
        self.next_character()

    def enter(self, path: str) -> None:
        """Pass everything before the array at a path of keys. Raises InputError if there is no array at this path."""
        for name in path.split("."):
            for key in self._keys():
                if key == name:
                    break
                self.value()
            else:
                raise InputError(f"{self._file.name} has no {path!r}, which --records names")
        if self.next_character() != "[":
            raise InputError(f"{path!r}, which --records names, is not an array in {self._file.name}")
        self._values = 0

    def find_array(self) -> str:
        """Return the first key of an object whose value is an array of objects. Raises InputError if there is none."""
        for key in self._keys():
            if self.next_character() == "[":
                self.skip("[")
                if self.next_character() == "{":
                    return str(key)
                break
            self.value()
        raise self.error("no array of objects")

    def _keys(self) -> Iterator[object]:
        """Yield the keys of an object; after each key, the caller passes its value."""
        self.skip("{")
        while self.next_character() == '"':
            key = self.value()
            self.skip(":")
            yield key
            if self.next_character() == ",":
                self.skip(",")

    def value(self) -> object:
        """Parse and pass a value."""
        while True:
            if self._is_dense and self._has_too_many_values():
                return self._pass_unparsed(self._file.too_many)

            try:
                value, end = self._parse(self._text, self._at)
            except json.JSONDecodeError as error:
                if len(self._text) - self._at > self._file.limit:
                    return self._pass_unparsed(self._file.too_long)
                # The value may merely be incomplete, because the text read so far ends in it.
                is_cut = error.msg.startswith("Unterminated") or error.pos >= len(self._text) - _LONGEST_TOKEN
                if not (is_cut and self._read()):
                    raise self.error(fault(error)) from error
            except ValueError:
                return self._pass_unparsed(too_many_digits())
            except RecursionError:
                return self._pass_unparsed("the JSON is nested too deeply")
            else:
                # A number may continue in the next piece.
                is_whole = end < len(self._text) and self._text[end] not in _OF_NUMBERS
                if is_whole or not self._read():
                    if end - self._at > self._file.limit:
                        value = Unparsed(self._file.too_long)
                    self._advance(end)
                    self._values += 1
                    return value

    def _has_too_many_values(self) -> bool:
        depth = count = 0
        for token in _STRING_OR_MARK.finditer(self._text, self._at):
            mark = token[0]
            depth += (mark in "[{") - (mark in "]}")
            count += mark in ",[{"
            if depth <= 0 and mark in "]},":
                return False
            if count > self._file.max_values:
                return True
        return False

    def _pass_unparsed(self, reason: str) -> Unparsed:
        """Pass a value of any size, looking only at brackets and strings. Raises InputError if the file ends in it."""
        depth, in_string = 0, False
        while True:
            token = (_IN_STRING.match if in_string else _MARK.search)(self._text, self._at)
            end = token.end() if token else len(self._text)
            # The mark is empty if none follows in the text read so far.
            mark = '"' * self._text.startswith('"', end) if in_string else token[0] if token else ""

            if in_string and mark:
                in_string, end = False, end + 1
            elif mark == '"':
                in_string = True
            elif not depth and mark in ("]", "}", ","):
                return Unparsed(reason)
            elif mark:
                depth += (mark in "[{") - (mark in "]}")
            self._advance(end)
            if not mark and not self._read():
                raise self.error(f"{reason}, and the file ends in it")

    def values(self) -> Iterator[tuple[int, object]]:
        """Parse and pass values that are followed by commas, as long as they are complete and valid."""
        text, at, line, limit = self._text, self._at, self.line, self._file.limit
        size = 0 if self._is_dense else len(text)
        newline = text.find("\n", at)

        try:
            while at < size:
                value, end = _scan(text, at)
                if not (comma := _COMMA.match(text, end)) or comma.end() == size or end - at > limit:
                    return
                yield line, value
                self._values += 1
                at = self._at = comma.end()
                if 0 <= newline < at:
                    line = self.line = line + text.count("\n", newline, at)
                    newline = text.find("\n", at)
        except (StopIteration, ValueError, RecursionError):
            return  # `value` reads more of the file, or raises the error

    def error(self, reason: str) -> InputError:
        """Return the error with which reading ends."""
        return InputError(
            f"{self._file.name} is not valid JSON: {reason}, in the value that begins on line {self.line:,}; the "
            f"{self._values:,} objects before it were read"
        )

    def _advance(self, end: int) -> None:
        self.line += self._text.count("\n", self._at, end)
        self._at = end

    def _read(self) -> bool:
        """Read at least one piece, and at least as much as is in memory; return whether there was anything to read."""
        kept = [self._text[self._at :]]
        wanted = len(kept[0])
        size = 0
        # Double the text each time, because a long value is parsed from its beginning every time.
        for piece in self._pieces:
            kept.append(self._decode(piece))
            size += len(kept[-1])
            if size > wanted:
                break
        text = self._text = "".join(kept)
        self._at, max_values = 0, self._file.max_values
        self._is_dense = len(text) > 2 * max_values and sum(map(text.count, ",[{")) > max_values
        return size > 0
