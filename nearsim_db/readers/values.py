"""Names and short representations of values, for the reasons of rejects."""

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
    """Return the JSON type name of a value for messages, such as 'a string'."""
    return _KINDS.get(type(value), type(value).__name__)


def shown(value: object) -> str:
    """Format a value for a message: short, on one line, printable."""
    written = ascii(value)
    return written if len(written) <= _SHOWN_CHARACTERS else written[:_SHOWN_CHARACTERS] + "..."
