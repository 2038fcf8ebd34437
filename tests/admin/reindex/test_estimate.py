"""Estimate of the remaining time of a build from the duration of its stages."""

import pytest

from nearsim_db.admin.reindex.status import STAGES, StageProgress, WorkRate, estimate, seconds_by_stage

USUAL = {"sign": 0.001, "bands": 0.002, "pairs": 0.003, "clusters": 0.004}


def test_first_stage_is_estimated_from_its_own_speed() -> None:
    progress = StageProgress("sign", 10_000, share=0.5, share_before=0.0, elapsed_seconds=10.0, queued=0)
    percent, left = estimate(progress, USUAL, {}, None)
    assert left == pytest.approx(10 + 20 + 30 + 40)
    assert percent == pytest.approx(100 * 10 / 110)


def test_later_stages_are_scaled_by_the_slowdown_of_earlier_ones() -> None:
    progress = StageProgress("pairs", 10_000, share=0.0, share_before=0.0, elapsed_seconds=0.0, queued=500)
    percent, left = estimate(progress, USUAL, {"sign": 20.0, "bands": 40.0}, 100.0)
    assert left == pytest.approx(2 * (30 + 40) + 5)
    assert percent == pytest.approx(100 * 60 / 205)


def test_resumed_stage_excludes_earlier_work_from_its_speed() -> None:
    progress = StageProgress("sign", 10_000, share=0.75, share_before=0.5, elapsed_seconds=10.0, queued=0)
    _, left = estimate(progress, USUAL, {}, None)
    assert left == pytest.approx(10 + 20 + 30 + 40)


@pytest.mark.parametrize("stage", STAGES)
@pytest.mark.parametrize("share", [None, 0.0, 1.0])
@pytest.mark.parametrize("documents", [0, 1, 10**7])
def test_estimates_stay_within_bounds(stage: str, share: float | None, documents: int) -> None:
    for elapsed in (0.0, 1e6):
        percent, left = estimate(StageProgress(stage, documents, share, 0.0, elapsed, 0), USUAL, {}, None)
        assert 0 <= percent <= 100 and left >= 0


def test_estimate_of_a_built_generation_is_its_queue() -> None:
    assert estimate(StageProgress("done", 10_000, None, 0.0, 0.0, 500), USUAL, {}, 50.0)[1] == pytest.approx(
        10
    )
    assert estimate(StageProgress("done", 10_000, None, 0.0, 0.0, 0), USUAL, {}, 50.0) == (100, 0)


def test_seconds_of_a_small_build_are_ignored() -> None:
    spent = {"sign": 2.0, "bands": 4.0, "pairs": 6.0, "clusters": 8.0}
    assert seconds_by_stage({"documents": 2_000, "seconds": spent}) == USUAL
    assert seconds_by_stage({"documents": 20, "seconds": spent}) == seconds_by_stage({})
    assert seconds_by_stage({"documents": 2_000, "seconds": {"sign": 2.0}}) == seconds_by_stage({})


def test_the_rate_is_reported_every_two_seconds() -> None:
    times = iter([0.0, 1.0, 4.0, 5.0])
    rate = WorkRate(lambda: next(times))
    assert [rate.measure("sign", 100), rate.measure("search", 300), rate.measure("search", 400)] == [
        None,
        100.0,
        None,
    ]
