"""What the in-memory runtime does beyond the promise: scripts by attempt, faults, virtual time. The promise
itself is proved by tests/contract/cri."""

from __future__ import annotations

import asyncio

import pytest

from podling.cri.grpc import cri_pb2 as pb
from podling.cri.hollow.runtime import HollowRuntime
from podling.cri.hollow.script import HollowImage, Script, VirtualTimers
from podling.cri.interface import EventKind, RuntimeEvent, RuntimeFault

_SANDBOX = pb.PodSandboxConfig(metadata=pb.PodSandboxMetadata(name="web", namespace="default", uid="u"))


def _config(image: str, attempt: int = 0) -> pb.ContainerConfig:
    metadata = pb.ContainerMetadata(name="app", attempt=attempt)
    return pb.ContainerConfig(metadata=metadata, image=pb.ImageSpec(image=image))


async def _start(runtime: HollowRuntime, image: str, attempt: int = 0) -> str:
    sandbox_id = await runtime.run_pod_sandbox(_SANDBOX)
    container_id = await runtime.create_container(sandbox_id, _config(image, attempt), _SANDBOX)
    await runtime.start_container(container_id)
    return container_id


async def test_each_attempt_has_its_script_and_the_last_repeats() -> None:
    """R-INIT-2: fails twice, then succeeds."""
    timers = VirtualTimers()
    runs = [Script(exit_code=1), Script(exit_code=2), Script(exit_code=0)]
    runtime = HollowRuntime({"flaky": HollowImage(runs, present=True)}, timers)
    codes = []
    for attempt in range(4):
        container_id = await _start(runtime, "flaky", attempt)
        timers.advance(0)
        codes.append((await runtime.container_status(container_id)).exit_code)
    assert codes == [1, 2, 0, 0]


async def test_a_container_exits_after_its_time() -> None:
    timers = VirtualTimers()
    runtime = HollowRuntime({"job": HollowImage([Script(exit_code=0, after=600)], present=True)}, timers)
    container_id = await _start(runtime, "job")
    timers.advance(599)
    assert (await runtime.container_status(container_id)).state == pb.CONTAINER_RUNNING
    timers.advance(1)
    status = await runtime.container_status(container_id)
    assert status.state == pb.CONTAINER_EXITED
    assert status.finished_at - status.started_at == 600 * 10**9


async def test_what_ignores_term_is_killed_when_the_time_is_over() -> None:
    timers = VirtualTimers()
    runtime = HollowRuntime({"stubborn": HollowImage([Script(term_code=None)], present=True)}, timers)
    container_id = await _start(runtime, "stubborn")
    async with asyncio.TaskGroup() as group:
        stop = group.create_task(runtime.stop_container(container_id, 30))
        await asyncio.sleep(0)
        timers.advance(29)
        await asyncio.sleep(0)
        assert not stop.done()
        timers.advance(1)
    assert (await runtime.container_status(container_id)).exit_code == 137


async def test_pulls_fail_as_often_as_told() -> None:
    faults = [RuntimeFault("UNAVAILABLE", "no route"), RuntimeFault("UNKNOWN", "denied")]
    runtime = HollowRuntime({"late": HollowImage(pull_faults=faults)})
    for message in ("no route", "denied"):
        with pytest.raises(RuntimeFault, match=message):
            await runtime.pull_image("late")
        assert await runtime.image_status("late") is None
    reference = await runtime.pull_image("late")
    image = await runtime.image_status("late")
    assert image is not None
    assert image.id == reference


async def test_a_container_that_cannot_start_has_ended() -> None:
    fault = RuntimeFault("UNKNOWN", "no such file or directory")
    runtime = HollowRuntime({"broken": HollowImage([Script(start_fault=fault)], present=True)})
    with pytest.raises(RuntimeFault, match="no such file"):
        await _start(runtime, "broken")
    (container,) = await runtime.list_containers()
    status = await runtime.container_status(container.id)
    assert (status.state, status.exit_code, status.reason) == (pb.CONTAINER_EXITED, 128, "StartError")


async def test_a_container_that_cannot_be_created_is_not_there() -> None:
    fault = RuntimeFault("UNKNOWN", "mount refused")
    runtime = HollowRuntime({"broken": HollowImage([Script(create_fault=fault)], present=True)})
    with pytest.raises(RuntimeFault, match="mount refused"):
        await _start(runtime, "broken")
    assert await runtime.list_containers() == []


async def test_a_lost_sandbox_takes_its_containers_and_its_address_with_it() -> None:
    """R-INIT-4: a pod whose sandbox was lost starts over."""
    runtime = HollowRuntime({"app": HollowImage(present=True)})
    container_id = await _start(runtime, "app")
    (sandbox,) = await runtime.list_pod_sandbox()
    runtime.lose_sandbox(sandbox.id)
    status = await runtime.pod_sandbox_status(sandbox.id)
    assert (status.state, status.network.ip) == (pb.SANDBOX_NOTREADY, "")
    assert (await runtime.container_status(container_id)).exit_code == 137


async def test_a_memory_kill_is_told_before_the_exit() -> None:
    timers = VirtualTimers()
    script = Script(exit_code=137, out_of_memory=True)
    runtime = HollowRuntime({"greedy": HollowImage([script], present=True)}, timers)
    events = runtime.events()
    assert await anext(events) == RuntimeEvent(EventKind.RELIST)
    container_id = await _start(runtime, "greedy")
    timers.advance(0)
    heard = [await anext(events) for _ in range(4)]
    assert [event.kind.value for event in heard] == ["started", "started", "oom", "exited"]
    assert (await runtime.container_status(container_id)).reason == "OOMKilled"


async def test_a_broken_stream_says_relist_again() -> None:
    runtime = HollowRuntime({})
    events = runtime.events()
    await anext(events)
    runtime.reconnect()
    assert await anext(events) == RuntimeEvent(EventKind.RELIST)


async def test_calls_are_kept_in_order() -> None:
    runtime = HollowRuntime({"app": HollowImage()})
    await runtime.pull_image("app")
    container_id = await _start(runtime, "app")
    await runtime.stop_container(container_id, 1)
    await runtime.remove_container(container_id)
    assert runtime.calls == [
        "pull app",
        "run default/web#0",
        "create app#0",
        "start app#0",
        "stop app#0",
        "remove app#0",
    ]


async def test_a_sandbox_on_the_node_has_no_address_of_its_own() -> None:
    options = pb.NamespaceOption(network=pb.NODE)
    security = pb.LinuxSandboxSecurityContext(namespace_options=options)
    runtime = HollowRuntime({})
    sandbox_id = await runtime.run_pod_sandbox(
        pb.PodSandboxConfig(linux=pb.LinuxPodSandboxConfig(security_context=security))
    )
    assert (await runtime.pod_sandbox_status(sandbox_id)).network.ip == ""
