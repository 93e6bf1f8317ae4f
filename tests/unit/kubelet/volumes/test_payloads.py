"""What configMap, secret, downwardAPI and projected volumes hold."""

import pytest

from podling.kubelet.volumes import config_map, downward_api, projected, secret
from podling.kubelet.volumes.objects import Objects, referenced_config_maps, referenced_secrets
from podling.kubelet.volumes.payload import File, VolumeError
from podling.model.config import ConfigMap, Secret
from podling.model.meta import ObjectMeta
from podling.model.pod import Pod
from podling.model.references import ObjectFieldSelector, ResourceFieldSelector
from podling.model.volume import (
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
    assert config_map.payload(ConfigMapVolumeSource(name="cm"), SETTINGS, 0o644) == {
        "a": File(b"1", 0o644),
        "b": File(b"2", 0o644),
        "c": File(b"\xff", 0o644),
    }
    items = [KeyToPath(key="a", path="x/y"), KeyToPath(key="c", path="z", mode=0)]
    assert config_map.payload(ConfigMapVolumeSource(name="cm", items=items), SETTINGS, 0o600) == {
        "x/y": File(b"1", 0o600),
        "z": File(b"\xff", 0),
    }


def test_what_is_missing_is_named_unless_it_is_optional() -> None:
    wrong = [KeyToPath(key="nope", path="x")]
    cases = [
        (
            lambda o: config_map.payload(ConfigMapVolumeSource(name="cm", optional=o), None, 0),
            'configmap "cm" not found',
        ),
        (
            lambda o: secret.payload(SecretVolumeSource(secret_name="s", optional=o), None, 0),
            'secret "s" not found',
        ),
        (
            lambda o: config_map.payload(
                ConfigMapVolumeSource(name="cm", items=wrong, optional=o), SETTINGS, 0
            ),
            "configmap references non-existent config key: nope",
        ),
        (
            lambda o: secret.payload(
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
    made = downward_api.payload(items, POD, nothing, 0o644)
    assert {path: file.data.decode() for path, file in made.items()} == paths


def test_a_field_or_resource_that_is_not_there_stops_the_volume() -> None:
    for item in (
        DownwardAPIVolumeFile(path="x", field_ref=ObjectFieldSelector(field_path="status.podIP")),
        DownwardAPIVolumeFile(path="x", resource_field_ref=ResourceFieldSelector(resource="limits.cpu")),
    ):
        with pytest.raises(VolumeError, match=r"status\.podIP|limits\.cpu"):
            downward_api.payload([item], POD, nothing, 0)


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
    assert projected.payload(sources, objects, POD, nothing, 0o400) == {
        "same": File(b"\x00", 0o400),
        "n": File(b"web", 0o400),
    }
    volumes = [Volume(name="v", projected=ProjectedVolumeSource(sources=sources))]
    volumes.append(Volume(name="w", config_map=ConfigMapVolumeSource(name="other")))
    assert referenced_config_maps(volumes) == {"cm", "other"}
    assert referenced_secrets(volumes) == {"s"}


def test_a_projection_this_kubelet_cannot_make_is_refused_by_name() -> None:
    sources = [VolumeProjection(service_account_token=ServiceAccountTokenProjection(path="token"))]
    with pytest.raises(VolumeError, match="serviceAccountToken is not supported"):
        projected.payload(sources, Objects(), POD, nothing, 0)
