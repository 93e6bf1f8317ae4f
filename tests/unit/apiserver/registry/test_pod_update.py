"""What of a pod may change once it exists, and in whose hands."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from podling.apiserver.registry.pods import Pods
from podling.model.pod import Pod

MakePod = Callable[..., Pod]

APP = {"name": "app", "image": "busybox"}
INIT = {"name": "init", "image": "a"}
TOLERATION = {"key": "a", "operator": "Exists", "effect": "NoExecute", "tolerationSeconds": 5}
OTHER_FIELDS = (
    "spec: Forbidden: pod updates may not change fields other than `spec.containers[*].image`,"
    "`spec.initContainers[*].image`,`spec.activeDeadlineSeconds`,"
    "`spec.tolerations` (only additions to existing tolerations),"
    "`spec.terminationGracePeriodSeconds` (allow it to be set to 1 if it was previously negative)\n"
)


def faults(new: Pod, old: Pod) -> list[str]:
    return [f"{cause.field}: {cause.message}" for cause in Pods().validate_update(new, old)]


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ({}, {}),
        ({}, {"containers": [{**APP, "image": "other"}]}),
        ({"initContainers": [INIT]}, {"initContainers": [{**INIT, "image": "b"}]}),
        ({}, {"activeDeadlineSeconds": 5}),
        ({"activeDeadlineSeconds": 5}, {"activeDeadlineSeconds": 4}),
        ({"tolerations": [TOLERATION]}, {"tolerations": [TOLERATION, {"operator": "Exists"}]}),
        ({"tolerations": [TOLERATION]}, {"tolerations": [{**TOLERATION, "tolerationSeconds": 1}]}),
        ({"terminationGracePeriodSeconds": -1}, {"terminationGracePeriodSeconds": 1}),
        ({"schedulingGates": [{"name": "g"}]}, {"schedulingGates": []}),
    ],
)
def test_may_change(make_pod: MakePod, before: dict[str, Any], after: dict[str, Any]) -> None:
    """R-INIT-5: of an init container, the image."""
    assert faults(make_pod(**after), make_pod(**before)) == []


@pytest.mark.parametrize(
    ("before", "after", "expected"),
    [
        (
            {},
            {"containers": [APP, INIT]},
            ["spec.containers: Forbidden: pod updates may not add or remove containers"],
        ),
        (
            {"initContainers": [INIT]},
            {"initContainers": None},
            ["spec.initContainers: Forbidden: pod updates may not add or remove containers"],
        ),
        (
            {"initContainers": [INIT]},
            {"initContainers": [{**INIT, "command": ["x"]}]},
            [f'{OTHER_FIELDS}+ spec.initContainers[0].command: ["x"]'],
        ),
        (
            {"nodeName": "a"},
            {"nodeName": "b"},
            [f'{OTHER_FIELDS}- spec.nodeName: "a"\n+ spec.nodeName: "b"'],
        ),
        (
            {"ephemeralContainers": [{"name": "e", "image": "a", "command": ["x"]}]},
            {"ephemeralContainers": [{"name": "e", "image": "a", "command": ["y"]}]},
            [
                f'{OTHER_FIELDS}- spec.ephemeralContainers[0].command[0]: "x"\n'
                '+ spec.ephemeralContainers[0].command[0]: "y"'
            ],
        ),
        (
            {"activeDeadlineSeconds": 5},
            {"activeDeadlineSeconds": 6},
            ["spec.activeDeadlineSeconds: Invalid value: 6: must be less than or equal to previous value"],
        ),
        (
            {"activeDeadlineSeconds": 5},
            {},
            [
                "spec.activeDeadlineSeconds: Invalid value: null: "
                "must not update from a positive integer to nil value"
            ],
        ),
        (
            {"tolerations": [TOLERATION]},
            {},
            [
                "spec.tolerations: Forbidden: "
                "existing toleration can not be modified except its tolerationSeconds"
            ],
        ),
        (
            {},
            {"schedulingGates": [{"name": "g"}]},
            ["spec.schedulingGates: Forbidden: only deletion is allowed, but found new scheduling gate 'g'"],
        ),
    ],
)
def test_may_not_change(
    make_pod: MakePod, before: dict[str, Any], after: dict[str, Any], expected: list[str]
) -> None:
    assert faults(make_pod(**after), make_pod(**before)) == expected


def test_metadata_that_is_fixed(make_pod: MakePod) -> None:
    new = make_pod(metadata={"uid": "other"})
    assert faults(new, make_pod()) == ['metadata.uid: Invalid value: "other": field is immutable']


def test_an_update_of_the_pod_leaves_its_status_alone(make_pod: MakePod) -> None:
    new, old = make_pod(status={"phase": "Failed"}), make_pod(status={"phase": "Running"})
    Pods().prepare_update(new, old)
    assert new.status.phase == "Running"


STATUS = Pods.subresources["status"]


def terminated(code: int) -> dict[str, Any]:
    return {"containerStatuses": [{"name": "app", "state": {"terminated": {"exitCode": code}}}]}


RUNNING = {"containerStatuses": [{"name": "app", "state": {"running": {}}}]}


def test_an_update_of_the_status_leaves_the_rest_alone(make_pod: MakePod) -> None:
    new = make_pod(status={"phase": "Running"}, nodeName="elsewhere")
    old = make_pod(status={"phase": "Pending", "qosClass": "BestEffort"}, nodeName="here")
    STATUS.prepare_update(new, old)
    assert (new.spec.node_name, new.status.phase, new.status.qos_class) == ("here", "Running", "BestEffort")


@pytest.mark.parametrize(
    ("policy", "before", "after", "allowed"),
    [
        ("Always", terminated(0), RUNNING, True),
        ("OnFailure", terminated(1), RUNNING, True),
        ("OnFailure", terminated(0), RUNNING, False),
        ("Never", terminated(1), RUNNING, False),
        ("Never", RUNNING, terminated(1), True),
        ("Never", terminated(1), terminated(1), True),
    ],
)
def test_a_container_that_ended_for_good_stays_so(
    make_pod: MakePod, policy: str, before: Any, after: Any, allowed: bool
) -> None:
    new, old = make_pod(status=after, restartPolicy=policy), make_pod(status=before, restartPolicy=policy)
    causes = STATUS.validate_update(new, old)
    expected = [] if allowed else ["Forbidden: may not be transitioned to non-terminated state"]
    assert [cause.message for cause in causes] == expected
