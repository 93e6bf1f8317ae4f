"""Which runs of containers have logs, and whether another run will come."""

from __future__ import annotations

from typing import Any

import pytest

from podling.debug.container import WishError
from podling.debug.runs import Run, check_chosen, chosen, newest_run, steps_before
from podling.model.codec import json
from podling.model.types.pod import Pod

RUNNING = {"running": {"startedAt": "2026-01-02T03:04:05Z"}}
DONE, FAILED = ({"terminated": {"exitCode": code}} for code in (0, 1))
WAITING = {"waiting": {"reason": "CrashLoopBackOff"}}


def pod(policy: str = "Always", phase: str = "Running", **more: Any) -> Pod:
    metadata = {"name": "web", **more.pop("metadata", {})}
    spec = {
        "restartPolicy": policy,
        "initContainers": [
            {"name": "first", "image": "i"},
            {"name": "proxy", "image": "i", "restartPolicy": "Always"},
            {"name": "second", "image": "i"},
        ],
        "containers": [{"name": "app", "image": "i"}],
        "ephemeralContainers": [{"name": "debug", "image": "i"}],
    }
    return json.from_data({"metadata": metadata, "spec": spec, "status": {"phase": phase, **more}}, Pod)


def with_state(name: str, state: dict[str, Any], policy: str = "Always", **more: Any) -> Pod:
    lists = {"app": "containerStatuses", "debug": "ephemeralContainerStatuses"}
    status = {"name": name, "state": state, "containerID": "x://1", "restartCount": 3}
    listed: Any = {lists.get(name, "initContainerStatuses"): [status]}
    return pod(policy, **listed, **more)


@pytest.mark.parametrize(
    ("name", "state", "policy", "is_over", "is_last"),
    [
        ("app", RUNNING, "Always", False, False),
        ("app", DONE, "Always", True, False),
        ("app", WAITING, "Always", True, False),
        ("app", DONE, "OnFailure", True, True),
        ("app", FAILED, "OnFailure", True, False),
        ("app", FAILED, "Never", True, True),
        ("first", DONE, "Always", True, True),
        ("first", FAILED, "Always", True, False),
        ("first", FAILED, "Never", True, True),
        ("proxy", FAILED, "Never", True, False),
        ("debug", FAILED, "Always", True, True),
        ("debug", RUNNING, "Always", False, False),
    ],
)
def test_a_run_is_the_last_if_the_kubelet_starts_no_other(
    name: str, state: dict[str, Any], policy: str, is_over: bool, is_last: bool
) -> None:
    assert newest_run(with_state(name, state, policy), name) == Run("x://1", 3, is_over, is_last)


def test_nothing_runs_again_in_a_pod_that_is_over() -> None:
    assert newest_run(with_state("app", FAILED, phase="Failed"), "app").is_last
    assert newest_run(pod(phase="Succeeded"), "second") == Run(is_last=True)
    going = {"deletionTimestamp": "2026-01-02T03:04:05Z"}
    assert newest_run(with_state("app", FAILED, metadata=going), "app").is_last
    assert not newest_run(with_state("app", RUNNING, metadata=going), "app").is_last
    assert newest_run(pod(), "app") == Run()


def test_containers_are_chosen_in_the_order_they_start() -> None:
    assert chosen(pod(), ()) == ["first", "proxy", "second", "app", "debug"]
    assert chosen(pod(), ("app", "first", "other")) == ["first", "app"]
    check_chosen([], ("app",))
    check_chosen([pod()], ("app",))
    with pytest.raises(WishError, match="pod web has no container ap: there are first, proxy, second, app"):
        check_chosen([pod()], ("app", "ap"))
    with pytest.raises(WishError, match="none of the pods has a container ap"):
        check_chosen([pod(), pod()], ("ap",))


def test_steps_come_before_what_follows_them() -> None:
    assert steps_before(pod(), "app") == ["first", "second"]
    assert steps_before(pod(), "second") == ["first"]
    assert steps_before(pod(), "first") == []
