"""link: from pairs to clusters."""

from sqlalchemy import Connection

from nearsim_db.cluster import connected_components
from nearsim_db.recipe import keep_policy
from nearsim_db.steps.context import Context
from nearsim_db.store import pairs


def link(connection: Connection, context: Context) -> None:
    """Recompute the generation's clusters from its pairs and twins."""
    rules = context.encoder.profile.recipe.cluster
    edges = pairs.read_edges(connection, context.leaves, same_numbers=rules.numbers_differ == "keep-apart")
    members, clusters = connected_components(edges)
    policy, sources = keep_policy(rules.keep)
    pairs.store_clusters(connection, context.leaves, members, clusters, policy, sources)
