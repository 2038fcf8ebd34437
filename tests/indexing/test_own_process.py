"""What processes of nearsim's own import."""

import subprocess
import sys

import pytest

PROGRAM = """
import sys
from nearsim_db.store.settings import prepare_process
prepare_process()
from nearsim_db.similarity.encoder import Encoder
from nearsim_db.similarity.profile import resolve
from nearsim_db.similarity.recipe import Recipe
Encoder(resolve(Recipe()), "numba").encode(["a text of some words"])
print("numba" in sys.modules, "scipy.linalg" in sys.modules)
"""


@pytest.mark.slow("starts numba")
def test_numba_starts_without_scipy() -> None:
    ended = subprocess.run([sys.executable, "-c", PROGRAM], capture_output=True, text=True, check=True)
    assert ended.stdout.split() == ["True", "False"]
