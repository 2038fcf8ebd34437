"""De-duplication of files without a database: for any user, on any number of threads."""

import gzip
import json
from pathlib import Path
from types import ModuleType
from typing import IO, Any

import pytest

from nearsim_db.deduplication import reading, records
from nearsim_db.deduplication.files import dedupe
from nearsim_db.deduplication.output import Outputs
from nearsim_db.errors import InputError, NearsimError, RecipeError
from nearsim_db.readers import Source, places
from nearsim_db.similarity import presets
from nearsim_db.similarity.recipe import Recipe, from_mapping, override, parse
from tests.builders.command_line import write_jsonl
from tests.builders.reindex_world import RECIPE, words

STORY = "port said on monday that it will close its northern terminal for two weeks in march"


def write_stories(path: Path, stories: dict[str, str]) -> Path:
    return write_jsonl(path, ({"id": name, "text": text} for name, text in stories.items()))


def run(stories: Path, recipe: Recipe | None = None, threads: int | None = None) -> list[str]:
    """De-duplicate the file; return the ids that are kept."""
    output = stories.with_name("unique.jsonl")
    dedupe(Source([stories]), recipe or Recipe(), Outputs(output), threads=threads)
    return [json.loads(line)["id"] for line in output.read_text().splitlines()]


def test_the_keep_policy_chooses_survivors(tmp_path: Path) -> None:
    path = tmp_path / "in.jsonl"
    stories = [("a", STORY, "2024-02-01"), ("b", f"{STORY} again", "2024-01-01"), ("c", STORY[::-1], None)]
    write_jsonl(path, ({"id": name, "text": text, "published_at": at} for name, text, at in stories))
    for keep, kept in (("earliest", ["b", "c"]), ("latest", ["a", "c"]), ("longest", ["b", "c"])):
        assert run(path, from_mapping({"cluster": {"keep": keep}})) == kept


def test_the_keep_policy_may_be_a_column_or_the_centre(tmp_path: Path) -> None:
    path, near = tmp_path / "in.jsonl", STORY.split()
    texts = {"a": f"{STORY} and more than that", "b": STORY, "c": " ".join(near[1:]), "d": " ".join(near[2:])}
    scores: dict[str, object] = {"a": "1e2", "b": 99, "c": None, "d": "many"}
    write_jsonl(
        path, [{"id": name, "text": text, "meta": {"n": scores[name]}} for name, text in texts.items()]
    )
    threshold = ("match.threshold=0.6",)
    for keep, kept in (("highest:meta.n", "a"), ("central", "c"), ("earliest", "a")):
        assert run(path, override(Recipe(), [*threshold, f"cluster.keep={keep}"])) == [kept]
    for keep in ("highest:n", "highest:meta", "latest", "source:a"):
        with pytest.raises(InputError, match="choose another policy"):
            run(path, from_mapping({"cluster": {"keep": keep}}))


def test_several_keep_rules_decide_in_order(tmp_path: Path) -> None:
    rows: list[dict[str, object]] = [
        {"id": "a", "source": "A", "doi": " ", "lang": [], "published_at": "2024-01-01"},
        {"id": "b", "source": "B", "doi": "10/b", "lang": ["en"], "published_at": "2024-01-02"},
        {"id": "c", "source": "C", "doi": 7, "published_at": "2024-01-03", "n": 1},
        {"id": "d", "source": "B", "doi": False, "published_at": "2024-01-02"},
    ]
    path = write_jsonl(tmp_path / "in.jsonl", ({**row, "text": STORY} for row in rows))
    expected = {
        ("has:doi",): "b",
        ("has:doi", "source:A,C", "latest"): "c",
        ("has:doi", "source:A,B", "latest"): "d",
        ("has:doi", "source:A,B", "latest", "earliest"): "b",
        ("source:B", "has:lang"): "b",
        ("has:text", "latest"): "c",
        ("longest", "highest:n"): "c",
        ("source:A,B", "central"): "a",
        ("earliest", "highest:n"): "a",
    }
    for keep, kept in expected.items():
        assert run(path, parse(f"cluster.keep = {list(keep)}")) == [kept]
    for keep in (("latest", "has:title"), ("has:nothing", "latest")):
        with pytest.raises(InputError, match="no document has a value of this field; name another field"):
            run(path, parse(f"cluster.keep = {list(keep)}"))


def test_no_record_of_a_cluster_stays_if_none_is_kept(tmp_path: Path) -> None:
    path = write_stories(
        tmp_path / "in.jsonl", {"a": STORY, "b": f"{STORY} again", "c": STORY[::-1], "d": STORY}
    )
    outputs = Outputs(
        tmp_path / "unique.jsonl", pairs=tmp_path / "pairs.jsonl", clusters=tmp_path / "clusters.jsonl"
    )
    summary = dedupe(Source([path]), parse('cluster.keep = "none"'), outputs)
    assert (summary.unique, summary.duplicates, summary.clusters, summary.pairs) == (1, 3, 1, 3)
    (line,) = map(json.loads, (tmp_path / "clusters.jsonl").read_text().splitlines())
    assert (line["survivor"], line["survivor_place"], line["title"]) == (None, None, None)
    assert line["members"] == ["a", "b", "d"]
    for linkage in ("connected", "representative", "average"):
        assert run(path, parse(f'cluster = {{keep = "none", linkage = "{linkage}"}}')) == ["c"]
    old = Source([write_stories(tmp_path / "old.jsonl", {"a": STORY})])
    with pytest.raises(RecipeError, match="none against another corpus"):
        dedupe(Source([path]), parse('cluster.keep = "none"'), Outputs(), against=[old])


def test_a_failure_leaves_no_output(tmp_path: Path) -> None:
    path = write_stories(tmp_path / "in.jsonl", {str(at): f"{STORY} {at}" for at in range(99)})
    path.with_suffix(".jsonl.gz").write_bytes(gzip.compress(path.read_bytes())[:-20])
    with pytest.raises(InputError, match="truncated"):
        dedupe(Source([path.with_suffix(".jsonl.gz")]), Recipe(), Outputs(tmp_path / "unique.jsonl"))
    assert not (tmp_path / "unique.jsonl").exists()


def test_texts_with_other_numbers_are_kept_apart_on_request(tmp_path: Path) -> None:
    texts = {"a": f"{STORY} 1", "b": f"{STORY} 2", "c": f"{STORY}, 1", "d": f"{STORY} again 2"}
    path = write_stories(tmp_path / "in.jsonl", texts)
    assert run(path) == ["a"]
    assert run(path, from_mapping({"cluster": {"numbers_differ": "keep-apart"}})) == ["a", "b"]


def test_documents_without_features_are_all_kept(tmp_path: Path) -> None:
    assert run(write_stories(tmp_path / "in.jsonl", {"a": "", "b": "", "c": "?!"})) == ["a", "b", "c"]


def test_documents_beyond_their_retention_are_all_kept(tmp_path: Path) -> None:
    dates = {"old": "2001-01-01", "older": "2000-01-01", "new": None, "newer": None}
    path = tmp_path / "in.jsonl"
    write_jsonl(path, ({"id": name, "text": STORY, "published_at": date} for name, date in dates.items()))
    assert run(path, from_mapping({"retain": {"age": "30 days"}})) == ["old", "older", "new"]


@pytest.mark.parametrize(("module", "buffering"), [(records, 0), (places, -1)])
def test_a_full_disk_ends_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, module: ModuleType, buffering: int
) -> None:
    def open_full(**given: str) -> IO[Any]:
        return Path("/dev/full").open("w+b", buffering)

    monkeypatch.setattr(module, "TemporaryFile", open_full)
    stories = write_stories(tmp_path / "in.jsonl", {"a": STORY})
    with pytest.raises(NearsimError, match="set TMPDIR to a folder with room"):
        dedupe(Source([stories]), Recipe(), Outputs(tmp_path / "unique.jsonl", tmp_path / "pairs.jsonl"))


@pytest.mark.parametrize("keep", ["earliest", "longest"])
def test_threads_leave_the_same_documents(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, keep: str) -> None:
    path = write_stories(tmp_path / "in.jsonl", {f"d{at}": words(at) for at in range(400)})
    recipe = override(Recipe(), [*RECIPE, f"cluster.keep={keep}"])
    monkeypatch.setattr(reading, "_BATCH_RECORDS", 20)
    survivors = [run(path, recipe, threads) for threads in (1, 3)]
    assert survivors[0] == survivors[1]
    assert len(survivors[0]) == 200


@pytest.mark.slow("spends budgets of time")
def test_source_code_that_takes_too_long_is_rejected_by_name(tmp_path: Path) -> None:
    program = "class A { int sum(int[] xs) { int s = 0; for (int x : xs) s += x; return s; } }"
    path = write_stories(tmp_path / "in.jsonl", {"hostile": "int a " * 5_000, "a": program, "b": program})
    outputs = Outputs(tmp_path / "unique.jsonl", rejects=tmp_path / "rejects.jsonl")
    summary = dedupe(Source([path]), presets.load("code-copies"), outputs)
    (reject,) = map(json.loads, (tmp_path / "rejects.jsonl").read_text().splitlines())
    assert (summary.ingest.read, summary.ingest.rejected, summary.unique, summary.duplicates) == (3, 1, 1, 1)
    assert (reject["id"], reject["line"]) == ("hostile", 1)
    assert "as source code in java" in reject["reason"]
