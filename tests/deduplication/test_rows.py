"""De-duplication of what is in memory: every row is kept, removed for a named one, or rejected with its reason."""

import random
from collections import namedtuple
from datetime import date
from decimal import Decimal
from typing import Any
from uuid import UUID

import numpy as np
import pyarrow
import pytest

from nearsim_db import Deduped, Document, dedupe
from nearsim_db.errors import InputError, RecipeError
from tests.builders.command_line import BRIDGE, HARVEST, STORM, STORM_AGAIN
from tests.builders.word_sets import similarity
from tests.deduplication.test_accounts import draw_texts

TEXTS = [STORM, HARVEST, STORM_AGAIN, BRIDGE, STORM]
Row = namedtuple("Row", "id text")


def removed_of(found: Deduped) -> list[tuple[int, int | None]]:
    return [(one.row, one.of) for one in found.removed]


def test_texts_of_any_kind_of_row() -> None:
    kinds: list[Any] = [
        TEXTS,
        tuple(TEXTS),
        iter(TEXTS),
        np.array(TEXTS),
        [{"text": one} for one in TEXTS],
        [("id", one) for one in TEXTS],
        [(None, None, one) for one in TEXTS],
        [Row(at, one) for at, one in enumerate(TEXTS)],
        [Document("id", body=one) for one in TEXTS],
        pyarrow.chunked_array([TEXTS[:2], TEXTS[2:]]),
        pyarrow.table({"text": TEXTS}),
        pyarrow.table({"text": TEXTS}).to_batches()[0],
    ]
    for rows in kinds:
        found = dedupe(rows, threshold=0.7)
        assert (found.kept, removed_of(found), found.rejects) == ((0, 1, 3), [(2, 0), (4, 0)], ())
        assert found.removed[0].similarity == pytest.approx(similarity(STORM, STORM_AGAIN))
        assert len(found.rows()) == 3 and found.pairs == 3
    assert dedupe(TEXTS).rows() == [TEXTS[at] for at in (0, 1, 3)]
    assert dedupe(kinds[-2]).rows().to_pydict() == {"text": [TEXTS[at] for at in (0, 1, 3)]}
    assert dedupe([]).kept == ()


def test_data_frames_come_back_as_they_came() -> None:
    pandas = pytest.importorskip("pandas", reason="pandas is not installed")
    polars = pytest.importorskip("polars", reason="polars is not installed")
    columns = {"text": TEXTS, "n": range(5), "at": [date(2024, 1, 5 - day) for day in range(5)]}
    frame, other = pandas.DataFrame(columns, index=list("abcde")), polars.DataFrame(columns)
    for given in (frame, other):
        found = dedupe(given, published_at="at")
        assert found.kept == (1, 3, 4) and type(found.rows()) is type(given)
        assert list(found.rows()["n"]) == [1, 3, 4]
        assert dedupe(given["text"]).kept == (0, 1, 3)
    for kind in (polars.Categorical, polars.Enum(["a", "b"])):
        coded = polars.DataFrame({"text": TEXTS[:3], "n": polars.Series(["b", "a", None], dtype=kind)})
        assert dedupe(coded, across="n").kept == (0, 1)
        assert dedupe(coded.with_columns(text=coded["n"])).kept == (0, 1, 2)
    frame["text"] = [STORM, 5, float("nan"), pandas.NA, STORM]
    frame["at"] = [pandas.NaT, pandas.Timestamp("2024-01-01"), None, {}, object()]
    found = dedupe(frame)
    assert (found.kept, removed_of(found)) == ((0, 2, 3), [])
    assert [(one.line, one.file) for one in found.rejects] == [(2, "rows"), (5, "rows")]
    assert [one.external_id for one in found.rejects] == ["rows:2", "rows:5"]
    assert "'text' is a number, 5" in found.rejects[0].reason
    twice = polars.DataFrame({"text": [STORM, STORM], "o": polars.Series([object(), 1], dtype=polars.Object)})
    assert [one.line for one in dedupe(twice).rejects] == [1]


def test_values_mean_what_they_mean() -> None:
    values: list[Any] = [
        None, float("nan"), np.float64("nan"), np.datetime64("NaT"), np.int64(3), np.str_("x"), True, np.bool_(True),
        Decimal("1.5"), UUID(int=1), date(2024, 1, 2), np.datetime64("2024-01-02"), [np.int8(1), {"a": np.nan}], b"x",
    ]  # fmt: skip
    found = dedupe([{"text": STORM, "v": one} for one in values], across="v")
    assert not found.rejects and found.kept == (0,)
    same = {(0, 1), (0, 2), (0, 3), (1, 2), (1, 3), (2, 3), (5, 13), (6, 7), (10, 11)}
    assert found.pairs == 14 * 13 // 2 - len(same)
    bad: list[Any] = [{"text": one} for one in (5, [STORM], {"a": 1}, object())] + [object(), 7, (1,), {1, 2}]
    found = dedupe([*bad, STORM, None, float("nan")])
    assert found.kept == (8, 9, 10) and [one.line for one in found.rejects] == list(range(1, 9))
    assert all(one.reason for one in found.rejects)


def test_a_row_is_compared_with_other_rows_and_across_values() -> None:
    rng = random.Random(5)
    old, new = draw_texts(rng), draw_texts(rng)
    new += rng.choices(old, k=9)
    found = dedupe(new, against=[7, *old], threshold=0.7, only_against=True)
    expected = [at for at, text in enumerate(new) if all(similarity(text, one) < 0.7 for one in old)]
    assert list(found.kept) == expected
    assert [(one.file, one.line) for one in found.rejects] == [("against", 1)]
    for one in found.removed:
        assert one.against and one.of is not None
        assert one.similarity == pytest.approx(similarity(new[one.row], old[one.of - 1]))
    rows = [{"text": STORM, "lang": lang} for lang in ("en", "en", "de")]
    rows[1]["n"] = "5.5"
    assert dedupe(rows[:2], across="lang").kept == (0, 1) and dedupe(rows, across="lang").kept == (0,)
    assert dedupe(["a a b", "a b a b", "A  a b"], exact=True).kept == (0, 1)
    assert dedupe(rows, keep="highest:n").kept == (1,)
    assert dedupe(rows, keep=["has:n", "highest:n"]).kept == (1,)
    nothing = dedupe(rows, keep="none")
    assert nothing.kept == ()
    assert {(row.of, row.similarity, row.against) for row in nothing.removed} == {(None, None, False)}
    mine = [{"text": STORM, "source": source} for source in ("mine", "theirs", "mine", "theirs")]
    assert dedupe(mine, only_from="theirs").kept == (0, 2)
    with pytest.raises(InputError, match="which only_from= names"):
        dedupe(mine, only_from="rest")
    with pytest.raises(InputError, match="either only_from or against"):
        dedupe(mine, only_from="mine", against=mine)
    with pytest.raises(InputError, match="has 'other'"):
        dedupe(rows, across="other")
    with pytest.raises(RecipeError, match=r"cluster\.keep"):
        dedupe(rows, keep="nothing")
    with pytest.raises(InputError, match="only_against requires against"):
        dedupe(rows, only_against=True)
    with pytest.raises(InputError, match="either exact or threshold"):
        dedupe(rows, exact=True, threshold=0.7)


def test_a_damaged_ambiguous_or_unusable_frame_is_an_error() -> None:
    with pytest.raises(InputError, match=r"none of the 2 records is usable .*keys: words"):
        dedupe(pyarrow.table({"words": [STORM, STORM]}))
    table = pyarrow.table([[STORM], [STORM]], names=["text", "text"])
    with pytest.raises(InputError, match="duplicate column names"):
        dedupe(table)
    pandas = pytest.importorskip("pandas", reason="pandas is not installed")
    with pytest.raises(InputError, match="duplicate column names"):
        dedupe(pandas.DataFrame([[STORM, STORM]], columns=["text", "text"]))


@pytest.mark.parametrize("given", [STORM, STORM.encode(), {"text": STORM}, Document("1", body=STORM)])
def test_one_row_is_not_taken_for_rows(given: Any) -> None:
    with pytest.raises(InputError, match="give a list of rows"):
        dedupe(given)


def test_rows_of_a_stream_come_back_as_a_table() -> None:
    table = pyarrow.table({"text": TEXTS})
    assert dedupe(table.to_reader()).rows().to_pydict() == {"text": [TEXTS[at] for at in (0, 1, 3)]}


@pytest.mark.parametrize(
    ("arguments", "reason"),
    [
        ({"text": "story"}, "no 'story', which text= names"),
        ({"title": "head"}, "no 'head' and no 'text' or 'body'; name one with title= or text="),
        ({"text": "words", "id": "key"}, "no record has the id 'key'; name another field with id="),
        ({"text": "words", "across": "lang"}, "name another field with across="),
        (
            {"text": "words,typo"},
            "no record has 'typo', which text= names; leave it out of text=, or correct it",
        ),
    ],
)
def test_messages_name_the_parameters(arguments: dict[str, str], reason: str) -> None:
    with pytest.raises(InputError) as caught:
        dedupe([{"words": STORM}], **arguments)  # type: ignore[arg-type]
    assert reason in str(caught.value) and "--" not in str(caught.value)


def test_the_text_joins_several_fields() -> None:
    rows = [{"lead": STORM, "rest": HARVEST}, {"lead": f"{STORM}\n{HARVEST}"}]
    assert removed_of(dedupe(rows, text="lead,rest", exact=True)) == [(1, 0)]
