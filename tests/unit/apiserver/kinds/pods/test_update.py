"""What an update of a pod, and of its subresource `status`, leaves alone. What they may change is in
`pod_tables/changes/update.yaml` and `status.yaml`."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from podling.apiserver.kinds.pods.pods import Pods
from podling.apiserver.kinds.pods.status import PodStatusPart
from podling.model.gates import Gates
from podling.model.types.pod import Pod

MakePod = Callable[..., Pod]

PART = PodStatusPart()


def test_an_update_of_the_pod_leaves_its_status_alone(make_pod: MakePod) -> None:
    new, old = make_pod(status={"phase": "Failed"}), make_pod(status={"phase": "Running"})
    Pods().prepare_update(new, old)
    assert new.status.phase == "Running"


def test_it_leaves_the_rest_alone(make_pod: MakePod) -> None:
    new = make_pod(status={"phase": "Running"}, nodeName="elsewhere")
    old = make_pod(status={"phase": "Pending", "qosClass": "BestEffort"}, nodeName="here")
    PART.prepare_update(new, old)
    assert (new.spec.node_name, new.status.phase, new.status.qos_class) == ("here", "Running", "BestEffort")


def conditions(*generations: int, type: str = "Ready") -> list[dict[str, Any]]:
    return [{"type": type, "status": "True", "observedGeneration": one} for one in generations]


@pytest.mark.parametrize(
    ("before", "sent", "kept"),
    [
        ({"observedGeneration": 3}, {}, (3, [])),
        ({"observedGeneration": 3}, {"observedGeneration": 4}, (4, [])),
        ({"conditions": conditions(3)}, {"conditions": conditions(0)}, (0, [3])),
        ({"conditions": conditions(3)}, {"conditions": conditions(4)}, (0, [4])),
        ({"conditions": conditions(3)}, {"conditions": conditions(0, type="Other")}, (0, [0])),
        ({"conditions": conditions(3, 5)}, {"conditions": conditions(0, 0, 0)}, (0, [3, 5, 0])),
    ],
)
def test_writers_that_know_no_observed_generation_do_not_clear_it(
    make_pod: MakePod, before: Any, sent: Any, kept: Any
) -> None:
    new = make_pod(status=sent)
    PART.prepare_update(new, make_pod(status=before))
    status = new.status
    assert (status.observed_generation, [c.observed_generation for c in status.conditions]) == kept


def test_debug_containers_are_shown_behind_their_gate(make_pod: MakePod) -> None:
    """R-DBG-1"""
    shown = {"ephemeralContainerStatuses": [{"name": "e"}]}
    for on in (True, False):
        new = make_pod(status=shown)
        PodStatusPart(Gates({"DebugSubresource": on})).prepare_update(new, make_pod())
        assert len(new.status.debug_container_statuses) == on


def shown(digest: bool) -> dict[str, Any]:
    """The status of somebody whose gates are on."""
    image = {"volumeStatus": {"image": {"imageRef": "sha256:1"}}} if digest else {}
    mounted = [
        {"name": "app", "stopSignal": "SIGUSR1", "volumeMounts": [{"name": "v", "mountPath": "/v", **image}]}
    ]
    claims = [{"resourceClaimName": "c"}] if digest else []
    return {
        "initContainerStatuses": mounted,
        "containerStatuses": mounted,
        "nodeAllocatableResourceClaimStatuses": claims,
    }


@pytest.mark.parametrize(("before", "kept"), [(False, False), (True, True)])
def test_alpha_fields_of_a_status_are_as_if_they_had_not_been_said(
    make_pod: MakePod, before: bool, kept: bool
) -> None:
    new = make_pod(status=shown(True))
    PART.prepare_update(new, make_pod(status=shown(before)))
    assert len(new.status.node_allocatable_resource_claim_statuses) == kept
    for container in (*new.status.init_container_statuses, *new.status.container_statuses):
        assert container.stop_signal == "SIGUSR1"
        assert (container.volume_mounts[0].volume_status is not None) == kept
