"""A recipe: every parameter of a profile as plain data, read from TOML, checked, refused with the reason."""

import difflib
import re
import tomllib
from collections.abc import Iterable
from pathlib import Path
from typing import Annotated, Any, Literal, get_args, get_origin

import msgspec
from msgspec import Meta, Struct

from nearsim_db.errors import RecipeError

Positive = Annotated[int, Meta(ge=1)]

DEFAULT_RECALL = 0.99

_UNIT_SECONDS = {"minute": 60, "hour": 3_600, "day": 86_400, "week": 604_800}
_LONGEST_AGE_DAYS = 100_000  # PostgreSQL's calendar goes back some 2.4 million
_LONGEST_AGE_SECONDS = _LONGEST_AGE_DAYS * 86_400


class _Section(Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """What all sections share: no unknown keys, no change after it is made."""


class Normalise(_Section, frozen=True):
    """How a text is made comparable before it is cut up."""

    unicode: Literal["none", "nfc", "nfkc"] = "nfkc"
    case: Literal["none", "lower", "casefold"] = "casefold"
    whitespace: Literal["none", "collapse"] = "collapse"
    html: bool = False


class Shingle(_Section, frozen=True):
    """What a text is cut into; `k` units make one shingle (a bag of words has one word a shingle)."""

    scheme: Literal["char", "word", "bag", "sentence"] = "word"
    k: Annotated[int, Meta(ge=1, le=1000)] = 3
    tokens: Literal["whitespace", "unicode", "ascii"] = "unicode"
    stopwords: str | tuple[str, ...] = "none"
    stem: str = "none"
    min_token_length: Annotated[int, Meta(ge=1, le=100)] = 1


class Hash(_Section, frozen=True):
    """The base hash that makes a shingle's id."""

    base: Literal["poly64", "crc32", "djb2a"] = "poly64"


class Sketch(_Section, frozen=True):
    """The sketch family, its size and seed; `functions` is minhash's own option, prime32 by default."""

    family: Literal["fast_similarity", "minhash", "bottom_k"] = "fast_similarity"
    k: Annotated[int, Meta(ge=1, le=4096)] = 128
    seed: Annotated[int, Meta(ge=0, le=2**63 - 1)] = 1
    functions: Literal["prime32", "java32"] | None = None

    def __post_init__(self) -> None:
        if self.family == "minhash" and self.functions is None:
            msgspec.structs.force_setattr(self, "functions", "prime32")


class Bands(_Section, frozen=True):
    """How the sketch is cut into bands: chosen for `recall` (0.99 if nothing is given), or `count` and `rows`."""

    recall: Annotated[float, Meta(gt=0, lt=1)] | None = None
    count: Annotated[int, Meta(ge=1, le=256)] | None = None
    rows: Positive | None = None
    hash: Literal["mix64", "xor", "djb2a-joined"] = "mix64"

    def __post_init__(self) -> None:
        if self.recall is None and self.count is None and self.rows is None:
            msgspec.structs.force_setattr(self, "recall", DEFAULT_RECALL)


class Match(_Section, frozen=True):
    """When two documents are a pair; `bucket_limit` 0 means no limit."""

    threshold: Annotated[float, Meta(gt=0, le=1)] = 0.7
    min_shared_bands: Annotated[int, Meta(ge=1, le=256)] = 1
    verify: Literal["exact", "estimate"] = "exact"
    bucket_limit: Annotated[int, Meta(ge=0, le=2**31 - 1)] = 64


class ClusterRules(_Section, frozen=True):
    """How pairs tie documents together and which one stays."""

    linkage: Literal["connected", "representative"] = "connected"
    keep: str = "earliest"
    numbers_differ: Literal["link", "keep-apart"] = "link"


class Retain(_Section, frozen=True):
    """How long documents stay in the index, by published_at, else by created_at."""

    age: str = "none"

    @property
    def seconds(self) -> int | None:
        """The age in seconds, a day having 24 hours; None where documents stay for good."""
        return retained_seconds(self.age)


class Recipe(_Section, frozen=True):
    """All parameters of a profile, with their defaults. The key names are an interface."""

    fields: tuple[Literal["title", "body"], ...] = ("title", "body")
    normalise: Normalise = Normalise()
    shingle: Shingle = Shingle()
    hash: Hash = Hash()
    sketch: Sketch = Sketch()
    bands: Bands = Bands()
    match: Match = Match()
    cluster: ClusterRules = ClusterRules()
    retain: Retain = Retain()

    def __post_init__(self) -> None:
        _check_fields(self.fields)
        _check_bands(self.bands, self.sketch, self.match)
        _check_tokens(self.shingle)
        _check_characters((*self.shingle.stopwords, self.shingle.stem, self.cluster.keep))
        keep_policy(self.cluster.keep)
        retained_seconds(self.retain.age)
        if self.sketch.functions is not None and self.sketch.family != "minhash":
            raise RecipeError(
                f"sketch.functions belongs to the family minhash, not to {self.sketch.family}; leave it out"
            )


def parse(text: str, *, origin: str = "the recipe") -> Recipe:
    """The recipe that a TOML document describes; keys left out have their defaults.

    Raises RecipeError for broken TOML, an unknown key or an impossible value, naming the key and the remedy.
    """
    try:
        return from_mapping(tomllib.loads(text))
    except tomllib.TOMLDecodeError as error:
        raise RecipeError(f"{origin} is not valid TOML: {error}") from error
    except RecipeError as error:
        raise RecipeError(f"{origin}: {error}") from error


def load(path: Path) -> Recipe:
    """The recipe in a TOML file."""
    try:
        text = path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise RecipeError(f"cannot read the recipe {path}: {error}") from error
    return parse(text, origin=str(path))


def from_mapping(data: dict[str, Any]) -> Recipe:
    """The recipe that nested dictionaries describe (TOML, or the JSON stored with a generation)."""
    _refuse_unknown_keys(data, Recipe, "")
    try:
        return msgspec.convert(data, Recipe)
    except msgspec.ValidationError as error:
        raise RecipeError(_readable(str(error), data)) from error


def to_mapping(recipe: Recipe) -> dict[str, Any]:
    """The whole recipe as nested dictionaries, every default spelled out."""
    mapping = msgspec.to_builtins(recipe)
    assert isinstance(mapping, dict)
    return {
        section: {key: value for key, value in values.items() if value is not None}
        if isinstance(values, dict)
        else values
        for section, values in mapping.items()
    }


def to_toml(recipe: Recipe) -> str:
    """The whole recipe as a TOML document that `parse` reads back."""
    mapping = to_mapping(recipe)
    lines = [f"{key} = {_toml_value(value)}" for key, value in mapping.items() if not isinstance(value, dict)]
    for section, values in mapping.items():
        if isinstance(values, dict):
            lines += ["", f"[{section}]", *(f"{key} = {_toml_value(value)}" for key, value in values.items())]
    return "\n".join([*lines, ""])


def override(recipe: Recipe, settings: Iterable[str]) -> Recipe:
    """The recipe with `key.path=value` settings applied, as the command line gives them.

    A value is read as TOML (`5`, `0.8`, `true`, `["a", "b"]`); what is not TOML is taken as a string.
    Giving `bands.count` and `bands.rows` takes the place of `bands.recall`, and the other way round.
    """
    data = to_mapping(recipe)
    given = dict(_split_setting(setting) for setting in settings)
    bands = data["bands"]
    if "bands.recall" in given:
        bands.pop("count", None), bands.pop("rows", None)
    if "bands.count" in given or "bands.rows" in given:
        bands.pop("recall", None)
    for path, value in given.items():
        section, _, key = path.rpartition(".")
        target = data if not section else data.setdefault(section, {})
        if not isinstance(target, dict):
            raise RecipeError(f"--set {path}: {section} is not a section of a recipe")
        target[key] = value
    if "sketch.family" in given and given["sketch.family"] != "minhash" and "sketch.functions" not in given:
        data["sketch"].pop("functions", None)
    return from_mapping(data)


def keep_policy(keep: str) -> tuple[str, tuple[str, ...]]:
    """The keep policy's name and, for `source:A,B,C`, the sources in order of preference."""
    if keep in ("earliest", "latest", "longest"):
        return keep, ()
    name, colon, rest = keep.partition(":")
    sources = tuple(part.strip() for part in rest.split(",") if part.strip())
    if name == "source" and colon and sources:
        return name, sources
    raise RecipeError(f"cluster.keep is {keep!r}; it is earliest, latest, longest or source:A,B,C")


def retained_seconds(age: str) -> int | None:
    """The seconds of an age such as "30 days", None for "none". Raises RecipeError for what is no age."""
    if age == "none":
        return None
    found = re.fullmatch(r"(?P<number>[0-9]{1,9}) (?P<unit>minute|hour|day|week)s?", age)
    if found is None:
        raise RecipeError(
            f'retain.age is {age!r}; it is none, or a whole number of minutes, hours, days or weeks, as in "30 days"'
        )
    seconds = int(found["number"]) * _UNIT_SECONDS[found["unit"]]
    if not 0 < seconds <= _LONGEST_AGE_SECONDS:
        raise RecipeError(
            f"retain.age is {age!r}; it must be at least 1 minute and at most {_LONGEST_AGE_DAYS:,} days; "
            "for no limit it is none"
        )
    return seconds


def _toml_value(value: object) -> str:
    """JSON's numbers, booleans, arrays and strings are TOML's too, except that TOML wants DEL escaped."""
    return msgspec.json.encode(value).decode().replace("\x7f", "\\u007f")


def _split_setting(setting: str) -> tuple[str, Any]:
    path, equals, text = setting.partition("=")
    if not equals or not path.strip():
        raise RecipeError(f"--set takes key=value, as in --set match.threshold=0.8; this is {setting!r}")
    try:
        read = tomllib.loads(f"value = {text}")
    except tomllib.TOMLDecodeError:
        read = {}
    return path.strip(), read["value"] if read.keys() == {"value"} else text.strip()


def _refuse_unknown_keys(data: dict[str, Any], struct: type[Struct], prefix: str) -> None:
    known = {field.name: field for field in msgspec.structs.fields(struct)}
    for key, value in data.items():
        if key not in known:
            near = difflib.get_close_matches(key, known, n=1)
            hint = f"did you mean {prefix}{near[0]}?" if near else f"it can be {', '.join(known)}"
            raise RecipeError(f"unknown key {prefix}{key}: this version does not have it; {hint}")
        section = known[key].type
        if isinstance(section, type) and issubclass(section, Struct):
            if not isinstance(value, dict):
                raise RecipeError(f"{key} is a section: write [{key}] and its keys below it")
            _refuse_unknown_keys(value, section, f"{prefix}{key}.")


def _readable(message: str, data: dict[str, Any]) -> str:
    """msgspec says 'Expected `int` >= 1 - at `$.shingle.k`'; we say the key first, and the value or the choices."""
    found = re.fullmatch(r"(?P<what>.*?) - at `\$\.?(?P<key>[^`]*)`", message, re.DOTALL)
    if found is None:
        return message
    value: Any = data
    kind: Any = Recipe
    for name in found["key"].partition("[")[0].split("."):
        value = value[name]
        kind = next(field.type for field in msgspec.structs.fields(kind) if field.name == name)
    if found["what"].startswith("Invalid enum value"):
        choices = " or ".join(_choices(kind))
        return f"{found['key']} is {value!r}, which this version does not have; it can be {choices}"
    return f"{found['key']} is {value!r}; it must be {_in_words(found['what'])}"


_BOUNDS = {">=": "at least", "<=": "at most", ">": "more than", "<": "less than"}
_KINDS = {
    "int": "a whole number",
    "float": "a number",
    "str": "a string",
    "bool": "true or false",
    "array": "a list",
}


def _in_words(expected: str) -> str:
    """What msgspec expects, such as 'Expected `int` >= 1' or 'Expected `str | array`, got `int`'."""
    bound = re.fullmatch(r"Expected `[^`]*` (?P<relation>[<>]=?) (?P<number>\S+)", expected)
    if bound is not None:
        return f"{_BOUNDS[bound['relation']]} {bound['number'].removesuffix('.0')}"
    kinds = re.match(r"Expected `(?P<kinds>[^`]*)`", expected)
    if kinds is None:
        return expected
    named = (kind for kind in kinds["kinds"].split(" | ") if kind != "null")
    return " or ".join(_KINDS.get(kind, kind) for kind in named)


def _choices(kind: Any) -> list[str]:
    if get_origin(kind) is Literal:
        return list(get_args(kind))
    return [choice for part in get_args(kind) for choice in _choices(part)]


def _check_fields(fields: tuple[str, ...]) -> None:
    if not fields or len(set(fields)) != len(fields):
        raise RecipeError(f"fields is {list(fields)}; give title, body or both, each once")


def _check_bands(bands: Bands, sketch: Sketch, match: Match) -> None:
    if (bands.count is None) != (bands.rows is None):
        raise RecipeError("bands: give count and rows together, or recall alone")
    if sketch.family == "bottom_k" and (bands.rows or 1) != 1:
        raise RecipeError(
            f"bands.rows is {bands.rows}; a band of bottom_k is one of the smallest ids: give rows = 1, or recall alone"
        )
    if sketch.family == "bottom_k" and bands.hash != "mix64":
        raise RecipeError(
            f"bands.hash is {bands.hash!r}, which hashes several values; a band of bottom_k is one id: leave it out"
        )
    if bands.count is not None and bands.rows is not None:
        if bands.recall is not None:
            raise RecipeError("bands: give either recall, or count and rows, not both")
        if bands.count * bands.rows > sketch.k:
            raise RecipeError(
                f"bands: {bands.count} bands of {bands.rows} rows need {bands.count * bands.rows} values, "
                f"the sketch has k = {sketch.k}; raise sketch.k or lower the bands"
            )
        if match.min_shared_bands > bands.count:
            raise RecipeError(
                f"match.min_shared_bands is {match.min_shared_bands}, more than the {bands.count} bands that "
                "bands.count gives; lower it"
            )


def _check_tokens(shingle: Shingle) -> None:
    if shingle.scheme == "char" and (
        shingle.stopwords != "none" or shingle.stem != "none" or shingle.min_token_length > 1
    ):
        raise RecipeError(
            "shingle.stopwords, stem and min_token_length work on words; with scheme = char leave them out"
        )


def _check_characters(strings: Iterable[str]) -> None:
    for string in strings:
        if re.search("[\0\ud800-\udfff]", string):
            raise RecipeError(f"{string!r} holds NUL or a lone surrogate, which PostgreSQL cannot store")
