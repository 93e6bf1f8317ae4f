"""What a pod's writer left open is filled in as Kubernetes fills it in."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from podling.apiserver.kinds.pods.pods import Pods
from podling.apiserver.kinds.pods.warnings import template_warnings
from podling.model.codec import json
from podling.model.rules.defaults import default_pod, default_pod_spec, pull_policy
from podling.model.types.container import Container
from podling.model.types.pod import Pod, PodSpec, PodTemplateSpec

MakePod = Callable[..., Pod]


def test_the_smallest_pod(make_pod: MakePod) -> None:
    assert json.to_data(make_pod().spec) == {
        "containers": [
            {
                "name": "app",
                "image": "busybox",
                "resources": {},
                "terminationMessagePath": "/dev/termination-log",
                "terminationMessagePolicy": "File",
                "imagePullPolicy": "Always",
            }
        ],
        "restartPolicy": "Always",
        "terminationGracePeriodSeconds": 30,
        "dnsPolicy": "ClusterFirst",
        "securityContext": {},
        "schedulerName": "default-scheduler",
        "enableServiceLinks": True,
    }


def container(pod: Pod) -> Any:
    return json.to_data(pod.spec.containers[0])


def volume(pod: Pod) -> Any:
    return json.to_data(pod.spec.volumes[0])


PROBE = {"timeoutSeconds": 1, "periodSeconds": 10, "successThreshold": 1, "failureThreshold": 3}


@pytest.mark.parametrize(
    ("fields", "filled"),
    [
        ({"ports": [{"containerPort": 80}]}, {"ports": [{"containerPort": 80, "protocol": "TCP"}]}),
        (
            {"livenessProbe": {"httpGet": {"port": 80}}},
            {"livenessProbe": {**PROBE, "httpGet": {"path": "/", "port": 80, "scheme": "HTTP"}}},
        ),
        (
            {"readinessProbe": {"grpc": {"port": 80}}},
            {"readinessProbe": {**PROBE, "grpc": {"port": 80, "service": ""}}},
        ),
        (
            {"lifecycle": {"preStop": {"httpGet": {"port": "web"}}}},
            {"lifecycle": {"preStop": {"httpGet": {"path": "/", "port": "web", "scheme": "HTTP"}}}},
        ),
        (
            {"resources": {"limits": {"cpu": "1", "memory": "1Gi"}, "requests": {"cpu": "500m"}}},
            {
                "resources": {
                    "limits": {"cpu": "1", "memory": "1Gi"},
                    "requests": {"cpu": "500m", "memory": "1Gi"},
                }
            },
        ),
        (
            {"env": [{"name": "A", "valueFrom": {"fieldRef": {"fieldPath": "metadata.name"}}}]},
            {
                "env": [
                    {
                        "name": "A",
                        "valueFrom": {"fieldRef": {"apiVersion": "v1", "fieldPath": "metadata.name"}},
                    }
                ]
            },
        ),
    ],
)
def test_containers(make_pod: MakePod, fields: dict[str, Any], filled: dict[str, Any]) -> None:
    pod = make_pod(containers=[{"name": "app", "image": "busybox", **fields}])
    assert {key: container(pod)[key] for key in filled} == filled


@pytest.mark.parametrize(
    ("source", "filled"),
    [
        ({}, {"emptyDir": {}}),
        ({"hostPath": {"path": "/"}}, {"hostPath": {"path": "/", "type": ""}}),
        ({"secret": {"secretName": "s"}}, {"secret": {"secretName": "s", "defaultMode": 420}}),
        ({"configMap": {"name": "c"}}, {"configMap": {"name": "c", "defaultMode": 420}}),
        ({"image": {"reference": "a:1"}}, {"image": {"reference": "a:1", "pullPolicy": "IfNotPresent"}}),
        (
            {"projected": {"sources": [{"serviceAccountToken": {"path": "t"}}]}},
            {
                "projected": {
                    "sources": [{"serviceAccountToken": {"expirationSeconds": 3600, "path": "t"}}],
                    "defaultMode": 420,
                }
            },
        ),
        (
            {"downwardAPI": {"items": [{"path": "p", "fieldRef": {"fieldPath": "metadata.labels"}}]}},
            {
                "downwardAPI": {
                    "items": [
                        {"path": "p", "fieldRef": {"apiVersion": "v1", "fieldPath": "metadata.labels"}}
                    ],
                    "defaultMode": 420,
                }
            },
        ),
    ],
)
def test_volumes(make_pod: MakePod, source: dict[str, Any], filled: dict[str, Any]) -> None:
    assert volume(make_pod(volumes=[{"name": "v", **source}])) == {"name": "v", **filled}


def test_resources_are_rounded_up_to_thousandths(make_pod: MakePod) -> None:
    fine = {"limits": {"cpu": "1u", "memory": "1.0001Ki"}, "requests": {"cpu": "1n", "memory": "0.01Ki"}}
    milli = {"limits": {"cpu": "1m", "memory": "1024103m"}, "requests": {"cpu": "1m", "memory": "10240m"}}
    pod = make_pod(containers=[{"name": "c", "image": "i", "resources": fine}], overhead={"cpu": "1.0001"})
    assert container(pod)["resources"] == milli
    assert json.to_data(pod.spec)["overhead"] == {"cpu": "1001m"}


@pytest.mark.parametrize(
    ("image", "policy"),
    [
        ("busybox", "Always"),
        ("busybox:latest", "Always"),
        ("localhost:5000/busybox", "Always"),
        ("busybox:1.36", "IfNotPresent"),
        ("localhost:5000/a/busybox:1", "IfNotPresent"),
        ("busybox@sha256:abc", "IfNotPresent"),
        ("busybox:latest@sha256:abc", "IfNotPresent"),
    ],
)
def test_an_image_that_may_have_moved_is_pulled_always(image: str, policy: str) -> None:
    assert pull_policy(image) == policy


def test_ports_of_a_pod_on_the_hosts_network_are_the_hosts(make_pod: MakePod) -> None:
    ports = [{"containerPort": 80}]
    pod = make_pod(hostNetwork=True, containers=[{"name": "app", "image": "a", "ports": ports}])
    assert pod.spec.containers[0].ports[0].host_port == 80


def test_the_old_name_of_the_service_account_follows_the_new_one(make_pod: MakePod) -> None:
    assert make_pod(serviceAccount="a").spec.service_account_name == "a"
    assert make_pod(serviceAccount="a", serviceAccountName="b").spec.service_account == "b"


def test_init_and_ephemeral_containers_have_the_same_defaults(make_pod: MakePod) -> None:
    pod = make_pod(
        initContainers=[{"name": "i", "image": "a:1"}], ephemeralContainers=[{"name": "e", "image": "a:1"}]
    )
    for one in (*pod.spec.init_containers, *pod.spec.ephemeral_containers):
        assert (one.image_pull_policy, one.termination_message_policy) == ("IfNotPresent", "File")


def test_defaulting_twice_changes_nothing(make_pod: MakePod) -> None:
    pod = make_pod(volumes=[{"name": "v"}], initContainers=[{"name": "i", "image": "a"}])
    once = json.encode(pod)
    Pods().default(pod)
    assert json.encode(pod) == once


@pytest.mark.parametrize(
    ("whole", "containers", "requests"),
    [
        ({"limits": {"cpu": "2"}}, [{}], {"cpu": "2"}),
        ({"limits": {"cpu": "2"}}, [{"cpu": "500m"}, {"cpu": "250m"}], {"cpu": "750m"}),
        ({"limits": {"cpu": "2"}}, [{"memory": "1Gi"}], {"cpu": "2", "memory": "1Gi"}),
        ({"limits": {"cpu": "2"}, "requests": {"cpu": "1"}}, [{"cpu": "500m"}], {"cpu": "1"}),
        ({"limits": {"hugepages-2Mi": "4Mi"}}, [{"cpu": "1"}], {"cpu": "1", "hugepages-2Mi": "4Mi"}),
        ({"requests": {"cpu": "1"}}, [{"memory": "1Gi"}], {"cpu": "1"}),
    ],
)
def test_a_pod_limited_as_a_whole_requests_as_a_whole(
    make_pod: MakePod, whole: Any, containers: list[Any], requests: Any
) -> None:
    listed = [
        {"name": f"c{i}", "image": "a", "resources": {"requests": one}} for i, one in enumerate(containers)
    ]
    resources = make_pod(resources=whole, containers=listed).spec.resources
    assert resources is not None
    assert {name: str(amount) for name, amount in resources.requests.items()} == requests


def test_a_negative_grace_period_is_a_second_of_a_pod() -> None:
    """A template keeps it, and is warned of it."""
    spec = PodSpec(containers=[Container(name="c")], termination_grace_period_seconds=-5)
    default_pod_spec(spec)
    assert spec.termination_grace_period_seconds == -5
    [told] = template_warnings(PodTemplateSpec(spec=spec), "spec.template")
    assert told.startswith("spec.template.spec.terminationGracePeriodSeconds: must be >= 0; ")
    default_pod(Pod(spec=spec))
    assert spec.termination_grace_period_seconds == 1
