"""Documents of a collection with their clusters, for export. This module does not import NumPy."""

from collections.abc import Generator, Sequence
from typing import Any, NamedTuple

from psycopg import sql

from nearsim_db.records import CollectionId
from nearsim_db.store.attached import source_rows
from nearsim_db.store.driver import Connection
from nearsim_db.store.driver.statements import GenerationStatements, run, statement


class ExportedRow(NamedTuple):
    """A document and its cluster; `body`, `vector` and `attributes` are None unless they were requested."""

    doc_id: int
    external_id: str
    title: str | None
    body: str | None
    source: str | None
    url: str | None
    published_at: object
    vector: list[float] | None
    attributes: dict[str, Any] | None
    revision: int
    created_at: object
    updated_at: object
    cluster: int | None
    survivor: str | None  # external id of the document to keep in the cluster; None if there is none
    # Number of documents in the cluster, 1 if the document is in no cluster; None unless marks were requested.
    cluster_size: int | None = None
    # Similarity to the survivor; None for the survivor, if the two are not a pair, and unless marks were requested.
    similarity: float | None = None

    @property
    def duplicate_of(self) -> str | None:
        """External id of the document to keep instead of this one; None if this one is to be kept."""
        return None if self.survivor == self.external_id else self.survivor


_COLUMN_TYPES = [
    *("int8", "text", "text", "text", "text", "text", "timestamptz", "float4[]", "jsonb", "int8"),
    *("timestamptz", "timestamptz", "int8", "text"),
]
_TYPES_OF_MARKS = ["int8", "float8"]


class ExportQueries(GenerationStatements):
    """Reads the documents of a collection with their clusters in a generation."""

    def stream_documents(
        self,
        collection_id: CollectionId,
        columns: Sequence[str],
        *,
        duplicates: bool | None,
        with_marks: bool = False,
        keeps_none: bool = False,
    ) -> Generator[ExportedRow, None, None]:
        """Yield the documents of a collection in order of doc_id; only one of them is in memory at a time.

        `columns`: which of text, vector and attributes are read
        `duplicates`: True selects documents whose cluster has another document to keep, False all other documents, and
        None all documents
        `with_marks`: whether the size of the cluster and the similarity to the survivor are read
        `keeps_none`: whether the keep policy keeps no document of a cluster, so that all documents in clusters are
        duplicates, except those that a person chose to keep

        Raises NotFoundError if the texts are in an attached table that cannot be read.
        """
        body, source_text = sql.SQL("document.body"), sql.Composed([])
        source = source_rows.find_source(self.connection, collection_id) if "text" in columns else None
        if source is not None:
            body = sql.SQL(
                "CASE WHEN document.body_digest IS NULL THEN document.body ELSE source_row.body END"
            )
            source_text = source.statement("join_source_text")

        parameters = {
            "collection_id": collection_id,
            "columns": list(columns),
            "duplicates": duplicates,
            "keeps_none": keeps_none,
        }
        marks = joined_marks = sql.Composed([])
        if with_marks:
            marks = statement("marks_of_export", self.leaves)
            joined_marks = statement("join_marks", self.leaves)
        query = statement(
            "read_export",
            self.leaves,
            body=body,
            source_text=source_text,
            marks=marks,
            joined_marks=joined_marks,
        )
        command = sql.SQL("COPY ({}) TO STDOUT").format(query)
        with self.connection.backend.cursor() as cursor, cursor.copy(command, parameters) as copy:
            copy.set_types([*_COLUMN_TYPES, *(_TYPES_OF_MARKS if with_marks else ())])
            for row in copy.rows():
                yield ExportedRow(*row)

    def count_documents(self, collection_id: CollectionId, *, duplicates: bool | None) -> int:
        """Return the number of documents that `stream_documents` yields.

        Survivors that were deleted after clusters were last updated are still counted as survivors.
        """
        total, non_survivors = self.run("count_export", collection_id=collection_id).row()
        return int(total if duplicates is None else non_survivors if duplicates else total - non_survivors)

    def count_unindexed(self, collection_id: CollectionId) -> int:
        """Return the number of documents that have not expired but whose present revision is not signed."""
        return int(self.run("count_unindexed", collection_id=collection_id).value())


def read_attribute_kinds(connection: Connection, collection_id: CollectionId) -> dict[str, list[str]]:
    """Return the keys of a collection's attributes, each with the kinds of its values.

    A kind is string, integer (of 64 bits), number, boolean, null, array or object.
    """
    return dict(run(connection, "read_attribute_kinds", collection_id=collection_id).rows())
