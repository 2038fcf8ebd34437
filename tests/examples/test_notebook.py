"""The notebook of the examples runs from top to bottom and prints what it says."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.examples.conftest import EXAMPLES

NOTEBOOK = EXAMPLES / "python" / "notebook.ipynb"


@pytest.mark.slow("starts a process")
def test_the_notebook_runs_from_top_to_bottom(database_url: str) -> None:
    cells = json.loads(NOTEBOOK.read_text("utf-8"))["cells"]
    code = "\n\n".join("".join(one["source"]) for one in cells if one["cell_type"] == "code")
    ended = subprocess.run(
        [sys.executable, "-c", code],
        env=os.environ | {"NEARSIM_DATABASE_URL": database_url, "NEARSIM_BACKEND": "numpy"},
        cwd=EXAMPLES.parent,
        capture_output=True,
        text=True,
        check=False,
    )
    assert (ended.returncode, ended.stderr) == (0, "")
    counts, *removed, longest, table = ended.stdout.splitlines()
    assert counts == "84 kept, 29 removed, 42 pairs"
    assert len(removed) == 3 and longest.endswith(" kept")
    assert table == "42 ['similarity', 'intersection', 'union']"


def test_the_notebook_has_no_outputs() -> None:
    cells = json.loads(NOTEBOOK.read_text("utf-8"))["cells"]
    code = [one for one in cells if one["cell_type"] == "code"]
    assert len(code) > 3 and not any(one["outputs"] or one["execution_count"] for one in code)


def test_the_page_of_jobs_links_to_the_notebook() -> None:
    page = Path(EXAMPLES.parent / "docs" / "how-to" / "jobs.md").read_text("utf-8")
    assert "../examples/python/notebook.ipynb" in page
