"""Profiles: processor time by statement and by function, and the cost of a command."""

import sys
from pathlib import Path

import pytest

from benchmarks import profiling, statements
from benchmarks.corpus import Corpus, write_corpus
from benchmarks.processes import run_measured

STACKS = [
    "process 7:python;main (nearsim_db/cli/app.py);walk (/a/site-packages/x/y.py);walk (/a/site-packages/x/y.py) 10",
    "process 7:python;main (nearsim_db/cli/app.py) 4",
    "process 7:python;main (nearsim_db/cli/app.py);_find_and_load (<frozen importlib>);deep (z.py) 6",
    "process 7:python 2",
]
LOG = """2026-11-22 10:00:00.000 UTC [12] LOG:  QUERY STATISTICS
2026-11-22 10:00:00.000 UTC [12] DETAIL:  ! system usage stats:
\t!\t0.250000 s user, 0.500000 s system, 9.000000 s elapsed
\t!\t[8.000000 s user, 8.000000 s system total]
2026-11-22 10:00:00.000 UTC [12] STATEMENT:  -- Empty the band table before an interrupted load is repeated.
\tTRUNCATE "nearsim_index"."band_7"
2026-11-22 10:00:01.000 UTC [13] LOG:  an unrelated message
2026-11-22 10:00:02.000 UTC [13] STATEMENT:  SELECT 1
"""


def test_functions_count_recursion_once_and_imports_as_one() -> None:
    found = {one.name: (one.own, one.total) for one in profiling.functions(STACKS)}
    assert found == {
        "main (nearsim_db/cli/app.py)": (4 / profiling.RATE, 20 / profiling.RATE),
        "walk (site-packages/x/y.py)": (10 / profiling.RATE, 10 / profiling.RATE),
        "(imports)": (6 / profiling.RATE, 6 / profiling.RATE),
    }


def test_statements_of_a_log_have_their_processor_time_and_name() -> None:
    (first, seconds), (second, none) = statements.logged_statements(LOG)
    assert (seconds, none) == (0.75, 0)
    assert statements.name_in(first) == "truncate_bands"
    assert statements.normalise(first) == 'TRUNCATE "nearsim_index"."band_7"'
    assert statements.name_in(second) is None


def test_constants_and_parameters_are_equal() -> None:
    sent = statements.normalise("-- why\nSELECT 12, 'it', true FROM t_1 WHERE a = $1")
    assert sent == statements.normalise("SELECT $2, $3,  $4 FROM t_1\nWHERE a = $1;")


def test_a_commands_cost_includes_its_children() -> None:
    child = "import time; held = bytearray(200_000_000)\nwhile time.process_time() < 0.5: sum(range(10_000))"
    code = f"import subprocess, sys; subprocess.run([sys.executable, '-c', {child!r}])"
    cost, _ = run_measured([sys.executable, "-c", code], {})
    assert cost.megabytes > 200
    assert cost.wall > 0.5 and cost.client > 0.5 and cost.server == 0


def test_failures_show_what_the_command_printed() -> None:
    with pytest.raises(RuntimeError, match="no such thing"):
        run_measured([sys.executable, "-c", "raise SystemExit('no such thing')"], {})


@pytest.mark.slow("starts a server with pg_stat_statements and runs commands")
@pytest.mark.parametrize("command", ["ingest", "work"])
def test_statements_of_commands_are_profiled(
    command: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(profiling, "find_sampler", lambda: None)
    write_corpus(Corpus(300, seed=1).documents(), tmp_path / "corpus.jsonl.gz", None)
    file = tmp_path / "corpus.jsonl.gz"
    printed = profiling.main(profiling.Command(command), corpus=file, top=40)
    expected = "look_up_candidates" if command == "work" else "copy_documents"
    assert f"nearsim {command} of corpus.jsonl.gz" in printed and expected in printed
