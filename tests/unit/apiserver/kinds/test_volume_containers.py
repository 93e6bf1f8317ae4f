"""Which volume containers the API takes, and what it makes of them; R-VOL-1."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from podling.apiserver.connect.kubelets import chosen_container
from podling.apiserver.kinds.pods.pods import Pods
from podling.apiserver.rules.pod.spec import validate_pod
from podling.model.gates import Gates
from podling.model.types.pod import Pod
from podling.model.types.volume import ImageVolumeSource

ON = Gates({"ContainerVolumes": True})
MakePod = Callable[..., Pod]


def with_container(make_pod: MakePod, **container: Any) -> Pod:
    given = {
        "name": "clone",
        "image": "git",
        "volumeMounts": [{"name": "repo", "mountPath": "/repo"}],
        **container,
    }
    other = {"name": "other", "emptyDir": {}}
    return make_pod(volumes=[{"name": "repo", "container": given}, other])


def faults(pod: Pod, gates: Gates = ON) -> list[str]:
    return [f"{cause.field}: {cause.message}" for cause in validate_pod(pod, gates)]


def test_it_has_the_defaults_of_a_container_and_its_log_is_found(make_pod: MakePod) -> None:
    pod = with_container(make_pod)
    assert faults(pod) == []
    container = pod.spec.volumes[0].container
    assert container is not None
    assert container.image_pull_policy == "Always"
    assert chosen_container(pod, "clone") == "clone"


@pytest.mark.parametrize(("source", "gate"), [("container", "ContainerVolumes"), ("image", "ImageVolume")])
def test_with_its_gate_off_a_source_is_refused_to_new_pods_and_left_to_others(
    make_pod: MakePod, source: str, gate: str
) -> None:
    """R-VOL-1, R-VOL-2"""
    pod = with_container(make_pod)
    if source == "image":
        pod.spec.volumes[0].container = None
        pod.spec.volumes[0].image = ImageVolumeSource(reference="git", pull_policy="Always")
    off = Pods(Gates({gate: False}))
    [cause] = off.validate_create(pod)
    assert cause.field == f"spec.volumes[0].{source}"
    assert cause.message == f"Forbidden: may not be set when the feature gate {gate} is disabled"
    assert off.validate(pod) == [] == Pods(Gates({gate: True})).validate_create(pod)


@pytest.mark.parametrize(
    ("given", "where", "why"),
    [
        ({"name": ""}, "name", "Required value"),
        ({"image": ""}, "image", "Required value"),
        ({"name": "app"}, "name", "Duplicate value"),
        ({"restartPolicy": "Always"}, "restartPolicy", "Forbidden: may not be set for volume containers"),
        ({"volumeMounts": []}, "volumeMounts", "Required value: must mount the volume it initializes"),
        (
            {"volumeMounts": [{"name": "other", "mountPath": "/x"}]},
            "volumeMounts[0].name",
            'Invalid value: "other": must be the volume that the container initializes',
        ),
        ({"lifecycle": {}}, "lifecycle", "Forbidden: may not be set for init containers"),
        ({"readinessProbe": {"exec": {"command": ["x"]}}}, "readinessProbe", "Forbidden"),
    ],
)
def test_what_it_may_not_be(make_pod: MakePod, given: dict[str, Any], where: str, why: str) -> None:
    found = faults(with_container(make_pod, **given))
    assert any(fault.startswith(f"spec.volumes[0].container.{where}: {why}") for fault in found), found


def test_a_volume_has_one_source(make_pod: MakePod) -> None:
    pod = with_container(make_pod)
    pod.spec.volumes[0].empty_dir = pod.spec.volumes[1].empty_dir
    assert any("may not specify more than 1 volume type" in fault for fault in faults(pod))
