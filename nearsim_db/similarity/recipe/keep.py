"""Keep policies: the rules by which one document of a cluster survives."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import NamedTuple

from nearsim_db.errors import InputError, RecipeError

NO_DOCUMENT = "none"
_PLAIN = ("earliest", "latest", "longest", "central", NO_DOCUMENT)
_CHOICES = "earliest, latest, longest, central, source:A,B,C, highest:COLUMN, has:FIELD or none"


class KeepRule(NamedTuple):
    """A rule that ranks the documents of a cluster."""

    kind: str  # what decides: earliest, latest, longest, central, none, source, has, highest
    names: tuple[str, ...] = ()  # the sources in their order, or the field of has or highest

    @property
    def field(self) -> str | None:
        """The field whose values the rule reads; None for rules about sources, dates, lengths and similarities."""
        return self.names[0] if self.kind in ("has", "highest") else None

    def __str__(self) -> str:
        return f"{self.kind}:{','.join(self.names)}" if self.names else self.kind


@dataclass(frozen=True, slots=True)
class KeepPolicy:
    """The rules of `cluster.keep`. A rule decides between documents that are equal under the rules before it.

    After the last rule the earlier date decides, and then the order of the documents.
    """

    rules: tuple[KeepRule, ...]

    @property
    def keeps_none(self) -> bool:
        """Whether no document of a cluster is kept."""
        return self.rules == (KeepRule(NO_DOCUMENT),)

    @property
    def deciding(self) -> tuple[KeepRule, ...]:
        """The rules that rank documents: all except `none`, and except a last `earliest`, which the tie-break
        repeats.
        """
        return self.rules[:-1] if self.rules[-1].kind in ("earliest", NO_DOCUMENT) else self.rules

    @property
    def fields(self) -> tuple[str, ...]:
        """The fields whose values the rules read, in the order of the rules."""
        return tuple(rule.field for rule in self.deciding if rule.field is not None)

    @property
    def is_central(self) -> bool:
        """Whether a rule ranks documents by their similarities with the other documents of the cluster."""
        return any(rule.kind == "central" for rule in self.rules)

    @property
    def prefers_last(self) -> bool:
        """Whether the last of several documents with the same date is kept instead of the first."""
        by_date = [rule.kind for rule in self.rules if rule.kind in ("earliest", "latest")]
        return by_date[-1:] == ["latest"]


def keep_policy(keep: str | tuple[str, ...]) -> KeepPolicy:
    """Return the rules of a value of `cluster.keep`. Raises RecipeError for an invalid value."""
    texts = (keep,) if isinstance(keep, str) else keep
    rules = tuple(map(_rule, texts))
    if not rules:
        raise RecipeError(f"cluster.keep has no rule; choose {_CHOICES}, or several, in order")
    if len(rules) > 1 and KeepRule(NO_DOCUMENT) in rules:
        raise RecipeError(
            f"cluster.keep is {list(texts)}, but none keeps no document of a cluster, so other rules have nothing to "
            "decide; give none alone, or leave it out"
        )
    if len(set(rules)) < len(rules):
        raise RecipeError(f"cluster.keep is {list(texts)}, which has a rule twice; give each once")
    return KeepPolicy(rules)


def _rule(text: str) -> KeepRule:
    if text in _PLAIN:
        return KeepRule(text)

    kind, colon, arguments = text.partition(":")
    sources = tuple(part.strip() for part in arguments.split(",") if part.strip())
    if kind == "source" and colon and sources:
        return KeepRule(kind, sources)
    if kind in ("has", "highest") and arguments.strip():
        return KeepRule(kind, (arguments.strip(),))
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
    """Raise InputError if no document has a value for which a keep rule looks.

    `has_value` returns whether any document has a value for a rule. `remedies` has for each kind of rule the advice how
    to add such values.
    """
    for rule in policy.rules:
        if rule.kind in _LACKING and not has_value(rule):
            raise InputError(
                f"cluster.keep is '{rule}', but {_LACKING[rule.kind]}; {remedies[rule.kind]}, or choose another policy"
            )
