"""What is asked of the runtime is counted, and asked all the same."""

from __future__ import annotations

import inspect

import pytest

from podling.cri.hollow.runtime import HollowRuntime
from podling.cri.interface import Runtime, RuntimeFault
from podling.kubelet.metrics.counters import OPERATIONS, OperationCounts, counted


async def test_calls_errors_and_durations_are_counted() -> None:
    counts = OperationCounts()
    runtime = counted(HollowRuntime({}), counts)
    assert (await runtime.version()).runtime_name == "hollow"
    await runtime.version()
    with pytest.raises(RuntimeFault):
        await runtime.container_status("gone")
    assert counts.calls == {"version": 2, "container_status": 1}
    assert counts.errors == {"container_status": 1}
    assert counts.seconds["version"].buckets()[-1] == ("+Inf", 2)


async def test_the_stream_of_events_is_the_runtimes_own() -> None:
    async for event in counted(HollowRuntime({}), OperationCounts()).events():
        assert event.kind.value == "relist"
        break


def test_what_is_counted_is_promised() -> None:
    promised = {name for name, _ in inspect.getmembers(Runtime, inspect.iscoroutinefunction)}
    assert set(OPERATIONS) <= promised
