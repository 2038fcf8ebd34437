"""JSON arrays: what is read equals what `json` reads, in pieces of any size, and what is refused."""

import io
import json
import sys
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from nearsim_db.errors import InputError
from nearsim_db.readers import Fields, Source
from nearsim_db.readers.input_file import InputFile
from nearsim_db.readers.json_array import begin, elements, read_json
from nearsim_db.records import ReadDocument, Reject
from tests.builders.selection import examples

VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(max_size=9),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=3), inner, max_size=3),
    max_leaves=8,
)  # fmt: skip


def in_pieces(content: bytes, size: int) -> InputFile:
    pieces: Iterator[bytes] = (content[at : at + size] for at in range(0, len(content), size))
    return InputFile(Path("a.json"), begun=pieces)


@pytest.mark.slow("every size")
@examples(100)
@given(st.lists(VALUES, max_size=5), st.integers(1, 30), st.none() | st.integers(0, 3), st.booleans())
def test_arrays_are_read_in_pieces_of_any_size(
    values: list[object], size: int, indent: int | None, ascii_only: bool
) -> None:
    content = json.dumps(values, indent=indent, ensure_ascii=ascii_only).encode(errors="surrogatepass")
    found = list(elements(in_pieces(content, size)))
    # The decoder of pieces keeps what is not UTF-8, as a lone surrogate is, byte by byte.
    assert [value for _, value in found] == json.loads(content.decode("utf-8", "surrogateescape"))
    lines = [line for line, _ in found]
    assert lines == sorted(lines)


def test_objects_become_documents_with_their_lines(tmp_path: Path) -> None:
    path = tmp_path / "a.json"
    path.write_bytes(
        b'\xef\xbb\xbf\r\n [ {"id": 1, "text": "one",\n "n": 18446744073709551615},\n\n'
        b'  5, {"id": "two", "text": "caf\xff"}\n , {"text": "t"} ]\n'
    )
    first, second, third, fourth = Source([path])
    assert isinstance(first, ReadDocument) and isinstance(third, ReadDocument)
    assert (first.document.external_id, first.line) == ("1", 2)
    assert first.document.attributes == {"n": 18446744073709551615}
    assert second == Reject(str(path), 5, "not a JSON object")
    assert (third.document.body, third.replaced, third.line) == ("caf\ufffd", 1, 5)
    assert isinstance(fourth, Reject) and fourth.line == 6 and fourth.reason.startswith("no 'id'")


@pytest.mark.parametrize("content", [b"[]", b" [\n] \n", b"", b"\n"])
def test_an_empty_array_has_no_documents(tmp_path: Path, content: bytes) -> None:
    path = tmp_path / "a.json"
    path.write_bytes(content)
    assert list(Source([path])) == []


@pytest.mark.parametrize(
    ("content", "place"),
    [
        (b'[{"id": 1},\n{"id": 2}\n{"id": 3}]', "line 3; the 2 objects"),
        (b'[{"id": 1},\n{"id" 2}]' + b" " * 99, "line 2; the 1 objects"),
        (b'[{"id": 1}', "the end of the file"),
        (b'[{"id": "a', "line 1; the 0 objects"),
        (b'[{"id": 1}] {', "after the end"),
        (b"[" * 100_000, "nested"),
    ],
)
def test_an_invalid_array_ends_with_its_place(content: bytes, place: str) -> None:
    with pytest.raises(InputError, match=f"a.json .*{place}"):
        list(elements(in_pieces(content, 50)))


BEYOND_LIMITS: list[tuple[str, dict[str, Any], bytes]] = [
    ("longer than 4,000 bytes", {"limit": 4_000}, b'{"id": "' + rb"x\"]}" * 3_000 + b'"}'),
    ("more than 100 values", {"max_values": 100}, b'{"id": 1, "text": "[,{", "x": [' + b"[]," * 99 + b"1]}"),
    ("nested too deeply", {}, b'{"id": 1, "x": ' + b'[{"":' * 9_000 + b'""' + b"}]" * 9_000 + b"}"),
    ("more than 4,300 digits", {}, b'{"id": 1, "x": ' + b"9" * 5_000 + b"}"),
]


@pytest.mark.parametrize("size", [1, 50, 1 << 20])
@pytest.mark.parametrize(("reason", "limits", "value"), BEYOND_LIMITS)
def test_an_object_beyond_a_limit_is_one_reject(
    size: int, reason: str, limits: dict[str, Any], value: bytes
) -> None:
    wanted = b'{"id": "a", "text": "%s"}' % (b"[,{" * 60)
    file = in_pieces(b"[" + wanted + b",\n" + value + b",\n" + wanted + b",\n" + wanted + b"]", size)
    read = list(read_json(replace(file, **limits), Fields()))
    (reject,) = (one for one in read if isinstance(one, Reject))
    assert reason in reject.reason
    assert [one.line for one in read if one is not reject] == [1, 3, 4]


def test_an_object_beyond_the_limit_at_the_end_is_an_error() -> None:
    file = InputFile(Path("a.json"), limit=1000, begun=iter([b'[{"id": "', b"x" * 3_000_000]))
    with pytest.raises(InputError, match=r"longer than 1,000 bytes, .* and the file ends in it"):
        list(read_json(file, Fields()))


def test_only_a_part_of_an_array_is_in_memory() -> None:
    held = []

    def pieces() -> Iterator[bytes]:
        yield b"["
        for number in range(1000):
            held.append(number)
            yield b'%s{"id": %d, "text": "%s"}' % (b"," if number else b"", number, b"x" * 1000)
        yield b"]"

    is_array, file = begin(InputFile(Path("a.json"), begun=pieces()))
    assert is_array
    for at, (_, value) in enumerate(elements(file)):
        assert isinstance(value, dict) and value["id"] == at
        assert len(held) <= at + 3


@pytest.mark.parametrize("content", [b'[{"id": 1, "text": "t"}]', b'{"id": 1, "text": "t"}\n'])
def test_standard_input_is_an_array_or_lines(monkeypatch: pytest.MonkeyPatch, content: bytes) -> None:
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(content)))
    (read,) = Source([Path("-")])
    assert isinstance(read, ReadDocument) and read.document.external_id == "1"
