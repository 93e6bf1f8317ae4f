"""What configMap, secret, downwardAPI and projected volumes hold."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from podling.kubelet.volumes.files import File, VolumeError, config_map_payload, secret_payload
from podling.kubelet.volumes.objects import Objects, TokenKey, referenced_config_maps, referenced_secrets
from podling.kubelet.volumes.projections import downward_api_payload, projected_payload, token_payload
from podling.model.types.container import Container, SecurityContext
from podling.model.types.core import ConfigMap, Secret
from podling.model.types.meta import ObjectMeta
from podling.model.types.pod import Pod, PodSecurityContext, PodSpec
from podling.model.types.references import ObjectFieldSelector, ResourceFieldSelector
from podling.model.types.volume import (
    ClusterTrustBundleProjection,
    ConfigMapProjection,
    ConfigMapVolumeSource,
    DownwardAPIProjection,
    DownwardAPIVolumeFile,
    KeyToPath,
    ProjectedVolumeSource,
    SecretProjection,
    SecretVolumeSource,
    ServiceAccountTokenProjection,
    Volume,
    VolumeProjection,
)

SETTINGS = ConfigMap(metadata=ObjectMeta(name="cm"), data={"a": "1", "b": "2"}, binary_data={"c": b"\xff"})
PASSWORDS = Secret(metadata=ObjectMeta(name="s"), data={"p": b"\x00"})
POD = Pod(
    metadata=ObjectMeta(
        name="web", namespace="ns", uid="u", labels={"b": 'say "hi"', "a": "1"}, annotations={"k/x": "é\n"}
    )
)


def nothing(selector: ResourceFieldSelector) -> str:
    raise ValueError(f"no {selector.resource}")


def test_all_keys_are_files_unless_items_choose() -> None:
    assert config_map_payload(ConfigMapVolumeSource(name="cm"), SETTINGS, 0o644) == {
        "a": File(b"1", 0o644),
        "b": File(b"2", 0o644),
        "c": File(b"\xff", 0o644),
    }
    items = [KeyToPath(key="a", path="x/y"), KeyToPath(key="c", path="z", mode=0)]
    assert config_map_payload(ConfigMapVolumeSource(name="cm", items=items), SETTINGS, 0o600) == {
        "x/y": File(b"1", 0o600),
        "z": File(b"\xff", 0),
    }


def test_what_is_missing_is_named_unless_it_is_optional() -> None:
    wrong = [KeyToPath(key="nope", path="x")]
    cases: list[tuple[Callable[[bool], object], str]] = [
        (
            lambda o: config_map_payload(ConfigMapVolumeSource(name="cm", optional=o), None, 0),
            'configmap "cm" not found',
        ),
        (
            lambda o: secret_payload(SecretVolumeSource(secret_name="s", optional=o), None, 0),
            'secret "s" not found',
        ),
        (
            lambda o: config_map_payload(
                ConfigMapVolumeSource(name="cm", items=wrong, optional=o), SETTINGS, 0
            ),
            "configmap references non-existent config key: nope",
        ),
        (
            lambda o: secret_payload(
                SecretVolumeSource(secret_name="s", items=wrong, optional=o), PASSWORDS, 0
            ),
            "references non-existent secret key: nope",
        ),
    ]
    for make, message in cases:
        with pytest.raises(VolumeError) as fault:
            make(False)
        assert str(fault.value) == message
        assert make(True) == {}


def test_facts_about_the_pod() -> None:
    paths = {
        "metadata.name": "web",
        "metadata.namespace": "ns",
        "metadata.uid": "u",
        "metadata.labels": 'a="1"\nb="say \\"hi\\""',
        "metadata.annotations": 'k/x="é\\n"',
        "metadata.labels['a']": "1",
        "metadata.annotations['k/x']": "é\n",
        "metadata.labels['none']": "",
    }
    items = [DownwardAPIVolumeFile(path=p, field_ref=ObjectFieldSelector(field_path=p)) for p in paths]
    made = downward_api_payload(items, POD, nothing, 0o644)
    assert {path: file.data.decode() for path, file in made.items()} == paths


def test_a_field_or_resource_that_is_not_there_stops_the_volume() -> None:
    for item in (
        DownwardAPIVolumeFile(path="x", field_ref=ObjectFieldSelector(field_path="status.podIP")),
        DownwardAPIVolumeFile(path="x", resource_field_ref=ResourceFieldSelector(resource="limits.cpu")),
    ):
        with pytest.raises(VolumeError, match=r"status\.podIP|limits\.cpu"):
            downward_api_payload([item], POD, nothing, 0)


def test_a_projection_joins_its_sources_and_the_last_of_a_path_wins() -> None:
    sources = [
        VolumeProjection(config_map=ConfigMapProjection(name="cm", items=[KeyToPath(key="a", path="same")])),
        VolumeProjection(secret=SecretProjection(name="s", items=[KeyToPath(key="p", path="same")])),
        VolumeProjection(
            downward_api=DownwardAPIProjection(
                items=[
                    DownwardAPIVolumeFile(path="n", field_ref=ObjectFieldSelector(field_path="metadata.name"))
                ]
            )
        ),
    ]
    objects = Objects({"cm": SETTINGS}, {"s": PASSWORDS})
    assert projected_payload(sources, objects, POD, nothing, 0o400) == {
        "same": File(b"\x00", 0o400),
        "n": File(b"web", 0o400),
    }
    volumes = [Volume(name="v", projected=ProjectedVolumeSource(sources=sources))]
    volumes.append(Volume(name="w", config_map=ConfigMapVolumeSource(name="other")))
    assert referenced_config_maps(volumes) == {"cm", "other"}
    assert referenced_secrets(volumes) == {"s"}


def test_all_sources_that_are_missing_are_told_once() -> None:
    maps = VolumeProjection(config_map=ConfigMapProjection(name="no"))
    private = VolumeProjection(secret=SecretProjection(name="none"))
    for sources, said in (
        ((maps,), 'configmap "no" not found'),
        ((private, maps, private), '[secret "none" not found, configmap "no" not found]'),
    ):
        with pytest.raises(VolumeError) as fault:
            projected_payload(sources, Objects(), POD, nothing, 0)
        assert str(fault.value) == said


def test_a_projection_this_kubelet_cannot_make_is_refused_by_name() -> None:
    sources = [VolumeProjection(cluster_trust_bundle=ClusterTrustBundleProjection(path="bundle"))]
    with pytest.raises(VolumeError, match="clusterTrustBundle is not supported"):
        projected_payload(sources, Objects(), POD, nothing, 0)


@pytest.mark.parametrize(
    ("pod_user", "container_users", "group", "expected"),
    [
        (None, [None], None, File(b"jwt", 0o644)),
        (None, [7, None], None, File(b"jwt", 0o644)),
        (None, [7, 8], None, File(b"jwt", 0o644)),
        (7, [None, 7], None, File(b"jwt", 0o600, 7)),
        (7, [8, 8], None, File(b"jwt", 0o600, 8)),
        (None, [None], 9, File(b"jwt", 0o600)),
    ],
)
def test_a_token_is_for_whom_the_pod_runs_as_alone(
    pod_user: int | None, container_users: list[int | None], group: int | None, expected: File
) -> None:
    containers = [Container(security_context=SecurityContext(run_as_user=user)) for user in container_users]
    context = PodSecurityContext(run_as_user=pod_user, fs_group=group)
    pod = Pod(spec=PodSpec(containers=containers, security_context=context))
    source = ServiceAccountTokenProjection(path="token")
    objects = Objects(tokens={TokenKey("", 3600): "jwt"})
    assert token_payload(source, objects, pod, 0o644) == {"token": expected}
