"""Hints of what suggests another recipe, and of fields that records lack."""

import json
import random
from pathlib import Path

import pytest

from nearsim_db import Document, Index, presets
from nearsim_db.search.statistics import Hint
from nearsim_db.similarity.recipe import override
from tests.builders.command_line import HARVEST, STORM, STORM_AGAIN, CommandLine, write_jsonl
from tests.builders.pages import site
from tests.builders.workers import application

DRAW = random.Random(3)


def text(words: int) -> str:
    return " ".join(DRAW.choice("abcdefghijklmnop") + str(DRAW.random()) for _ in range(words))


def hints(index: Index) -> list[Hint]:
    found: list[Hint] = index.stats()["hints"]
    return found


def test_an_index_that_finds_almost_nothing_names_a_preset(nearsim: CommandLine, database_url: str) -> None:
    for words, preset in ((8, "records"), (100, "reworded")):
        with Index.connect(database_url, collection=preset) as index:
            index.add(Document(str(number), None, text(words)) for number in range(99))
            assert hints(index) == []
            index.add([Document("99", None, text(words))])
            (hint,) = hints(index)
            assert (hint["kind"], hint["preset"]) == ("few-pairs", preset)
            assert hint["message"].startswith("only 0 near-duplicates among 100 documents")
    assert f"hint: profile default: {hint['message']}" in nearsim.succeed("stats", "-c", "reworded").out
    (profile,) = nearsim.succeed("build", "-c", "reworded", "--json").document()["profiles"]
    assert profile["hints"] == [hint]


@pytest.mark.slow("several builds")
def test_pairs_within_one_source_only(database_url: str) -> None:
    with Index.connect(database_url) as index:
        for number in range(25):
            own, source = text(30), "AB"[number % 2]
            index.add(Document(f"{number}-{copy}", None, own + " more" * copy, source) for copy in range(2))
        (hint,) = hints(index)
        assert (hint["kind"], hint["preset"]) == ("within-source", "records")
        assert "all 25 pairs looked at" in hint["message"] and "there are 2" in hint["message"]
        index.add([Document("across", None, own + " more more more", "another")])
        assert hints(index) == []


def test_numbers_that_keep_most_pairs_apart(nearsim: CommandLine, database_url: str, tmp_path: Path) -> None:
    titles = [f"storm closes ferry harbour road {number // 2} day" for number in range(6)]
    recipe = override(presets.load("headlines"), ['fields=["body"]'])
    with Index.connect(database_url) as index:
        index.create_profile("default", recipe)
        index.add((str(number), title) for number, title in enumerate(titles))
        (hint,) = hints(index)
        assert hint["kind"] == "numbers-apart" and len(list(index.clusters())) == 3
        assert "keep-apart leaves 3 of 3 pairs out of clusters" in hint["message"]
    file = tmp_path / "titles.jsonl"
    file.write_text("".join(json.dumps({"id": title, "text": title}) + "\n" for title in titles))
    command = ("dedupe", str(file), "--dry-run", "--preset", "headlines", "--set", 'fields=["body"]')
    assert hint["message"] in nearsim.succeed(*command).err
    linked = nearsim.succeed(*command, "--set", "cluster.numbers_differ=link").err
    assert "keep-apart leaves" not in linked and "to keep them: cluster.numbers_differ = keep-apart" in linked


def test_texts_of_one_template_are_named(nearsim: CommandLine, database_url: str, tmp_path: Path) -> None:
    bodies = [f"{STORM} The harbour charges {number} euros for each berth." for number in range(4)]
    path = write_jsonl(
        tmp_path / "in.jsonl", [{"id": str(at), "text": body} for at, body in enumerate(bodies)]
    )
    said = nearsim.succeed("ingest", path).out
    assert "hint: profile default: the numbers of 6 of 6 pairs differ" in said
    assert "cluster.numbers_differ = keep-apart" in said
    with Index.connect(database_url) as index:
        assert [hint["kind"] for hint in hints(index)] == ["numbers-differ"]


def test_pages_that_share_a_menu_are_named_once_with_the_remedies(
    nearsim: CommandLine, tmp_path: Path
) -> None:
    path = write_jsonl(tmp_path / "pages.jsonl", site(10))
    settings = ("--set", "normalise.html=true", "--set", "match.threshold=0.5")
    remedies = ("normalise.html = main", "normalise.drop_repeated = source", "match.across = source")
    said = nearsim.succeed("dedupe", path, "--dry-run", *settings).err
    ingested = nearsim.succeed("ingest", path, *settings).out
    for text in (said, ingested):
        assert text.count("45 of 45 pairs looked at have little in common") == 1
        assert all(remedy in text for remedy in remedies)
    assert "hint: profile default: 45 of 45 pairs looked at" in ingested
    main = nearsim.succeed("dedupe", path, "--dry-run", *settings, "--set", "normalise.html=main")
    assert "little in common" not in main.err

    # Markup is named without a threshold.
    raw = nearsim.succeed("dedupe", path, "--dry-run").err
    assert "100% of the texts are HTML" in raw and ".3" not in raw.partition("texts are HTML")[2]


def test_an_index_of_mostly_duplicates_is_questioned(nearsim: CommandLine, tmp_path: Path) -> None:
    copies = [{"id": str(at), "text": STORM} for at in range(60)]
    others = [{"id": f"other {at}", "text": text(20)} for at in range(40)]
    assert "hint" not in nearsim.succeed("ingest", write_jsonl(tmp_path / "few.jsonl", copies)).out
    said = nearsim.succeed("ingest", write_jsonl(tmp_path / "all.jsonl", copies + others)).out
    assert "59 of 100 documents are duplicates, and the largest cluster has 60" in said
    for setting in ("match.threshold", "cluster.linkage = average", "cluster.numbers_differ = keep-apart"):
        assert setting in said


def chain(length: int) -> list[dict[str, object]]:
    """Texts of 60 words, each of which shares 54 with the next."""
    words = [f"{letter}{other}" for letter in "abcdefghijklmnopqrst" for other in "abcdefghijklmnopqrst"]
    return [{"id": str(at), "text": " ".join(words[6 * at : 6 * at + 60])} for at in range(length)]


def test_a_cluster_that_only_a_chain_connects_is_named(
    nearsim: CommandLine, database_url: str, tmp_path: Path
) -> None:
    path = write_jsonl(tmp_path / "chain.jsonl", chain(28))
    named, remedy = "joins texts whose similarity is", "cluster.linkage = average (now connected)"
    removal = nearsim.succeed("dedupe", path, "--dry-run")
    assert (
        removal.err.count(f"a cluster of 28 records {named} 0, through a chain") == 1
        and remedy in removal.err
    )
    assert {("clusters", "1"), ("unique", "1")} <= {tuple(line.split()) for line in removal.out.splitlines()}
    for setting in ("cluster.linkage=average", "cluster.linkage=representative"):
        assert named not in nearsim.succeed("dedupe", path, "--dry-run", "--set", setting).err

    ingested = nearsim.succeed("ingest", path).out
    assert ingested.count(f"a cluster of 28 documents {named} about") == 1 and remedy in ingested
    with Index.connect(database_url) as index:
        assert [hint["kind"] for hint in hints(index)] == ["chained-cluster"]

    # The ends of a shorter chain still share half of the threshold.
    short = write_jsonl(tmp_path / "short.jsonl", chain(4))
    assert named not in nearsim.succeed("dedupe", short, "--dry-run").err
    assert named not in nearsim.succeed("ingest", short, "-c", "short").out


@pytest.mark.slow("a thousand documents")
def test_a_cluster_of_more_than_a_twentieth_is_questioned(database_url: str) -> None:
    with Index.connect(database_url) as index:
        index.add((f"copy {at}", STORM) for at in range(51))
        index.add((f"other {at}", text(20)) for at in range(948))
        assert hints(index) == []
        index.add([("last", text(20))])
        assert [hint["kind"] for hint in hints(index)] == ["many-duplicates"]


BY_SOURCE = ("--set", "cluster.keep=source:wire,blog")
NO_SOURCE = "error: cluster.keep is 'source:wire,blog', but no document has a source"


def records(**more: object) -> list[dict[str, object]]:
    texts = {"storm": STORM, "again": STORM_AGAIN, "harvest": HARVEST}
    return [{"id": name, "text": text} | more for name, text in texts.items()]


@pytest.mark.slow("several builds")
def test_a_date_in_another_field_gives_a_hint(nearsim: CommandLine, tmp_path: Path) -> None:
    for at, (name, value) in enumerate(
        {"date": "26-FEB-1987 15:01:01.79", "Pub Date": "1987-02-26T15:01:01.790Z"}.items()
    ):
        file = write_jsonl(tmp_path / f"{at}.jsonl", records(**{name: value}))
        for command in (("dedupe", "-o", tmp_path / "unique.jsonl"), ("ingest", "-c", str(at))):
            hinted = nearsim.succeed(*command, file, "--quiet").err
            assert f"--published-field {name}" in hinted or f"--published-field '{name}'" in hinted
            assert nearsim.succeed(*command, file, "--published-field", name, "--quiet").err == ""
        (row, *_) = nearsim.succeed("export", "-c", at, "--format", "jsonl").rows()
        assert row["published_at"] == "1987-02-26T15:01:01.790000+00:00"
    dated: list[dict[str, object]] = [
        *records(date="2024-05-01"),
        {"id": "x", "text": HARVEST, "published_at": "2024-05-02"},
    ]
    for given in (dated, records(date="soon"), records(candidate="2024-05-01"), records(Time=2.0)):
        file = write_jsonl(tmp_path / "in.jsonl", given)
        assert nearsim.succeed("dedupe", file, "-o", tmp_path / "unique.jsonl", "-q").err == ""


@pytest.mark.slow("several builds")
def test_a_keep_policy_by_source_is_refused_if_nothing_has_a_source(
    nearsim: CommandLine, tmp_path: Path
) -> None:
    file, unique = write_jsonl(tmp_path / "stories.jsonl", records(agency="wire")), tmp_path / "unique.jsonl"
    assert nearsim.fail("dedupe", file, "-o", unique, *BY_SOURCE).startswith(NO_SOURCE)
    assert not unique.exists()
    nearsim.succeed("dedupe", file, "-o", unique, *BY_SOURCE, "--source-field", "agency")
    assert nearsim.fail("ingest", file, *BY_SOURCE, "-c", "wire").startswith(NO_SOURCE)
    assert len(nearsim.succeed("pairs", "-c", "wire", "--format", "jsonl").rows()) == 1
    nearsim.succeed("ingest", file, "-c", "wire", "--source-field", "agency")
    nearsim.succeed("ingest", file)
    assert nearsim.fail("profile", "create", "mine", *BY_SOURCE).startswith(NO_SOURCE)
    assert nearsim.fail("reindex", "start", *BY_SOURCE).startswith(NO_SOURCE)
    for command in (("profile", "create", "mine"), ("reindex", "start"), ("ingest", file, "-c", "new")):
        highest = ("--set", "cluster.keep=highest:agency")
        assert "no document has a number" in nearsim.fail(*command, *highest)
    (only,) = nearsim.succeed("reindex", "status", "--json").document()
    assert (only["profile"], only["state"]) == ("default", "live")


def test_a_dry_run_refuses_a_keep_policy_by_source(nearsim: CommandLine, tmp_path: Path) -> None:
    file = write_jsonl(tmp_path / "stories.jsonl", records(agency="wire"))
    dry_run = ("ingest", file, "--dry-run")
    assert nearsim.fail(*dry_run, *BY_SOURCE).startswith(NO_SOURCE)
    nearsim.succeed(*dry_run, *BY_SOURCE, "--source-field", "agency")
    nearsim.succeed("profile", "create", "default", *BY_SOURCE)
    assert nearsim.fail(*dry_run).startswith(NO_SOURCE)
    nearsim.succeed("ingest", file, "--source-field", "agency")
    nearsim.succeed(*dry_run)


@pytest.mark.slow("several builds")
def test_first_builds_of_others_refuse_a_keep_policy_by_source(
    nearsim: CommandLine, database_url: str
) -> None:
    """By a worker, the command build and an attachment; a document with a source is enough."""
    nearsim.succeed("profile", "create", "default", *BY_SOURCE)
    with application(database_url) as writing:
        inserted = "INSERT INTO nearsim.document (collection_id, external_id, body) VALUES (1, %s, %s)"
        for name in ("a", "b"):
            writing.execute(inserted, [name, STORM])
        refused = nearsim.fail("worker", "--once")
        assert f"cannot be built: InputError: {NO_SOURCE.removeprefix('error: ')}" in refused
        assert "column source of nearsim.document (nearsim ingest --source-field FIELD)" in refused
        assert nearsim.fail("build").startswith(NO_SOURCE)
        writing.execute("CREATE TABLE public.story (id text PRIMARY KEY, body text)")
        writing.execute("INSERT INTO public.story VALUES ('a', %(text)s), ('b', %(text)s)", {"text": STORM})
        attach = ("table", "attach", "public.story", "--id", "id", "--text", "body", "--collection", "own")
        assert nearsim.fail(*attach, *BY_SOURCE).startswith(NO_SOURCE)
        nearsim.succeed(*attach)
        writing.execute(
            "UPDATE nearsim.document SET source = 'wire' WHERE external_id = 'a' AND collection_id = 1"
        )
    nearsim.succeed("worker", "--once")
    assert len(nearsim.succeed("pairs", "--format", "jsonl").rows()) == 1
