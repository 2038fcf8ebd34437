"""Mail: mbox files and single messages."""

import re
from collections.abc import Iterator
from dataclasses import replace
from email import message_from_bytes
from email.errors import MessageError
from email.header import decode_header, make_header
from email.message import Message
from email.parser import HeaderParser

from nearsim_db.errors import InputError
from nearsim_db.readers.contract import Row
from nearsim_db.readers.decoding import checked_encoding, in_utf8
from nearsim_db.readers.input_file import InputFile
from nearsim_db.similarity.text.markup import strip_html

# After an empty line, this begins the next message of an mbox file.
_FROM = b"From "
_QUOTED_FROM = re.compile(rb"^>(>*From )", re.MULTILINE)
# Decoding a header takes quadratic time.
_MAX_ENCODED_CHARACTERS = 20_000
_HEAD_END = re.compile(rb"\r?\n\r?\n")


def read_mbox(file: InputFile) -> Iterator[tuple[int, Row | str]]:
    """Yield the messages of an mbox file, each with the line on which it begins.

    Raises InputError for a file that does not begin with a message.
    """
    content: list[bytes] = []
    begin = size = 0
    is_blank = True  # whether the previous line was blank

    for number, line in replace(file, names_encodings=True).lines():
        if line is not None and is_blank and line.startswith(_FROM):
            if begin:
                yield begin, _row_of_lines(content, size, file, begin)
            content, begin, size = [], number, 0
        elif not begin:
            if line is None or line.strip():
                raise InputError(f"{file.name} is not an mbox file: it does not begin with 'From '")
        else:
            size += file.limit + 1 if line is None else len(line) + 1
            if size <= file.limit and line is not None:
                content.append(line)
        is_blank = line is not None and not line.strip()
    if begin:
        yield begin, _row_of_lines(content, size, file, begin)


def _row_of_lines(lines: list[bytes], size: int, file: InputFile, begin: int) -> Row | str:
    if size > file.limit:
        return file.too_long
    return _row(_QUOTED_FROM.sub(rb"\1", b"\n".join(lines)), file, f"{file.name}:{begin}")


def read_message(file: InputFile) -> Iterator[tuple[int, Row | str]]:
    """Yield the one message of a file; nothing if the file is empty. Line 0 means the whole file."""
    content = replace(file, names_encodings=True).content()
    if content is None:
        yield 0, file.too_long
    elif content:
        yield 0, _row(content, file, file.name)


def _row(content: bytes, file: InputFile, place: str) -> Row | str:
    """Return the values of a message, with its plain text or, if it has none, the text of its HTML.

    `place` becomes the id of a message that has none.
    """
    head = _HEAD_END.split(content, maxsplit=1)[0]
    try:
        message = message_from_bytes(content)
        if not message.keys():
            return "not a message: it has no header"
        # The parser of bytes would replace characters of headers that are not ASCII.
        headers = message if head.isascii() else HeaderParser().parsestr(head.decode("utf-8", "replace"))
        text = _text(message, file.encoding or "utf-8")
    except Exception as error:  # the parser raises any kind of error for damaged messages
        return f"not a message that can be read ({type(error).__name__}: {error})"
    names = {"title": "Subject", "published_at": "Date", "from": "From", "to": "To"}
    row = {"id": (_header(headers, "Message-ID") or "").strip("<> ") or place, "text": text}
    row |= {name: _header(headers, header) for name, header in names.items()}
    return {name: value for name, value in row.items() if value is not None or name in ("title", "text")}


def _header(message: Message, name: str) -> str | None:
    """Return a header as one line; it is decoded unless it is very long or its encoding is invalid."""
    value: str | None = message[name]
    if value is None:
        return None
    try:
        is_encoded = "=?" in value and len(value) <= _MAX_ENCODED_CHARACTERS
        text = str(make_header(decode_header(value))) if is_encoded else value
    except (LookupError, ValueError, MessageError):
        text = value
    return " ".join(text.split())


def _text(message: Message, encoding: str) -> str | None:
    """Return the first plain text that is not an attachment, or else the text of the first HTML part, or else None."""
    shown = [
        part
        for part in message.walk()
        if not part.is_multipart() and part.get_content_disposition() != "attachment"
    ]
    plain = [part for part in shown if part.get_content_type() == "text/plain"]
    html = [part for part in shown if part.get_content_type() == "text/html"]
    for part in (plain or html)[:1]:
        payload = part.get_payload(decode=True)
        assert isinstance(payload, bytes)
        text = b"".join(in_utf8([payload], _encoding_of(part, encoding))).decode("utf-8", "surrogateescape")
        return strip_html(text) if html and not plain else text.replace("\r\n", "\n")
    return None


def _encoding_of(part: Message, otherwise: str) -> str:
    """Return the encoding that a part names.

    Returns `otherwise` if the part names none, or names ASCII, which many programs write for any encoding.
    """
    try:
        encoding = checked_encoding(part.get_content_charset("us-ascii"))
    except InputError:
        return otherwise
    return otherwise if encoding == "ascii" else encoding
