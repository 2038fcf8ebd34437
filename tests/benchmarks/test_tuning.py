"""The script that compares the promises of tune with the built profile."""

import json
from pathlib import Path

import pytest

from benchmarks.tuning import measure, read_options, table
from nearsim_db.analysis.tuning import TuningOptions
from nearsim_db.similarity import presets
from tests.analysis.test_tuning import synthetic_corpus

pytestmark = pytest.mark.slow("a benchmark")


def test_forecast_and_measured_figures(tmp_path: Path) -> None:
    path = tmp_path / "corpus.jsonl"
    records = [{"id": name, "text": text} for name, text in synthetic_corpus(120, 40)]
    path.write_text("".join(json.dumps(record) + "\n" for record in records))
    options = read_options(["--documents", str(path)])
    kept = measure(
        options.documents[0], presets.load(presets.DEFAULT), options.sample, TuningOptions(threshold=0.6)
    )
    assert (kept.corpus, kept.documents, kept.sampled, kept.pairs) == ("corpus", 170, 170, 40)
    assert kept.forecast_pairs == 40
    assert kept.recall == pytest.approx(kept.promised_recall, abs=0.05)
    assert kept.candidates == pytest.approx(kept.forecast_candidates, abs=0.2)
    assert "| corpus | 170 | 170 |" in table([kept])
