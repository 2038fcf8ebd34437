"""Generations whose bands an earlier rule chose stay readable and writable, and keep these bands."""

import psycopg
import pytest

from nearsim_db import Document, Index
from nearsim_db.admin.reindex import Reindex
from nearsim_db.similarity import lsh
from nearsim_db.similarity.amplification import Amplification, banding
from nearsim_db.similarity.recipe import Recipe, override

TEXT = "the council voted on monday to close the old bath house at the end of the month"
EDITED = f"{TEXT} and to sell it"


def choose_all_bands(
    k: int, base: float, recall: float, minimum: int, *, threshold: float, positional: bool
) -> Amplification:
    """The rule of earlier versions: as many bands as the sketch has values for."""
    assert (k, base, recall, minimum, threshold, positional) == (128, 0.7, 0.99, 1, 0.7, True)
    return banding(32, 4)


@pytest.fixture
def database_of_earlier_version(database_url: str, monkeypatch: pytest.MonkeyPatch) -> str:
    """An index of 32 bands, made when a recall of 0.99 was the default."""
    with monkeypatch.context() as earlier:
        earlier.setattr(lsh, "choose_bands", choose_all_bands)
        with Index.connect(database_url) as index:
            index.create_profile("default", override(Recipe(), ["bands.recall=0.99"]))
            index.add([Document("first", body=TEXT), Document("other", body="a page about another thing")])
    return database_url


def band_rows(database_url: str) -> list[tuple[str, int]]:
    """The number of band rows of each document of the live generation."""
    with psycopg.connect(database_url) as connection:
        return connection.execute(
            "SELECT external_id, count(*) FROM nearsim.band JOIN nearsim.generation USING (generation_id)"
            " JOIN nearsim.document USING (doc_id) WHERE state = 'live' GROUP BY 1 ORDER BY 1"
        ).fetchall()


def test_generation_of_an_earlier_version_is_written_and_queried(database_of_earlier_version: str) -> None:
    with Index.connect(database_of_earlier_version) as index:
        index.add([Document("second", body=EDITED), Document("other", body="a page that is written anew")])
        (pair,) = index.pairs()
        assert {pair.left, pair.right} == {"first", "second"}
        assert [one.external_id for one in index.similar("first")] == ["second"]
        assert [one.external_id for one in index.similar_to_text(TEXT)] == ["first", "second"]
        (found,) = index.profiles()
        assert (found[0].bands, found[0].rows) == (32, 4)
        stats = index.stats()
        assert (stats["bands"], stats["unused_rows"], stats["expected_recall"]) == (32, 0, 0.999847)
    assert band_rows(database_of_earlier_version) == [("first", 32), ("other", 32), ("second", 32)]


def test_reindexing_chooses_bands_anew(database_of_earlier_version: str) -> None:
    with Index.connect(database_of_earlier_version) as index:
        reindex = Reindex(index.database, "default")
        made = reindex.start()
        assert (made.bands, made.rows, made.recipe["bands"]["recall"]) == (17, 4, 0.99)
        reindex.promote()
    assert band_rows(database_of_earlier_version) == [("first", 17), ("other", 17)]
