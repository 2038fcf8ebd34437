"""--ignore FILE, and nearsim fingerprints --common."""

import json
from pathlib import Path

from tests.builders.command_line import CommandLine
from tests.indexing.test_ignore_common import FOOTER, pages


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
    assert nearsim.succeed("fingerprints", "--common").out == "no fingerprint is left out\n"
    assert "give --common" in nearsim.fail("fingerprints", exit_code=2)
    refused = nearsim.fail("dedupe", str(file), "--dry-run", "--ignore", str(footer), exit_code=2)
    assert "match.ignore belongs to the family winnow" in refused
    footer.write_bytes(b"\xff")
