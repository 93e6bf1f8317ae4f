"""A pod's beginning, its end, and what is posted to it."""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime
from typing import Any

import pytest

from podling.apiserver.kinds.kind import Action, Deletion
from podling.apiserver.kinds.pods.pods import Pods
from podling.model.codec.json import from_data
from podling.model.errors import StatusError
from podling.model.types.meta import DeleteOptions
from podling.model.types.pod import Binding, Eviction, Pod

MakePod = Callable[..., Pod]

NOW = datetime(2026, 1, 1, 0, 0, 10, tzinfo=UTC)
PODS = Pods()
LIMITS = {"limits": {"cpu": "1", "memory": "1Gi"}}


def test_a_new_pod_is_pending_whatever_its_writer_says(make_pod: MakePod) -> None:
    pod = make_pod(status={"phase": "Running", "podIP": "10.0.0.1"})
    PODS.prepare_create(pod, NOW)
    assert (pod.status.phase, pod.status.pod_ip, pod.status.qos_class) == ("Pending", "", "BestEffort")


def test_its_qos_class_comes_from_its_resources(make_pod: MakePod) -> None:
    pod = make_pod(containers=[{"name": "a", "image": "a", "resources": LIMITS}])
    PODS.prepare_create(pod, NOW)
    assert pod.status.qos_class == "Guaranteed"


def test_a_gated_pod_says_so(make_pod: MakePod) -> None:
    pod = make_pod(schedulingGates=[{"name": "g"}])
    PODS.prepare_create(pod, NOW)
    assert [(c.type, c.status, c.reason) for c in pod.status.conditions] == [
        ("PodScheduled", "False", "SchedulingGated")
    ]


ENDING = {"deletionTimestamp": "2026-01-01T00:00:30Z", "deletionGracePeriodSeconds": 30}


@pytest.mark.parametrize(
    ("pod", "grace", "stays", "ends", "seconds"),
    [
        ({}, None, False, "2026-01-01T00:00:10Z", 0),
        ({"nodeName": "n"}, None, True, "2026-01-01T00:00:40Z", 30),
        ({"nodeName": "n"}, 5, True, "2026-01-01T00:00:15Z", 5),
        ({"nodeName": "n"}, 0, False, "2026-01-01T00:00:10Z", 0),
        ({"nodeName": "n"}, -3, True, "2026-01-01T00:00:11Z", 1),
        ({"nodeName": "n", "terminationGracePeriodSeconds": 7}, None, True, "2026-01-01T00:00:17Z", 7),
        ({"nodeName": "n", "status": {"phase": "Succeeded"}}, None, False, "2026-01-01T00:00:10Z", 0),
        ({"nodeName": "n", "status": {"phase": "Failed"}}, 30, False, "2026-01-01T00:00:10Z", 0),
        # the second deletion may only shorten
        ({"nodeName": "n", "metadata": ENDING}, None, True, "2026-01-01T00:00:30Z", 30),
        ({"nodeName": "n", "metadata": ENDING}, 60, True, "2026-01-01T00:00:30Z", 30),
        ({"nodeName": "n", "metadata": ENDING}, 10, True, "2026-01-01T00:00:10Z", 10),
        ({"nodeName": "n", "metadata": ENDING}, 0, False, "2026-01-01T00:00:00Z", 0),
        (
            {"nodeName": "n", "metadata": {**ENDING, "deletionGracePeriodSeconds": None}},
            None,
            False,
            "2026-01-01T00:00:30Z",
            None,
        ),
        # who creates a pod by apply may say anything of its deletion
        (
            {"nodeName": "n", "metadata": {**ENDING, "deletionTimestamp": "0001-01-01T00:00:00Z"}},
            0,
            False,
            "0001-01-01T00:00:00Z",
            0,
        ),
    ],
)
def test_graceful_deletion(
    make_pod: MakePod, pod: dict[str, Any], grace: int | None, stays: bool, ends: str, seconds: int | None
) -> None:
    doomed = make_pod(**pod)
    assert PODS.graceful_delete(doomed, DeleteOptions(grace_period_seconds=grace), NOW) == stays
    meta = doomed.metadata
    assert (meta.deletion_timestamp, meta.deletion_grace_period_seconds) == (ends, seconds)


def binding(**fields: Any) -> Binding:
    return from_data({"metadata": {"name": "p"}, "target": {"kind": "Node", "name": "n"}, **fields}, Binding)


def effect(subresource: str, pod: Pod, body: Any) -> Pod | Deletion:
    action = PODS.subresources[subresource]
    assert isinstance(action, Action)
    found: Pod | Deletion = action.effect(pod, body, NOW)
    return found


def test_binding_gives_the_pod_to_a_node(make_pod: MakePod) -> None:
    pod = make_pod(metadata={"generation": 1, "annotations": {"a": "1"}})
    bound = effect("binding", pod, binding(metadata={"annotations": {"b": "2"}}))
    assert isinstance(bound, Pod)
    assert bound.spec.node_name == "n"
    assert bound.metadata.annotations == {"a": "1", "b": "2"}
    condition = bound.status.conditions[0]
    assert (condition.type, condition.status) == ("PodScheduled", "True")
    assert condition.last_transition_time == "2026-01-01T00:00:10Z"
    assert pod.spec.node_name == ""


@pytest.mark.parametrize(
    ("pod", "body", "code", "message"),
    [
        ({"nodeName": "m"}, {}, 409, 'pod p is already assigned to node "m"'),
        ({"metadata": ENDING}, {}, 409, "pod p is being deleted, cannot be assigned to a host"),
        ({"schedulingGates": [{"name": "g"}]}, {}, 409, "pod p has non-empty .spec.schedulingGates"),
        ({}, {"metadata": {"uid": "other"}}, 409, "UID in precondition: other, UID in object meta: u"),
        ({}, {"target": {}}, 422, "target.name: Required value"),
        ({}, {"target": {"kind": "Pod", "name": "n"}}, 422, 'Unsupported value: "Pod"'),
    ],
)
def test_a_binding_that_cannot_be(
    make_pod: MakePod, pod: dict[str, Any], body: dict[str, Any], code: int, message: str
) -> None:
    with pytest.raises(StatusError) as refused:
        effect("binding", make_pod(**pod), binding(**body))
    assert refused.value.code == code
    assert message in refused.value.message


def test_an_eviction_is_a_deletion(make_pod: MakePod) -> None:
    options = {"gracePeriodSeconds": 3}
    body = from_data({"metadata": {"name": "p"}, "deleteOptions": options}, Eviction)
    deletion = effect("eviction", make_pod(), body)
    assert isinstance(deletion, Deletion)
    assert deletion.options.grace_period_seconds == 3


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("spec.nodeName", "n"),
        ("spec.restartPolicy", "Always"),
        ("spec.schedulerName", "default-scheduler"),
        ("spec.hostNetwork", "false"),
        ("status.phase", "Running"),
        ("status.podIP", "10.0.0.1"),
    ],
)
def test_selectable_fields(make_pod: MakePod, field: str, value: str) -> None:
    pod = make_pod(nodeName="n", status={"phase": "Running", "podIPs": [{"ip": "10.0.0.1"}]})
    assert PODS.selectable_fields[field](pod) == value


def faults(new: Pod, old: Pod) -> list[str]:
    return [fault.field for fault in PODS.validate_changed(new, old)]


def test_a_spec_that_stands_is_not_judged_again(make_pod: MakePod) -> None:
    """What came under other rules must not keep its labels from being changed."""
    was = make_pod(hostAliases=[{"ip": "::ffff:10.0.0.1"}])
    assert faults(was, was) == []
    same = make_pod(hostAliases=[{"ip": "::ffff:10.0.0.1"}])
    same.metadata.labels = {"a b": "c"}
    same.metadata.annotations = {"container.apparmor.security.beta.kubernetes.io/none": "nonsense"}
    assert faults(same, was) == [
        "metadata.labels",
        "metadata.annotations[container.apparmor.security.beta.kubernetes.io/none]",
        "metadata.annotations[container.apparmor.security.beta.kubernetes.io/none]",
    ]


def test_a_spec_that_changes_is_judged_whole(make_pod: MakePod) -> None:
    was = make_pod(hostAliases=[{"ip": "::ffff:10.0.0.1"}])
    new = make_pod(hostAliases=[{"ip": "::ffff:10.0.0.1"}], tolerations=[{"key": "k", "operator": "Exists"}])
    assert faults(new, was) == [fault.field for fault in PODS.validate(new)] == ["spec.hostAliases[0].ip"]
