"""nearsim passages: the passages of two documents, side by side and for machines."""

import json

from nearsim_db import Document, Index
from nearsim_db.similarity.recipe import from_mapping
from tests.builders.command_line import CommandLine
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
    assert out.strip() in nearsim.succeed("why", "again", "longer").out
    assert nearsim.succeed("passages", "alone", "again").out == "no passage is in both\n"
    value = json.loads(nearsim.succeed("passages", "story", "longer", "--json").out)
    assert (value["left"], value["right"], len(value["passages"])) == ("story", "longer", 1)
    assert (
        json.loads(nearsim.succeed("why", "story", "longer", "--json").out)["passages"] == value["passages"]
    )
