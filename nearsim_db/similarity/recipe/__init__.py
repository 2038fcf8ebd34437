"""Recipes: all parameters of a profile as plain data, which is read from TOML and validated."""

from nearsim_db.similarity.recipe.conversion import (
    from_mapping,
    keeping,
    load,
    override,
    parse,
    to_mapping,
    to_toml,
    with_earlier_values,
    within_fields,
    without_later_keys,
)
from nearsim_db.similarity.recipe.keep import KeepPolicy, KeepRule, keep_policy, refuse_unusable_keep
from nearsim_db.similarity.recipe.sections import (
    DEFAULT_RECALL,
    Bands,
    ClusterRules,
    Hash,
    MatchRules,
    Normalise,
    Recipe,
    Retain,
    Shingle,
    Sketch,
    without_review,
)
from nearsim_db.similarity.recipe.validation import refuse_repeated_lines, retained_seconds

__all__ = [
    "DEFAULT_RECALL",
    "Bands",
    "ClusterRules",
    "Hash",
    "KeepPolicy",
    "KeepRule",
    "MatchRules",
    "Normalise",
    "Recipe",
    "Retain",
    "Shingle",
    "Sketch",
    "from_mapping",
    "keep_policy",
    "keeping",
    "load",
    "override",
    "parse",
    "refuse_repeated_lines",
    "refuse_unusable_keep",
    "retained_seconds",
    "to_mapping",
    "to_toml",
    "with_earlier_values",
    "within_fields",
    "without_later_keys",
    "without_review",
]
