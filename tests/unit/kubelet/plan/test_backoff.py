from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest
from msgspec.structs import replace

from podling.kubelet.plan.restart import crashes_after, delay, restart_at, retry_at


def test_ten_seconds_doubling_to_five_minutes():
    """R-INIT-2"""
    delays = [delay(failures).total_seconds() for failures in (0, 1, 2, 3, 4, 5, 6, 7, 1000)]
    assert delays == [0, 10, 20, 40, 80, 160, 300, 300, 300]


@pytest.mark.parametrize(("ran_for", "crashes"), [(1, 6), (600, 6), (601, 1)])
def test_more_than_ten_minutes_of_running_clear_the_record(scene, ran_for, crashes):
    """R-INIT-2"""
    (ended,) = scene.observed(scene.pod("a"), "a=exit1~5").containers
    ended = replace(ended, started_at=ended.finished_at - timedelta(seconds=ran_for))
    assert crashes_after(ended) == crashes


def test_one_that_could_not_start_did_not_run_since_the_epoch(scene):
    (ended,) = scene.observed(scene.pod("a"), "a=exit128~5").containers
    ended = replace(ended, started_at=datetime(1970, 1, 1, tzinfo=UTC), created_at=scene.ago(3))
    assert crashes_after(ended) == 6


def test_delays_count_from_the_end(scene):
    (ended,) = scene.observed(scene.pod("a"), "a=exit1~2@5").containers
    assert restart_at(ended) == scene.ago(5) + timedelta(seconds=20)
    assert retry_at(scene.failure("ErrImagePull", 5, count=2)) == scene.ago(5) + timedelta(seconds=20)
    assert retry_at(scene.failure("RunContainerError", 5, count=0)) == scene.ago(4)
