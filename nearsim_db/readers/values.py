"""How values of records are called and shown in the reasons of rejects."""

_SHOWN_CHARACTERS = 60
_KINDS: dict[type, str] = {
    bool: "true or false",
    int: "a number",
    float: "a number",
    list: "an array",
    dict: "an object",
    str: "a string",
    type(None): "null",
}


def kind(value: object) -> str:
    """What a value is, in the words of JSON."""
    return _KINDS.get(type(value), type(value).__name__)


def shown(value: object) -> str:
    """A value for a message: short, on one line, printable."""
    written = ascii(value)
    return written if len(written) <= _SHOWN_CHARACTERS else written[:_SHOWN_CHARACTERS] + "..."
