"""What a worker knows: exits are facts, answers may be late, and nothing goes backwards."""

from collections.abc import Callable
from datetime import UTC, datetime, timedelta

import pytest
from msgspec.structs import replace

from podling.cri.interface import RuntimeFault
from podling.kubelet.pod.containers import ContainerType, StartError, refused
from podling.kubelet.pod.observed import ContainerState, ObservedContainer, ObservedSandbox, StartFailure
from podling.kubelet.worker.observe import PodRecord

NOW = datetime(2026, 1, 2, 3, 4, 5, tzinfo=UTC)
NANOSECONDS = int(NOW.timestamp()) * 10**9
SANDBOX = ObservedSandbox("s", 0, NOW, ready=True)
CREATED = ObservedContainer("c", "app", ContainerType.REGULAR, "s", 0, ContainerState.CREATED, NOW)
RUNNING = replace(CREATED, state=ContainerState.RUNNING, started_at=NOW, image_id="sha256:1")


def record() -> PodRecord:
    made = PodRecord()
    made.put_sandbox(SANDBOX)
    made.put_container(CREATED)
    return made


def test_an_exit_is_a_fact_even_while_the_runtime_answers_running() -> None:
    known = record()
    assert known.exited("c", 7, NANOSECONDS, NOW)
    assert not known.exited("c", 7, NANOSECONDS, NOW)
    known.put_container(RUNNING)
    [container] = known.observed().containers
    assert (container.state, container.exit_code, container.finished_at) == (ContainerState.EXITED, 7, NOW)
    assert container.image_id == "sha256:1"


def test_one_that_ended_before_it_was_looked_at_did_not_run_since_the_epoch() -> None:
    known = record()
    known.exited("c", 1, NANOSECONDS + 10**9, NOW)
    [container] = known.observed().containers
    assert container.finished_at - container.started_at == timedelta(seconds=1)


def test_a_kill_for_memory_is_the_reason_of_the_exit_that_follows() -> None:
    known = record()
    known.out_of_memory("c")
    known.exited("c", 137, NANOSECONDS, NOW)
    assert known.observed().containers[0].reason == "OOMKilled"


@pytest.mark.parametrize(("code", "reason"), [(0, ""), (143, ""), (137, "OOMKilled")])
def test_one_that_was_spared_ends_as_it_likes_whatever_the_runtime_says(code: int, reason: str) -> None:
    """R-EPH-12: only being killed after all is taken for the kernel's doing."""
    known = record()
    known.spared("c")
    known.put_container(replace(RUNNING, reason="OOMKilled"))
    known.exited("c", code, NANOSECONDS, NOW)
    assert known.observed().containers[0].reason == reason
    ended = replace(RUNNING, state=ContainerState.EXITED, exit_code=code, reason="OOMKilled")
    known.put_container(ended)
    assert known.observed().containers[0].reason == reason


def test_one_that_was_spared_may_be_killed_for_memory_later() -> None:
    known = record()
    known.spared("c")
    known.out_of_memory("c")
    known.spared("c")
    known.exited("c", 1, NANOSECONDS, NOW)
    assert known.observed().containers[0].reason == "OOMKilled"


@pytest.mark.parametrize(("code", "reason"), [(0, ""), (137, "OOMKilled")])
@pytest.mark.parametrize("tell", [PodRecord.out_of_memory, PodRecord.spared])
def test_a_kill_for_memory_may_be_told_after_the_exit(
    tell: Callable[[PodRecord, str], bool], code: int, reason: str
) -> None:
    known = record()
    known.put_container(RUNNING)
    known.exited("c", code, NANOSECONDS, NOW)
    assert tell(known, "c") == bool(reason)
    assert not tell(known, "c")
    assert known.observed().containers[0].reason == reason


def test_the_exit_of_a_sandbox_makes_it_unusable_and_it_stays_so() -> None:
    known = record()
    known.exited("s", 137, NANOSECONDS, NOW)
    known.put_sandbox(SANDBOX)
    assert not known.observed().sandboxes[0].usable


def test_a_late_list_neither_forgets_what_is_new_nor_takes_anything_back() -> None:
    known = record()
    known.put_container(RUNNING)
    asked = known.mark()
    fresh = replace(CREATED, id="d", attempt=1)
    known.put_container(fresh)
    known.replace_all([SANDBOX], [CREATED], asked)
    assert {c.id: c.state for c in known.observed().containers} == {
        "c": ContainerState.RUNNING,
        "d": ContainerState.CREATED,
    }
    known.replace_all([], [], known.mark())
    assert (known.observed().sandboxes, known.observed().containers) == ((), ())


def test_failures_are_counted_until_the_container_starts() -> None:
    known = PodRecord()
    for count in (1, 2):
        known.failed("app", StartError("ErrImagePull", "m"), NOW)
        assert known.observed().failures["app"].count == count
    known.succeeded("app")
    known.failed("app", StartError("ErrImagePull", "m"), NOW)
    assert known.observed().failures["app"].count == 1


def test_what_a_runtime_that_went_away_failed_at_does_not_count() -> None:
    known = PodRecord()
    away = refused("RunContainerError", "Socket closed", RuntimeFault("UNAVAILABLE", "Socket closed"))
    known.failed("app", away, NOW)
    assert known.observed().failures["app"] == StartFailure("RunContainerError", "Socket closed", 0, NOW)
    known.failed("app", refused("RunContainerError", "no", RuntimeFault("UNKNOWN", "no")), NOW)
    known.failed("app", away, NOW)
    assert known.observed().failures["app"].count == 1
