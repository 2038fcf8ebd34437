"""A recipe: every parameter of a profile as plain data, read from TOML, checked, refused with the reason."""

import difflib
import re
import tomllib
from collections.abc import Iterable
from pathlib import Path
from typing import Annotated, Any, Literal

import msgspec
from msgspec import Meta, Struct

from nearsim_db.errors import RecipeError

Choice = Literal["none"]
Positive = Annotated[int, Meta(ge=1)]


class _Section(Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """What all sections share: no unknown keys, no change after it is made."""


class Normalise(_Section):
    """How a text is made comparable before it is cut up."""

    unicode: Literal["none", "nfc", "nfkc"] = "nfkc"
    case: Literal["none", "lower", "casefold"] = "casefold"
    whitespace: Literal["none", "collapse"] = "collapse"
    html: bool = False


class Shingle(_Section):
    """What a text is cut into; `k` units make one shingle (a bag of words has one word a shingle)."""

    scheme: Literal["char", "word", "bag", "sentence"] = "word"
    k: Annotated[int, Meta(ge=1, le=1000)] = 3
    tokens: Literal["whitespace", "unicode", "ascii"] = "unicode"
    stopwords: str | tuple[str, ...] = "none"
    stem: str = "none"
    min_token_length: Annotated[int, Meta(ge=1, le=100)] = 1


class Hash(_Section):
    """The base hash that makes a shingle's id."""

    base: Literal["poly64", "crc32", "djb2a"] = "poly64"


class Sketch(_Section):
    """The sketch family, its size and seed; `functions` is minhash's own option."""

    family: Literal["fast_similarity", "minhash"] = "fast_similarity"
    k: Annotated[int, Meta(ge=1, le=4096)] = 128
    seed: Annotated[int, Meta(ge=0, le=2**63 - 1)] = 1
    functions: Literal["prime32", "java32"] | None = None


class Bands(_Section):
    """How the sketch is cut into bands: chosen for `recall`, or given as `count` and `rows`."""

    recall: Annotated[float, Meta(gt=0, lt=1)] | None = None
    count: Annotated[int, Meta(ge=1, le=256)] | None = None
    rows: Positive | None = None
    hash: Literal["mix64", "xor", "djb2a-joined"] = "mix64"


class Match(_Section):
    """When two documents are a pair; `bucket_limit` 0 means no limit."""

    threshold: Annotated[float, Meta(gt=0, le=1)] = 0.7
    min_shared_bands: Annotated[int, Meta(ge=1, le=256)] = 1
    verify: Literal["exact", "estimate"] = "exact"
    bucket_limit: Annotated[int, Meta(ge=0)] = 64


class ClusterRules(_Section):
    """How pairs tie documents together and which one stays."""

    linkage: Literal["connected"] = "connected"
    keep: str = "earliest"
    numbers_differ: Literal["link", "keep-apart"] = "link"


class Retain(_Section):
    """How long documents stay in the index."""

    age: Literal["none"] = "none"


class Recipe(_Section):
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
        keep_policy(self.cluster.keep)
        if self.sketch.functions is not None and self.sketch.family != "minhash":
            raise RecipeError(
                f"sketch.functions belongs to the family minhash, not to {self.sketch.family}; leave it out"
            )


DEFAULT_RECALL = 0.99


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
        cause = error.__cause__
        raise RecipeError(str(cause) if isinstance(cause, RecipeError) else _readable(str(error))) from error


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


def _split_setting(setting: str) -> tuple[str, Any]:
    path, equals, text = setting.partition("=")
    if not equals or not path.strip():
        raise RecipeError(f"--set takes key=value, as in --set match.threshold=0.8; this is {setting!r}")
    try:
        value = tomllib.loads(f"value = {text}")["value"]
    except tomllib.TOMLDecodeError:
        value = text.strip()
    return path.strip(), value


def _refuse_unknown_keys(data: dict[str, Any], struct: type[Struct], prefix: str) -> None:
    known = {field.name: field for field in msgspec.structs.fields(struct)}
    for key, value in data.items():
        if key not in known:
            near = difflib.get_close_matches(key, known, n=1)
            hint = f"; did you mean {prefix}{near[0]}?" if near else f"; known are {', '.join(known)}"
            raise RecipeError(f"unknown key {prefix}{key}{hint}")
        section = known[key].type
        if isinstance(section, type) and issubclass(section, Struct):
            if not isinstance(value, dict):
                raise RecipeError(f"{key} is a section: write [{key}] and its keys below it")
            _refuse_unknown_keys(value, section, f"{prefix}{key}.")


def _readable(message: str) -> str:
    """msgspec says 'Expected `int` >= 1 - at `$.shingle.k`'; we name the key first."""
    found = re.fullmatch(r"(?P<what>.*?) - at `\$\.?(?P<key>[^`]*)`", message, re.DOTALL)
    if found is None:
        return message
    what = found["what"].replace("Expected", "expected").replace("Invalid enum value", "cannot be")
    return f"{found['key']}: {what}"


def _check_fields(fields: tuple[str, ...]) -> None:
    if not fields or len(set(fields)) != len(fields):
        raise RecipeError(f"fields is {list(fields)}; give title, body or both, each once")


def _check_bands(bands: Bands, sketch: Sketch, match: Match) -> None:
    if (bands.count is None) != (bands.rows is None):
        raise RecipeError("bands: give count and rows together, or recall alone")
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
                f"match.min_shared_bands is {match.min_shared_bands}, more than the {bands.count} bands there are"
            )
    if bands.hash == "xor" and bands.rows == 1 and sketch.family != "minhash":
        raise RecipeError("bands.hash = xor is the Newshound scheme; it goes with the family minhash")


def _check_tokens(shingle: Shingle) -> None:
    if shingle.scheme == "char" and (
        shingle.stopwords != "none" or shingle.stem != "none" or shingle.min_token_length > 1
    ):
        raise RecipeError(
            "shingle.stopwords, stem and min_token_length work on words; with scheme = char leave them out"
        )
