"""Which log is meant: the kubelet's answers to every state a container can be in."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest

from podling.kubelet.server.log_requests import NoLog, has_container, log_of, parse_request
from podling.model.types.container import Container, EphemeralContainer
from podling.model.types.meta import ObjectMeta
from podling.model.types.pod import Pod, PodSpec
from podling.model.types.pod_status import (
    ContainerState,
    ContainerStateRunning,
    ContainerStateTerminated,
    ContainerStateWaiting,
    ContainerStatus,
    PodStatus,
)

NOW = datetime(2026, 1, 2, 3, 4, 5, tzinfo=UTC)
RUNNING = ContainerState(running=ContainerStateRunning())
NOTHING = ContainerState()


def ended(container_id: str = "") -> ContainerState:
    return ContainerState(terminated=ContainerStateTerminated(container_id=container_id))


def waiting(reason: str) -> ContainerState:
    return ContainerState(waiting=ContainerStateWaiting(reason=reason))


def pod(state: ContainerState, last: ContainerState = NOTHING) -> Pod:
    status = ContainerStatus(name="c", state=state, last_state=last, container_id="x://now")
    spec = PodSpec(containers=[Container(name="c"), Container(name="new")])
    return Pod(metadata=ObjectMeta(name="p"), spec=spec, status=PodStatus(container_statuses=[status]))


@pytest.mark.parametrize(
    ("state", "last", "previous", "expected"),
    [
        (RUNNING, NOTHING, False, "x://now"),
        (RUNNING, ended("x://before"), False, "x://now"),
        (RUNNING, ended("x://before"), True, "x://before"),
        (ended("x://end"), NOTHING, False, "x://end"),
        (ended(), ended("x://before"), False, "x://before"),
        (waiting("CrashLoopBackOff"), ended("x://before"), False, "x://before"),
    ],
)
def test_the_log_that_is_meant(
    state: ContainerState, last: ContainerState, previous: bool, expected: str
) -> None:
    assert log_of(pod(state, last), "c", previous=previous) == expected


@pytest.mark.parametrize(
    ("state", "previous", "why"),
    [
        (RUNNING, True, 'previous terminated container "c" in pod "p" not found'),
        (ended(), False, 'container "c" in pod "p" is terminated'),
        (NOTHING, False, 'container "c" in pod "p" is waiting to start - no logs yet'),
        (waiting("PodInitializing"), False, 'container "c" in pod "p" is waiting to start: PodInitializing'),
        (
            waiting("ErrImagePull"),
            False,
            'container "c" in pod "p" is waiting to start: image can\'t be pulled',
        ),
        (
            waiting("ImagePullBackOff"),
            False,
            'container "c" in pod "p" is waiting to start: trying and failing to pull image',
        ),
    ],
)
def test_why_there_is_none(state: ContainerState, previous: bool, why: str) -> None:
    with pytest.raises(NoLog) as error:
        log_of(pod(state), "c", previous=previous)
    assert str(error.value) == why


def test_a_container_without_a_status_is_not_available() -> None:
    with pytest.raises(NoLog, match='container "new" in pod "p" is not available'):
        log_of(pod(RUNNING), "new", previous=False)


def test_containers_of_every_kind_are_found() -> None:
    """R-INIT-8."""
    spec = PodSpec(
        init_containers=[Container(name="init")],
        containers=[Container(name="app")],
        ephemeral_containers=[EphemeralContainer(name="debug")],
    )
    names = [has_container(Pod(spec=spec), name) for name in ("init", "app", "debug", "none")]
    assert names == [True, True, True, False]


def test_options_of_a_query() -> None:
    asked = parse_request(
        {"follow": "true", "timestamps": "true", "previous": "false", "tailLines": "3", "limitBytes": "9"},
        NOW,
    )
    assert (asked.follow, asked.previous, asked.tail_lines) == (True, False, 3)
    assert (asked.options.timestamps, asked.options.limit_bytes, asked.options.since) == (True, 9, 0)


def test_since_is_counted_from_now_or_given() -> None:
    from_now = parse_request({"sinceSeconds": "5"}, NOW).options.since
    given = parse_request({"sinceTime": "2026-01-02T03:04:00Z"}, NOW).options.since
    assert from_now == given == int(NOW.timestamp() - 5) * 10**9


def test_a_query_that_is_none_is_a_value_error() -> None:
    with pytest.raises(ValueError, match="invalid literal"):
        parse_request({"tailLines": "many"}, NOW)
