"""A schema restored on one server from the dump of a Citus cluster, which tests/scale_out takes and restores."""

from importlib.resources import files

import pytest

from nearsim_db.admin.doctor import examine
from nearsim_db.admin.verify_index import verify_index
from nearsim_db.errors import DatabaseError, SchemaError
from nearsim_db.store.database import Database
from nearsim_db.store.driver.statements import statement
from tests.builders.restored_cluster import parts_of
from tests.builders.scale_out_world import documents, index_at
from tests.builders.workers import Application, application


def leave_as_dumped(session: Application) -> None:
    """Change the schema as distributing its band rows does, which a dump writes; it does not write that they are."""
    for file in files("nearsim_db.store").joinpath("citus/functions").iterdir():
        session.execute(file.read_bytes())
    session.execute(statement("set_distributed"))
    session.execute("UPDATE nearsim.generation SET distributed = true")
    for table in (b"nearsim.band", b"nearsim_index.band_shared", b"nearsim_index.band_100000001"):
        session.execute(b"ALTER POLICY granted ON %s USING (false)" % table)


@pytest.mark.usefixtures("own_tables")  # as on a cluster
def test_is_refused_until_db_init_mends_it(database_url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("NEARSIM_DATABASE_URL", database_url)
    with index_at(database_url) as index, application(database_url) as session:
        index.add(documents(60, seed=31))
        expected, parts = list(index.pairs()), parts_of(session)
        leave_as_dumped(session)
        assert parts_of(session) != parts
        assert Database.inspect(database_url).revision == "0001"
        (finding,) = [one for one in examine() if one.verdict == "problem"]
        assert finding.check == "schema" and "nearsim schema init" in finding.finding
        with pytest.raises(SchemaError, match=r"dump of a Citus cluster.*nearsim schema init"):
            Database.connect(database_url)
        with pytest.raises(DatabaseError, match="this database has no Citus with nodes"):
            Database.initialise(database_url, citus="yes")
        said: list[str] = []
        Database.initialise(database_url, report=said.append)
        assert said == ["band rows restored from a Citus cluster are kept here"]
        assert parts_of(session) == parts
        assert list(index.pairs()) == expected
        assert verify_index(index.database, sample=None).is_sound
        assert index.stats(recount=True)["pairs"] == len(expected) > 0
        Database.initialise(database_url, report=said.append)
        assert len(said) == 1
