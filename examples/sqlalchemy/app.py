"""An application with tables of its own that point at nearsim's documents: app.py DATABASE_URL.

It stores two articles in its own transaction, indexes what was written, and prints which of its articles are copies. A
running `nearsim worker` makes the call of `index.build()` unnecessary.
"""

import sys

from sqlalchemy import BigInteger, ForeignKey, create_engine, make_url, select
from sqlalchemy.orm import DeclarativeBase, Mapped, Session, mapped_column, relationship

from nearsim_db import Index
from nearsim_db.store.models import Collection, Document, Duplicates

STORY = (
    "The storm closed the ferry to the island for a second day, the harbour master said on Tuesday morning."
)


class Base(DeclarativeBase):
    """The application's own tables."""


class Article(Base):
    """An article of the application, whose text nearsim indexes."""

    __tablename__ = "article"
    article_id: Mapped[int] = mapped_column(primary_key=True)
    section: Mapped[str]
    doc_id: Mapped[int] = mapped_column(BigInteger, ForeignKey(Document.doc_id, ondelete="CASCADE"))
    document: Mapped[Document] = relationship(Document)


def write(session: Session) -> None:
    """Store two articles, one a copy of the other under a new headline, in one transaction."""
    articles = session.scalars(select(Collection).where(Collection.name == "articles")).one_or_none()
    articles = articles or Collection(name="articles")
    for number, title in enumerate(("Storm closes ferry", "Ferry closed by storm")):
        document = Document(collection=articles, external_id=f"article-{number}", title=title, body=STORY)
        session.add(Article(section="news", document=document))
    session.commit()


def print_copies(session: Session) -> None:
    """Print the articles that are copies, with the document to keep."""
    found = (
        select(Article, Duplicates.survivor_external_id)
        .join(Duplicates, Duplicates.doc_id == Article.doc_id)
        .where(Duplicates.collection == "articles", Duplicates.profile == "default")
        .order_by(Article.article_id)
    )
    for article, survivor in session.execute(found):
        print(f"{article.section}: {article.document.external_id} is a copy of {survivor}")


def main(url: str) -> None:
    """Create the application's tables, write, index and read."""
    engine = create_engine(make_url(url).set(drivername="postgresql+psycopg"))
    Base.metadata.create_all(engine)
    with Session(engine) as session:
        write(session)
    with Index.connect(url, collection="articles") as index:
        index.build()
    with Session(engine) as session:
        print_copies(session)
    engine.dispose()


if __name__ == "__main__":
    main(sys.argv[1])
