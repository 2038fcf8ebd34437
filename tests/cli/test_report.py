"""nearsim report: one self-contained page, whatever the texts contain."""

import sys
from pathlib import Path

import pytest

from nearsim_db.analysis.report.page import environment
from tests.builders.command_line import CommandLine, unlike_any_other, write_jsonl
from tests.builders.report_pages import ATTACK, URL, Elements

LOADING = {*("link", "iframe", "object", "embed", "img", "image", "base", "form", "audio", "video")}
CAN_FETCH = {"src", "href", "action", "data", "poster", "srcset", "background", "formaction", "ping"}


def test_page_loads_nothing_from_the_network(page_file: Path) -> None:
    page = page_file.read_text()
    elements = Elements(page)
    for tag, attributes in elements.found:
        assert tag not in LOADING
        assert "style" not in attributes
        assert not any(name.startswith("on") for name in attributes)
        for name, value in attributes.items():
            is_link = (tag, name) == ("a", "href") and value == URL
            assert name not in CAN_FETCH or value.startswith("#") or is_link, (tag, name, value)
            assert "url(" not in value or value.startswith("url(#"), (tag, name, value)
    assert "@import" not in page and "url(" not in page.split("<style>")[1].split("</style>")[0]
    (policy,) = [one["content"] for tag, one in elements.found if one.get("http-equiv")]
    assert policy.startswith("default-src 'none'; style-src 'sha256-") and "unsafe" not in policy
    linked = [one for tag, one in elements.found if tag == "a" and one["href"] == URL]
    assert linked and all(one["rel"] == "noopener noreferrer" for one in linked)
    names = [one["id"] for _, one in elements.found if "id" in one]
    assert len(names) == len(set(names))


def test_malicious_texts_are_escaped(page_file: Path) -> None:
    page = page_file.read_text()
    text = Elements(page).text
    assert [tag for tag, _ in Elements(page).found].count("script") == 2
    assert ATTACK in text and "<script>alert('id')</script>" in text and '"><b onclick="alert(3)">' in text
    assert "{{ 7 * 7 }}" in text and "<i>All & $every$</i>" in text
    assert not set(page) & set("\u202e\u2066\x07\x1b")
    assert "⟨U+202E⟩turned" in text and "⟨U+001B⟩[31m" in text
    assert "부산" in text and "no title" in text
    assert "not a JSON object" in text


def test_a_page_needs_jinja2(filled: CommandLine, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    environment.cache_clear()
    monkeypatch.setitem(sys.modules, "jinja2", None)
    assert "nearsim-db[report]" in filled.fail("report", "-o", tmp_path / "report.html")


@pytest.mark.slow("starts a browser")
def test_empty_collections_have_a_report(nearsim: CommandLine, stories: Path) -> None:
    nearsim.succeed("collection", "create", "empty")
    assert "the collection has no profile yet" in nearsim.succeed("report", "-c", "empty", "-o", "-").out
    nearsim.succeed("profile", "create", "p", "--collection", "empty")
    assert "has no documents yet" in nearsim.succeed("report", "-c", "empty", "-o", "-").out
    nearsim.succeed("ingest", stories, "-q")
    nearsim.succeed("profile", "create", "exact", "--set", "match.threshold=1.0")
    exact = nearsim.succeed("report", "-p", "exact", "--output", "-").out
    assert "and 1 twin at 1, each with the first document of the same features" in exact
    unlike = [{"id": str(number), "text": unlike_any_other(number)} for number in range(2)]
    nearsim.succeed("ingest", write_jsonl(stories.with_name("unlike.jsonl"), unlike), "-c", "unlike", "-q")
    assert "There are no pairs to draw" in nearsim.succeed("report", "-c", "unlike", "--output", "-").out
