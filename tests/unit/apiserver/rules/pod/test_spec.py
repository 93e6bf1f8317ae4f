"""What is wrong with a pod, where a line of `pod_tables/` cannot say it: gates, order, too many."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from podling.apiserver.kinds.pods.pods import Pods, PodTemplates
from podling.model.codec.json import from_data
from podling.model.gates import Gates
from podling.model.types.pod import Pod, PodTemplate

MakePod = Callable[..., Pod]

APP = {"name": "app", "image": "busybox"}
PROBE = {"exec": {"command": ["true"]}}
PROBED = Gates({"InitContainerLivenessProbe": True})


def faults(pod: Pod, gates: Gates | None = None) -> list[str]:
    pods = Pods(gates) if gates else Pods()
    return [f"{cause.field}: {cause.message}" for cause in pods.validate(pod)]


def test_every_fault_is_reported_at_once_in_kubernetes_order(make_pod: MakePod) -> None:
    pod = make_pod(
        restartPolicy="x",
        containers=[{**APP, "image": ""}],
        initContainers=[{"name": "init", "image": "a", "livenessProbe": PROBE}],
        volumes=[{"name": "V"}],
        os={"name": "plan9"},
    )
    assert [fault.split(":")[0] for fault in faults(pod)] == [
        "spec.volumes[0].name",
        "spec.containers[0].image",
        "spec.initContainers[0].livenessProbe",
        "spec.restartPolicy",
        "spec.os",
    ]


@pytest.mark.parametrize(
    ("fields", "expected"),
    [
        ({"livenessProbe": PROBE}, []),
        ({"livenessProbe": {}}, ["livenessProbe: Required value: must specify a handler type"]),
        (
            {"startupProbe": PROBE},
            ["startupProbe: Forbidden: may not be set for init containers without restartPolicy=Always"],
        ),
    ],
)
def test_a_gate_lets_init_containers_be_probed(
    make_pod: MakePod, fields: dict[str, Any], expected: list[str]
) -> None:
    """R-INIT-6"""
    pod = make_pod(initContainers=[{"name": "init", "image": "a", **fields}])
    assert faults(pod, PROBED) == [f"spec.initContainers[0].{fault}" for fault in expected]


def test_the_gate_counts_for_templates_too() -> None:
    """R-INIT-6"""
    spec = {"containers": [APP], "initContainers": [{"name": "init", "image": "a", "livenessProbe": PROBE}]}
    template = from_data(
        {"metadata": {"name": "t", "namespace": "default"}, "template": {"spec": spec}}, PodTemplate
    )
    PodTemplates().default(template)
    assert len(PodTemplates().validate(template)) == 1
    assert PodTemplates(PROBED).validate(template) == []


BIG = "a" * 65537


def listed(value: str, times: int) -> str:
    return "[" + ",".join([f'"{value}"'] * times) + "]"


RULE = {"action": "Restart", "exitCodes": {"operator": "In", "values": [1]}}


@pytest.mark.parametrize(
    ("spec", "fault"),
    [
        (
            {"containers": [{**APP, "restartPolicy": "Never", "restartPolicyRules": [RULE] * 21}]},
            "spec.containers[0].restartPolicyRules: Too long: may not be more than 20 bytes",
        ),
        (
            {
                "containers": [
                    {
                        **APP,
                        "restartPolicy": "Never",
                        "restartPolicyRules": [
                            {"action": "Restart", "exitCodes": {"operator": "In", "values": [1] * 256}}
                        ],
                    }
                ]
            },
            "spec.containers[0].restartPolicyRules[0].exitCodes.values: "
            "Too long: may not be more than 255 bytes",
        ),
        (
            {"dnsConfig": {"searches": ["a"] * 33}},
            f"spec.dnsConfig.searches: Invalid value: {listed('a', 33)}: "
            "must not have more than 32 search paths",
        ),
        (
            {"dnsConfig": {"searches": ["a" * 200] * 11}},
            f"spec.dnsConfig.searches: Invalid value: {listed('a' * 200, 11)}: "
            "must not have more than 2048 characters (including spaces) in the search list",
        ),
        (
            {"securityContext": {"windowsOptions": {"gmsaCredentialSpec": BIG}}},
            f'spec.securityContext.windowsOptions.gmsaCredentialSpec: Invalid value: "{BIG}": '
            "gmsaCredentialSpec size must be under 64 KiB",
        ),
        (
            {"securityContext": {"appArmorProfile": {"type": "Localhost", "localhostProfile": "a" * 4096}}},
            "spec.securityContext.appArmorProfile.localhostProfile: "
            "Too long: may not be more than 4095 bytes",
        ),
    ],
)
def test_too_many(make_pod: MakePod, spec: dict[str, Any], fault: str) -> None:
    assert faults(make_pod(**spec)) == [fault]


def test_a_name_that_makes_too_long_a_name_of_a_claim(make_pod: MakePod) -> None:
    template = {"spec": {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1"}}}}
    volume = {"name": "v", "ephemeral": {"volumeClaimTemplate": template}}
    name = "a" * 252
    assert faults(make_pod(metadata={"name": name}, volumes=[volume])) == [
        f'spec.volumes[0].name: Invalid value: "v": PVC name "{name}-v": must be no more than 253 characters'
    ]
