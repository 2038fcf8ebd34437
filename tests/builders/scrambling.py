"""Random changes of the pairs, twins and clusters of a generation, written in SQL."""

import random

from psycopg import sql

from nearsim_db.store.driver.statements import PARENTS, Leaves
from tests.builders.event_world import FIRST
from tests.builders.relations import identifier
from tests.builders.workers import Application, ask

DELETE_PAIRS = sql.SQL("DELETE FROM {similar_pair} WHERE left_id = %s")
INSERT_PAIR = sql.SQL(
    "INSERT INTO {similar_pair} (generation_id, left_id, right_id, similarity, shared_bands, estimate,"
    " intersection_size, union_size) VALUES ({generation_id}, %s, %s, %s, 1, 1, 1, 1)"
)
UPDATE_HEAD = sql.SQL("UPDATE {signature} SET head_id = %s WHERE doc_id = %s")
DELETE_MEMBER = sql.SQL("DELETE FROM {cluster_member} WHERE doc_id = %s")
INSERT_MEMBER = sql.SQL(
    "INSERT INTO {cluster_member} (generation_id, cluster_id, is_survivor, doc_id)"
    " VALUES ({generation_id}, %s, %s, %s)"
)
UPDATE_MEMBER = sql.SQL("UPDATE {cluster_member} SET cluster_id = %s, is_survivor = %s WHERE doc_id = %s")


def scramble(connection: Application, rng: random.Random) -> None:
    """Make a few random changes of pairs, twins and clusters in one transaction."""
    for _ in range(rng.choice([1, 1, 2, 4])):
        by_leaf = rng.choice([False, True])
        # The heads of a pair never belong to the same family, because two documents are either twins or a pair.
        left, right = rng.choice([(a, b) for a in range(1, 14) for b in range(a + 1, 15, 2)])

        match rng.choice(["pair", "twin", "clusters", "clusters", "undone"]):
            case "pair":
                change(connection, DELETE_PAIRS, by_leaf, left)
                change(connection, INSERT_PAIR, by_leaf, left, right, rng.choice([0.5, 0.75]))
            case "twin":
                # Twins have both odd or both even doc_ids, and pairs one of each.
                head = rng.choice(range(right % 2 or 2, right + 1, 2))
                change(connection, UPDATE_HEAD, by_leaf, head, right)
            case "clusters":
                regroup(connection, rng, by_leaf, rng.sample(range(1, 15), rng.choice([2, 4, 14])))
            case "undone":
                connection.execute("SAVEPOINT before")
                regroup(connection, rng, by_leaf, list(range(1, 15)))
                connection.execute("ROLLBACK TO before")


def regroup(connection: Application, rng: random.Random, by_leaf: bool, doc_ids: list[int]) -> None:
    """Move documents and the members of their clusters into other clusters, or out of any cluster.

    A cluster has the number of its first document.
    """
    rows = connection.execute(
        "SELECT doc_id FROM nearsim.cluster_member WHERE cluster_id IN"
        " (SELECT cluster_id FROM nearsim.cluster_member WHERE doc_id = ANY(%s))",
        [doc_ids],
    ).fetchall()
    members = {int(str(row[0])) for row in rows}

    # Documents of group 0 leave their clusters in most cases. Otherwise they form a cluster, as the other groups do.
    groups: dict[int, list[int]] = {}
    last_group = rng.choice([0, 1, 1, 2, 3])
    for doc_id in sorted({*doc_ids, *members}):
        groups.setdefault(rng.randint(0, last_group) if rng.random() < 0.9 else 0, []).append(doc_id)
    if rng.random() < 0.7:
        for doc_id in groups.pop(0, []):
            change(connection, DELETE_MEMBER, by_leaf, doc_id)
    for group in groups.values():
        survivor = rng.choice([group[0], rng.choice(group)])
        for doc_id in group:
            put = UPDATE_MEMBER if doc_id in members else INSERT_MEMBER
            change(connection, put, by_leaf, group[0], doc_id == survivor, doc_id)


def change(connection: Application, command: sql.SQL, by_leaf: bool, *values: object) -> None:
    """Run a command on a table of the first generation, or on its parent."""
    leaves = Leaves(ask(connection, FIRST))
    tables = {name: leaves.table(name) if by_leaf else identifier(name) for name in PARENTS}
    connection.execute(command.format(generation_id=sql.Literal(leaves.generation_id), **tables), values)
