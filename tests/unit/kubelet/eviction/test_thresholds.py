"""What the node must have left, and for how long it may have less: told as tables."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from podling.kubelet.config import KubeletConfig
from podling.kubelet.eviction.thresholds import Pressure, Reading, Threshold, is_crossed, thresholds
from podling.kubelet.node.shared import DISK_PRESSURE, MEMORY_PRESSURE
from podling.kubelet.options.signals import (
    ALLOCATABLE_MEMORY,
    IMAGEFS,
    IMAGEFS_INODES,
    MEMORY,
    NODEFS,
    NODEFS_INODES,
    PIDS,
    Amount,
    ThresholdError,
    parse_amount,
)

NOW = datetime(2026, 1, 2, 3, 4, 5, tzinfo=UTC)
MI = 1 << 20
FIVE = timedelta(minutes=5)


def config(**more: Any) -> KubeletConfig:
    return KubeletConfig("n", Path("/"), Path("/"), **more)


def after(seconds: float) -> datetime:
    return NOW + timedelta(seconds=seconds)


@pytest.mark.parametrize(
    ("text", "amount"),
    [("100Mi", Amount(100 * MI)), ("10%", Amount(share=0.1)), ("0", Amount()), ("1k", Amount(1000))],
)
def test_an_amount_is_a_quantity_or_a_share(text: str, amount: Amount) -> None:
    assert parse_amount(text) == amount


@pytest.mark.parametrize("text", ["", "ten", "x%", "-5%", "-1Mi"])
def test_what_is_no_amount(text: str) -> None:
    with pytest.raises(ThresholdError):
        parse_amount(text)


def test_what_is_kept_free_unless_told_otherwise() -> None:
    known = {threshold.signal: threshold.amount for threshold in thresholds(config())}
    assert known == {
        MEMORY: Amount(100 * MI),
        ALLOCATABLE_MEMORY: Amount(100 * MI),
        NODEFS: Amount(share=0.1),
        NODEFS_INODES: Amount(share=0.05),
        IMAGEFS: Amount(share=0.15),
        IMAGEFS_INODES: Amount(share=0.05),
    }


def test_soft_thresholds_have_a_grace_period_and_zero_is_none() -> None:
    told = config(
        eviction_hard={MEMORY: "0", NODEFS: "0%"},
        eviction_soft={PIDS: "5%"},
        eviction_soft_grace={PIDS: timedelta(seconds=90)},
        eviction_minimum_reclaim={PIDS: "100"},
    )
    assert thresholds(told) == (Threshold(PIDS, Amount(share=0.05), timedelta(seconds=90), Amount(100)),)


@pytest.mark.parametrize(
    "wrong",
    [
        {"eviction_hard": {"cpu.available": "1"}},
        {"eviction_hard": {ALLOCATABLE_MEMORY: "1Gi"}},
        {"eviction_soft": {MEMORY: "1Gi"}},
    ],
)
def test_thresholds_that_make_no_sense_are_refused(wrong: dict[str, Any]) -> None:
    with pytest.raises(ThresholdError):
        thresholds(config(**wrong))


HARD = Threshold(MEMORY, Amount(100), reclaim=Amount(20))
SOFT = Threshold(NODEFS, Amount(share=0.2), timedelta(seconds=90))


@pytest.mark.parametrize(
    ("available", "again", "crossed"),
    [(101, False, False), (100, False, False), (99, False, True), (119, True, True), (120, True, False)],
)
def test_a_threshold_is_crossed_until_the_minimum_reclaim_is_there(
    available: int, again: bool, crossed: bool
) -> None:
    assert is_crossed(HARD, {MEMORY: Reading(available, 1000)}, again=again) == crossed


def test_what_cannot_be_read_is_not_crossed() -> None:
    assert not is_crossed(HARD, {})


def test_a_hard_threshold_is_due_at_once_and_a_soft_one_after_its_grace() -> None:
    low = {MEMORY: Reading(1, 1000), NODEFS: Reading(1, 1000)}
    pressure = Pressure().next((SOFT, HARD), low, NOW, FIVE)
    assert pressure.due(NOW) == [HARD]
    assert pressure.due(after(89)) == [HARD]
    assert pressure.due(after(90)) == [HARD, SOFT]
    assert pressure.conditions == {MEMORY_PRESSURE, DISK_PRESSURE}


def test_a_soft_threshold_that_was_not_crossed_for_once_begins_anew() -> None:
    low, well = {NODEFS: Reading(1, 1000)}, {NODEFS: Reading(900, 1000)}
    pressure = Pressure().next((SOFT,), low, NOW, FIVE)
    pressure = pressure.next((SOFT,), well, after(10), FIVE)
    pressure = pressure.next((SOFT,), low, after(20), FIVE)
    assert pressure.due(after(100)) == []
    assert pressure.due(after(110)) == [SOFT]


def test_a_condition_stays_for_the_transition_period() -> None:
    low, well = {MEMORY: Reading(1, 1000)}, {MEMORY: Reading(900, 1000)}
    pressure = Pressure().next((HARD,), low, NOW, FIVE)
    pressure = pressure.next((HARD,), well, after(10), FIVE)
    assert pressure.due(after(10)) == []
    assert pressure.conditions == {MEMORY_PRESSURE}
    assert pressure.next((HARD,), well, after(299), FIVE).conditions == {MEMORY_PRESSURE}
    assert pressure.next((HARD,), well, after(300), FIVE).conditions == frozenset()
