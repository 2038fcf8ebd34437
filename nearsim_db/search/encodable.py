"""Read documents together with an encoder, to show each step of encoding them."""

from collections.abc import Sequence

from nearsim_db.indexing.context import make_encoder
from nearsim_db.search.answers import Answers, find_documents
from nearsim_db.search.live_generation import find_live, retry_if_replaced
from nearsim_db.search.pair_figures import read_contents
from nearsim_db.similarity.backend import FIRST_PLAIN_CHARACTERS
from nearsim_db.similarity.encoder import Content, Encoder
from nearsim_db.similarity.profile import resolve
from nearsim_db.similarity.recipe import Recipe
from nearsim_db.store.driver.driver_errors import translate_errors


def read_encodable(
    answers: Answers, external_ids: Sequence[str], recipe: Recipe | None = None
) -> tuple[Encoder, list[Content]]:
    """Return an encoder, and the present texts or vectors of documents.

    The encoder is that of the live index, or of `recipe` if it is passed. Raises NotFoundError for a missing document,
    and FingerprintError if this version would make different sketches.
    """

    def read() -> tuple[Encoder, list[Content]]:
        with answers.database.engine.snapshot() as connection:
            live = find_live(connection, answers.collection, answers.profile)
            if recipe is None:
                backend = answers.database.settings.backend
                encoder = make_encoder(live, backend, 0 if backend else FIRST_PLAIN_CHARACTERS)
            else:
                encoder = Encoder(resolve(recipe), plain_characters=FIRST_PLAIN_CHARACTERS)
            doc_ids = [document["doc_id"] for document in find_documents(connection, live, external_ids)]
            contents = read_contents(connection, live.collection_id, encoder, doc_ids)
            # A text of an attached table that was changed just now is missing.
            missing = None if encoder.takes_vectors else ""
            return encoder, [contents.get(doc_id, missing) for doc_id in doc_ids]

    with translate_errors():
        return retry_if_replaced(read)
