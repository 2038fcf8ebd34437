"""nearsim passages, with --common too, and --ignore FILE."""

import json
import re
from pathlib import Path

from nearsim_db import Document, Index
from nearsim_db.similarity.recipe import from_mapping
from tests.builders.command_line import CommandLine
from tests.indexing.test_ignore_common import FOOTER, pages
from tests.search.test_passages import DOCUMENTS, FRAME, STORY


def test_passages_are_printed_side_by_side(index: Index, nearsim: CommandLine) -> None:
    index.create_profile("default", from_mapping({"sketch": {"family": "winnow"}}))
    changed = STORY.split()
    changed[30] = "changed"
    index.add([*DOCUMENTS, Document("again", None, " ".join(changed))])
    out = nearsim.succeed("passages", "again", "longer").out
    assert "passage 1: 59 equal words, 98 % of the longer side" in out
    assert f"characters {len(FRAME) + 15:,} to" in out
    assert "[-changed-]" in out and f"{{+#{STORY.split()[30][4:]}+}}" in out
    why = nearsim.succeed("why", "again", "longer").out
    assert out.strip() in why
    assert re.search(r"similarity +\d\.\d{4}: \d+ of \d+ features of the smaller are in both", why)
    assert re.search(r"shared_bands +[1-9]\d* fingerprints\n", why)
    assert "they share no fingerprint" in nearsim.succeed("why-not", "story", "alone").out
    assert nearsim.succeed("passages", "alone", "again").out == "no passage is in both\n"
    value = json.loads(nearsim.succeed("passages", "story", "longer", "--json").out)
    assert (value["left"], value["right"], len(value["passages"])) == ("story", "longer", 1)
    assert (
        json.loads(nearsim.succeed("why", "story", "longer", "--json").out)["passages"] == value["passages"]
    )


def test_given_texts_are_left_out(nearsim: CommandLine, tmp_path: Path) -> None:
    every = pages(FOOTER, 30, "page")
    few = {name: every[name] for name in ("page0", "page24", "page1", "page2")}
    file, footer = tmp_path / "pages.jsonl", tmp_path / "footer.txt"
    file.write_text("".join(f"{json.dumps({'id': name, 'text': text})}\n" for name, text in few.items()))
    footer.write_text(FOOTER)
    options = ("--preset", "embedded-stories", "--threshold", "0.3")
    for ignored, expected in ((False, 6), (True, 1)):
        more = ("--ignore", str(footer)) if ignored else ()
        summary = json.loads(nearsim.succeed("dedupe", str(file), "--dry-run", *options, *more, "--json").out)
        assert summary["pairs"] == expected
    nearsim.succeed("ingest", str(file), *options, "--ignore", str(footer))
    found = json.loads(nearsim.succeed("pairs", "--json").out)
    assert [(one["left"], one["right"]) for one in found] == [("page0", "page24")]
    assert json.loads(nearsim.succeed("passages", "page1", "page2", "--json").out)["passages"] == []
    assert nearsim.succeed("passages", "--common").out == "no fingerprint is left out\n"
    shown = [nearsim.succeed(*command).out for command in (("stats",), ("profile", "show", "default"))]
    assert all("20 equal words in a row" in one and "amplification" not in one for one in shown)
    tables = [nearsim.succeed(*command).out for command in (("profile", "list"), ("ingest", str(file)))]
    assert all("never missed: 20 equal words in a row" in one for one in tables)
    summary = nearsim.succeed("dedupe", str(file), "--dry-run", *options).out
    assert re.search("never missed +20 equal words in a row\n", summary)
    assert "by its most equal words in a row" in shown[0]
    assert "or --common" in nearsim.fail("passages", exit_code=2)
    refused = nearsim.fail("dedupe", str(file), "--dry-run", "--ignore", str(footer), exit_code=2)
    assert "match.ignore belongs to the family winnow" in refused
    footer.write_bytes(b"\xff")
