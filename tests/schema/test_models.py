"""The mapped classes: their tables, writes through the ORM, and Alembic's autogenerate."""

import re
from collections.abc import Callable, Iterator
from datetime import timedelta
from pathlib import Path
from typing import Any, assert_type

import pytest
from alembic.autogenerate import compare_metadata
from alembic.runtime.migration import MigrationContext
from sqlalchemy import (
    BigInteger,
    Column,
    Engine,
    ForeignKey,
    Index,
    MetaData,
    Table,
    create_engine,
    func,
    make_url,
    select,
)
from sqlalchemy.orm import Session

from docs import mapped_classes
from docs.generate import MODELS
from nearsim_db import Index as NearsimIndex
from nearsim_db.errors import NearsimError
from nearsim_db.store import models
from nearsim_db.store.models import Collection, Document, Duplicates, Pairs, Probe, Profile
from nearsim_db.worker.worker import Worker

GUIDE = Path(__file__).parents[2] / "docs" / "how-to" / "sqlalchemy.md"
TEXT = "the council voted on tuesday to close the old swimming bath at the end of the season"

Options = dict[str, Callable[..., bool]]
BOTH: Options = {"include_name": models.include_name, "include_object": models.include_object}


@pytest.fixture
def engine(database_url: str) -> Iterator[Engine]:
    """An application's own engine; the role is called nearsim, so that it would look into that schema first."""
    url = make_url(database_url).set(drivername="postgresql+psycopg")
    engine = create_engine(url.update_query_dict({"options": "-c search_path=public"}))
    yield engine
    engine.dispose()


def test_module_agrees_with_the_catalogue(engine: Engine) -> None:
    with engine.connect() as connection:
        assert mapped_classes.render(connection) == MODELS.read_text("utf-8"), "run: make generated"


@pytest.mark.parametrize("base", [models.Base, models.View])
def test_every_class_can_be_selected(engine: Engine, base: Any) -> None:
    with Session(engine) as session:
        for mapper in base.registry.mappers:
            assert isinstance(session.scalars(select(mapper.class_)).all(), list)


def test_documents_written_by_the_orm_are_indexed(
    engine: Engine, database_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("NEARSIM_BACKEND", "numpy")  # which needs no compilation
    with Session(engine) as session:
        news = Collection(name="news")
        first = Document(collection=news, external_id="a", body=TEXT)
        session.add_all([first, Document(collection=news, external_id="b", body=TEXT, attributes={"n": 1})])
        session.commit()
        with NearsimIndex.connect(database_url, collection="news") as index:
            index.build()
        found = session.scalars(select(Document).where(Document.external_id == "a")).one()
        assert_type(found, Document)
        assert_type(found.title, str | None)
        assert (found.collection.name, found.attributes, found.doc_id) == ("news", {}, first.doc_id)
        before = found.revision, found.updated_at
        found.title = "Bath to close"
        session.flush()
        assert found.revision > before[0] and found.updated_at > before[1]
        session.add(Document(collection=news, external_id="c", body=TEXT + " at last"))
        session.commit()
        Worker(database_url).drain()
        names = session.execute(select(Pairs.left_external_id, Pairs.right_external_id)).all()
        assert {tuple(one) for one in names} == {("a", "b"), ("a", "c"), ("b", "c")}
        session.delete(found)
        session.commit()
        Worker(database_url).drain()
        assert session.scalars(select(func.count()).select_from(Pairs)).one() == 1
        profile = session.scalars(select(Profile)).one()
        assert [(one.state, one.profile) for one in profile.generations] == [("live", profile)]


@pytest.mark.slow("starts a worker")
def test_lookup_by_text_through_the_orm(engine: Engine, database_url: str) -> None:
    with NearsimIndex.connect(database_url) as index, Session(engine) as session:
        index.add([models_document("a"), models_document("b")])
        home = session.scalars(select(Collection)).one()
        probe = Probe(collection=home, body=TEXT, deadline=func.now() + timedelta(minutes=1))
        session.add(probe)
        session.commit()
        Worker(database_url).drain()
        session.refresh(probe)
        assert [(one.doc_id, one.similarity) for one in probe.matches] == [(1, 1.0), (2, 1.0)]


def models_document(external_id: str) -> Any:
    from nearsim_db import Document as Given

    return Given(external_id, body=TEXT)


def test_views_are_read_only(engine: Engine, database_url: str) -> None:
    with NearsimIndex.connect(database_url) as index, Session(engine) as session:
        index.add([models_document("a"), models_document("b")])
        one = session.scalars(select(Duplicates)).one()
        assert (one.external_id, one.survivor_external_id) == ("b", "a")
        one.title = "another"
        with pytest.raises(NearsimError, match="Duplicates is a view"):
            session.flush()
        session.rollback()
        session.delete(session.scalars(select(Duplicates)).one())
        with pytest.raises(NearsimError, match="read only"):
            session.flush()


def applications_own() -> MetaData:
    """Tables of an application: one with a name of nearsim's, and one that references nearsim."""
    own = MetaData()
    Table("document", own, Column("id", BigInteger, primary_key=True))
    reading = Table(
        "reading",
        own,
        Column("reading_id", BigInteger, primary_key=True),
        Column("doc_id", BigInteger, ForeignKey(Document.doc_id, name="reading_document_fkey")),
    )
    Index("reading_doc", reading.c.doc_id)
    return own


def differences(engine: Engine, target: Any, options: Options) -> list[Any]:
    with engine.connect() as connection:
        context = MigrationContext.configure(connection, opts={"include_schemas": True, **options})
        return list(compare_metadata(context, target))


@pytest.mark.parametrize("options", [BOTH, {"include_object": models.include_object}], ids=["both", "object"])
@pytest.mark.slow("runs Alembic")
def test_autogenerate_ignores_nearsim_tables(engine: Engine, options: Options) -> None:
    own = applications_own()
    for target in (own, [own, models.metadata]):
        made = differences(engine, target, options)
        assert [(one[0], one[1].name) for one in made] == [
            ("add_table", "document"), ("add_table", "reading"), ("add_index", "reading_doc"),
        ]  # fmt: skip
        assert all(one[1].schema is None for one in made[:2])
    own.create_all(engine)
    for target in (own, [own, models.metadata], MetaData()):
        made = differences(engine, target, options)
        assert {(one[0], one[1].name) for one in made} == (
            {("remove_table", "document"), ("remove_table", "reading"), ("remove_index", "reading_doc")}
            if isinstance(target, MetaData) and not target.tables
            else set()
        )


def test_examples_of_the_guide_run(
    engine: Engine, database_url: str, capsys: pytest.CaptureFixture[str]
) -> None:
    with NearsimIndex.connect(database_url, collection="tour") as index:
        index.add([models_document("a"), models_document("b")])
    code, configuration = re.findall(r"```python\n(.*?)```", GUIDE.read_text("utf-8"), re.DOTALL)
    names: dict[str, Any] = {}
    url = f"{database_url}&options=-c%20search_path%3Dpublic"
    exec(re.sub("^url = .*", lambda found: f"url = {url!r}", code, flags=re.MULTILINE), names)
    names["engine"].dispose()
    assert capsys.readouterr().out == "b is a duplicate of a\n"
    seen: dict[str, Any] = {}
    context = type("Context", (), {"configure": staticmethod(lambda **options: seen.update(options))})
    exec(configuration, {**names, "context": context, "connection": None})
    options = {key: seen[key] for key in ("include_name", "include_object")}
    assert differences(engine, seen["target_metadata"], options) == []
