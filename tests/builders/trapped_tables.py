"""A tenant's tables with functions that read and store everything of nearsim, if PostgreSQL runs them for others."""

from dataclasses import dataclass

import psycopg
from psycopg import sql

from tests.builders.function_trials import DRAWING, TRIALS
from tests.builders.isolation_world import World, filled, relations
from tests.builders.logins import user_of
from tests.builders.relations import identifier

Answers = dict[str, str | None]

# The functions are declared IMMUTABLE, as PostgreSQL requires in an index, but they call a function that is not.
TRAP = """
CREATE TABLE trap.question (question text);
CREATE TABLE trap.answer (context text, ran_as text, question text, answer text);
GRANT USAGE ON SCHEMA trap TO PUBLIC;
GRANT ALL ON ALL TABLES IN SCHEMA trap TO PUBLIC;
CREATE FUNCTION trap.ask(question text) RETURNS text LANGUAGE plpgsql SET search_path = pg_catalog AS $$
DECLARE
    found text;
BEGIN
    EXECUTE question INTO found;
    RETURN found;
EXCEPTION WHEN OTHERS THEN
    RETURN SQLSTATE;
END
$$;
CREATE FUNCTION trap.look(context text) RETURNS text LANGUAGE plpgsql SET search_path = pg_catalog AS $$
BEGIN
    INSERT INTO trap.answer SELECT context, current_user, question, trap.ask(question) FROM trap.question;
    RETURN context;
END
$$;
CREATE FUNCTION trap.key(context text) RETURNS text LANGUAGE plpgsql IMMUTABLE SET search_path = pg_catalog AS $$
BEGIN
    RETURN trap.look(context);
END
$$;
CREATE FUNCTION trap.lent(context text) RETURNS text
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog AS $$
BEGIN
    RETURN trap.look(context);
END
$$;
CREATE FUNCTION trap.fire() RETURNS trigger LANGUAGE plpgsql SET search_path = pg_catalog AS $$
BEGIN
    PERFORM trap.look(TG_ARGV[0]);
    RETURN coalesce(NEW, OLD);
END
$$;
"""


@dataclass(frozen=True)
class Trap:
    """The traps of a tenant, and what the tenant can read itself. The traps must not read more than this."""

    url: str
    owner: str
    own_answers: Answers

    def answers(self, context: str) -> Answers:
        """What the functions read when they ran in a context. They should always run as the tenant."""
        with psycopg.connect(self.url) as admin:
            rows = admin.execute(
                "SELECT DISTINCT ran_as, question, answer FROM trap.answer WHERE context = %s", (context,)
            ).fetchall()
        # This also fails if the functions did not run at all.
        assert {row[0] for row in rows} == {user_of(self.owner)}, context
        read: Answers = {row[1]: row[2] for row in rows}
        assert len(read) == len(rows), f"{context}: one question has several answers"
        return read


def questions(world: World) -> list[str]:
    """Queries for everything that can be read: whole tables and views, and every function for each tenant."""
    with psycopg.connect(world.url) as admin:
        asked = [
            sql.SQL("SELECT string_agg(found::text, E'\\n' ORDER BY found::text) FROM {} AS found").format(
                identifier(name)
            )
            for name in relations(world.url)
            # This view has times in seconds, which change between two queries.
            if name != "visible_workers"
        ]

        for signature, trial in TRIALS.items():
            # A function that draws numbers returns another one in each call, and a CALL is not a query.
            if signature in DRAWING or trial.startswith("CALL"):
                continue
            for tenant in (world.own, world.foreign):
                call = filled(trial, tenant)
                asked.append(
                    sql.SQL(
                        "SELECT string_agg(found::text, E'\\n' ORDER BY found::text) FROM ({}) AS found"
                    ).format(call)
                )
        return [question.as_string(admin) for question in asked]


def set_trap(world: World, owner: str) -> Trap:
    """Create the functions as a tenant, and let the tenant read everything itself for comparison."""
    name = sql.Identifier(user_of(owner))
    with psycopg.connect(world.url) as admin:
        admin.execute(sql.SQL("CREATE SCHEMA trap AUTHORIZATION {}").format(name))
    with psycopg.connect(owner) as tenant:
        tenant.execute(TRAP.encode())
        with tenant.cursor() as cursor:
            cursor.executemany(
                "INSERT INTO trap.question VALUES (%s)", [(question,) for question in questions(world)]
            )
        tenant.commit()
        tenant.execute("SELECT trap.look('itself')")
    trap = Trap(world.url, owner, {})
    return Trap(world.url, owner, trap.answers("itself"))


def seen_by(trap: Trap, url: str) -> Answers:
    """What another user reads with the same queries."""
    with psycopg.connect(url) as connection:
        rows = connection.execute("SELECT question, trap.ask(question) FROM trap.question").fetchall()
    return dict(rows)
