"""Keep policies: rules that choose the document of a cluster that survives, in order."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import NamedTuple

from nearsim_db.errors import InputError, RecipeError

NO_DOCUMENT = "none"
_PLAIN = ("earliest", "latest", "longest", "central", NO_DOCUMENT)
_CHOICES = "earliest, latest, longest, central, source:A,B,C, highest:COLUMN, has:FIELD or none"


class KeepRule(NamedTuple):
    """A rule: what documents are ranked by, and the sources in order or the field that it names."""

    kind: str
    names: tuple[str, ...] = ()

    @property
    def field(self) -> str | None:
        """The field of which the rule needs a value; None for rules about sources, dates, lengths and similarities."""
        return self.names[0] if self.kind in ("has", "highest") else None

    def __str__(self) -> str:
        return f"{self.kind}:{','.join(self.names)}" if self.names else self.kind


@dataclass(frozen=True, slots=True)
class KeepPolicy:
    """The rules of `cluster.keep`, in order. Last, the earlier date decides, then the order of the documents."""

    rules: tuple[KeepRule, ...]

    @property
    def keeps_none(self) -> bool:
        """Whether no document of a cluster is kept."""
        return self.rules == (KeepRule(NO_DOCUMENT),)

    @property
    def deciding(self) -> tuple[KeepRule, ...]:
        """The rules that rank documents otherwise than the last tie-break does."""
        return self.rules[:-1] if self.rules[-1].kind in ("earliest", NO_DOCUMENT) else self.rules

    @property
    def fields(self) -> tuple[str, ...]:
        """The fields of which rules need values, in the order of the rules."""
        return tuple(rule.field for rule in self.deciding if rule.field is not None)

    @property
    def is_central(self) -> bool:
        """Whether a rule ranks documents by their similarities with the others of the cluster."""
        return any(rule.kind == "central" for rule in self.rules)

    @property
    def prefers_last(self) -> bool:
        """Whether the last of several documents of one date is kept, not the first."""
        by_date = [rule.kind for rule in self.rules if rule.kind in ("earliest", "latest")]
        return by_date[-1:] == ["latest"]


def keep_policy(keep: str | tuple[str, ...]) -> KeepPolicy:
    """Return the rules of a value of `cluster.keep`. Raises RecipeError for an invalid one."""
    texts = (keep,) if isinstance(keep, str) else keep
    rules = tuple(map(_rule, texts))
    if not rules:
        raise RecipeError(f"cluster.keep has no rule; choose {_CHOICES}, or several, in order")
    if len(rules) > 1 and KeepRule(NO_DOCUMENT) in rules:
        raise RecipeError(
            f"cluster.keep is {list(texts)}, but none, which keeps no document of a cluster, leaves nothing for other "
            "rules to decide; give it alone, or leave it out"
        )
    if len(set(rules)) < len(rules):
        raise RecipeError(f"cluster.keep is {list(texts)}, which has a rule twice; give each once")
    return KeepPolicy(rules)


def _rule(text: str) -> KeepRule:
    if text in _PLAIN:
        return KeepRule(text)

    kind, colon, rest = text.partition(":")
    sources = tuple(part.strip() for part in rest.split(",") if part.strip())
    if kind == "source" and colon and sources:
        return KeepRule(kind, sources)
    if kind in ("has", "highest") and rest.strip():
        return KeepRule(kind, (rest.strip(),))
    raise RecipeError(f"cluster.keep is {text!r}; choose {_CHOICES}, or several, in order")


_LACKING = {
    "source": "no document has a source",
    "latest": "no document has a date",
    "highest": "no document has a number in this column",
    "has": "no document has a value of this field",
}


def refuse_unusable_keep(
    policy: KeepPolicy, has_value: Callable[[KeepRule], bool], remedies: Mapping[str, str]
) -> None:
    """Raise InputError for a keep rule by a field of which no document has a value.

    `has_value` says whether any document has what a rule is about. `remedies` say, for each kind of rule, what gives
    documents the field.
    """
    for rule in policy.rules:
        if rule.kind in _LACKING and not has_value(rule):
            raise InputError(
                f"cluster.keep is '{rule}', but {_LACKING[rule.kind]}; {remedies[rule.kind]}, or choose another policy"
            )
