from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import msgspec
import pytest

from podling.kubelet.cri_config.environment import (
    EnvSources,
    FileKey,
    FoundInFile,
    environment,
    referenced_files,
    referenced_objects,
)
from podling.kubelet.pod.containers import ConfigError
from podling.kubelet.pod.sandbox import NodeFacts
from podling.model.quantity import Quantity
from podling.model.types.container import (
    ConfigMapEnvSource,
    EnvFromSource,
    EnvVar,
    EnvVarSource,
    FileKeySelector,
    SecretEnvSource,
)
from podling.model.types.core import ConfigMap, Secret
from podling.model.types.references import (
    ConfigMapKeySelector,
    ObjectFieldSelector,
    ResourceFieldSelector,
    SecretKeySelector,
)

if TYPE_CHECKING:
    from unit.kubelet.conftest import Scene

SOURCES = EnvSources(
    node=NodeFacts("n1", ips=("192.168.0.1", "fd00::1"), allocatable={"memory": Quantity("3Gi")}),
    pod_ips=("10.0.0.7", "fd00::7"),
    config_maps={"cm": ConfigMap(data={"one": "1", "bad=name": "x"})},
    secrets={"sec": Secret(data={"two": b"2"})},
    files={
        FileKey("v", "a.env", "three"): FoundInFile("/node/v/a.env", "3$(X)"),
        FileKey("v", "a.env", "none"): FoundInFile("/node/v/a.env", ""),
        FileKey("v", "bad.env", "three"): FoundInFile("/node/v/bad.env", None),
    },
    services={"KUBERNETES_SERVICE_HOST": "10.0.0.1", "MINE": "no"},
)


def field(path: str) -> EnvVarSource:
    return EnvVarSource(field_ref=ObjectFieldSelector(field_path=path))


def resource(name: str, **selector: Any) -> EnvVarSource:
    return EnvVarSource(resource_field_ref=ResourceFieldSelector(resource=name, **selector))


def map_key(name: str, key: str, optional: bool | None = None) -> EnvVarSource:
    return EnvVarSource(config_map_key_ref=ConfigMapKeySelector(name=name, key=key, optional=optional))


def secret_key(name: str, key: str, optional: bool | None = None) -> EnvVarSource:
    return EnvVarSource(secret_key_ref=SecretKeySelector(name=name, key=key, optional=optional))


def file_key(path: str, key: str, optional: bool = False, volume: str = "v") -> EnvVarSource:
    return EnvVarSource(
        file_key_ref=FileKeySelector(volume_name=volume, path=path, key=key, optional=optional)
    )


def made(
    scene: type[Scene],
    env: Sequence[EnvVar] = (),
    env_from: Sequence[EnvFromSource] = (),
    sources: EnvSources = SOURCES,
) -> dict[str, str]:
    pod = scene.pod("a", node_name="n1", service_account_name="default")
    pod.metadata.labels = {"app.kubernetes.io/name": "web"}
    (container,) = pod.spec.containers
    container.env, container.env_from = list(env), list(env_from)
    container.resources.limits = {"cpu": Quantity("1500m")}
    container.resources.requests = {"memory": Quantity("1Gi")}
    values = environment(pod, container, sources)
    return {name: value for name, value in values.items() if name not in SOURCES.services}


VALUES = [
    (field("metadata.name"), "p"),
    (field("metadata.namespace"), "ns"),
    (field("metadata.uid"), "u1"),
    (field("metadata.labels['app.kubernetes.io/name']"), "web"),
    (field("metadata.annotations['none']"), ""),
    (field("spec.nodeName"), "n1"),
    (field("spec.serviceAccountName"), "default"),
    (field("status.podIP"), "10.0.0.7"),
    (field("status.podIPs"), "10.0.0.7,fd00::7"),
    (field("status.hostIP"), "192.168.0.1"),
    (field("status.hostIPs"), "192.168.0.1,fd00::1"),
    (resource("limits.cpu"), "2"),
    (resource("limits.cpu", divisor=Quantity("1m")), "1500"),
    (resource("requests.memory", divisor=Quantity("1Mi")), "1024"),
    (resource("limits.memory", container_name="a"), str(3 * 1024**3)),
    (resource("requests.cpu"), "0"),
    (map_key("cm", "one"), "1"),
    (secret_key("sec", "two"), "2"),
    (file_key("a.env", "three"), "3$(X)"),
    (file_key("a.env", "three", optional=True), "3$(X)"),
]


@pytest.mark.parametrize(("source", "value"), VALUES)
def test_values_from_elsewhere(scene: type[Scene], source: EnvVarSource, value: str) -> None:
    """R-INIT-12"""
    assert made(scene, [EnvVar(name="X", value_from=source)]) == {"X": value}


@pytest.mark.parametrize(
    ("path", "value"), [("status.podIP", "192.168.0.1"), ("status.podIPs", "192.168.0.1,fd00::1")]
)
def test_a_pod_on_the_hosts_network_has_the_nodes_addresses(
    scene: type[Scene], path: str, value: str
) -> None:
    """R-INIT-12. The runtime tells no address of such a sandbox."""
    pod = scene.pod("a", host_network=True)
    (container,) = pod.spec.containers
    container.env = [EnvVar(name="X", value_from=field(path))]
    found = environment(pod, container, msgspec.structs.replace(SOURCES, pod_ips=()))
    assert found["X"] == value


REFUSED = [
    (map_key("cm", "none"), "couldn't find key none in ConfigMap ns/cm"),
    (map_key("gone", "one"), 'configmap "gone" not found'),
    (secret_key("sec", "none"), "couldn't find key none in Secret ns/sec"),
    (secret_key("gone", "two"), 'secret "gone" not found'),
    (file_key("a.env", "none"), 'environment variable key "none" not found in file "/node/v/a.env"'),
    (file_key("bad.env", "three"), "couldn't parse env file"),
    (file_key("bad.env", "three", optional=True), "couldn't parse env file"),
    (file_key("a.env", "three", volume="w"), 'cannot find the volume "w" referenced by FileKeyRef'),
    (field("spec.volumes"), "unsupported fieldPath: spec.volumes"),
    (resource("limits.cpu", container_name="z"), "container z not found"),
]


@pytest.mark.parametrize(("source", "message"), REFUSED)
def test_what_leads_nowhere_is_said(scene: type[Scene], source: EnvVarSource, message: str) -> None:
    with pytest.raises(ConfigError) as refusal:
        made(scene, [EnvVar(name="X", value_from=source)])
    assert str(refusal.value) == message


@pytest.mark.parametrize(
    "source",
    [
        map_key("cm", "none", True),
        map_key("gone", "x", True),
        secret_key("gone", "x", True),
        file_key("a.env", "none", True),
    ],
)
def test_an_optional_reference_that_leads_nowhere_sets_nothing(
    scene: type[Scene], source: EnvVarSource
) -> None:
    assert made(scene, [EnvVar(name="X", value_from=source)]) == {}


def test_later_values_see_and_override_earlier_ones(scene: type[Scene]) -> None:
    env_from = [
        EnvFromSource(prefix="P_", config_map_ref=ConfigMapEnvSource(name="cm")),
        EnvFromSource(secret_ref=SecretEnvSource(name="sec")),
        EnvFromSource(config_map_ref=ConfigMapEnvSource(name="gone", optional=True)),
    ]
    env = [
        EnvVar(name="A", value="$(P_one)-$(B)-$(KUBERNETES_SERVICE_HOST)"),
        EnvVar(name="B", value="b"),
        EnvVar(name="C", value="$(B)$$(B)"),
        EnvVar(name="two", value="$(two)+"),
        EnvVar(name="D", value_from=file_key("a.env", "three")),
        EnvVar(name="E", value="<$(D)>"),
    ]
    assert made(scene, env, env_from) == {
        "P_one": "1",
        "two": "2+",
        "A": "1-$(B)-10.0.0.1",
        "B": "b",
        "C": "b$(B)",
        "D": "3$(X)",
        "E": "<3$(X)>",
    }


def test_services_yield_to_the_containers_own(scene: type[Scene]) -> None:
    pod = scene.pod("a")
    pod.spec.containers[0].env = [EnvVar(name="MINE", value="yes")]
    values = environment(pod, pod.spec.containers[0], SOURCES)
    assert values == {"MINE": "yes", "KUBERNETES_SERVICE_HOST": "10.0.0.1"}


def test_which_objects_are_needed(scene: type[Scene]) -> None:
    container = scene.pod("a").spec.containers[0]
    container.env = [EnvVar(name="X", value_from=map_key("m1", "k")), EnvVar(name="Y", value="v")]
    container.env_from = [EnvFromSource(secret_ref=SecretEnvSource(name="s1"))]
    assert referenced_objects(container) == ({"m1"}, {"s1"})


def test_which_files_are_needed(scene: type[Scene]) -> None:
    container = scene.pod("a").spec.containers[0]
    container.env = [EnvVar(name="X", value_from=file_key("a.env", "k")), EnvVar(name="Y", value="v")]
    assert referenced_files(container) == [FileKey("v", "a.env", "k")]
