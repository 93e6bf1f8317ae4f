"""What a driver is told of a volume, and whether the kubelet attaches it and gives it to the fsGroup."""

from __future__ import annotations

import json
from typing import Any

import pytest

from podling.kubelet.volumes.csi import (
    TOKENS,
    CsiVolume,
    check_lifecycle,
    is_attached,
    of_persistent_volume,
    of_pod,
    publish_context,
    takes_group,
    tokens_of,
)
from podling.kubelet.volumes.files import VolumeError
from podling.model.codec.json import from_data
from podling.model.types.persistent_volume import PersistentVolume
from podling.model.types.pod import Pod
from podling.model.types.storage import CSIDriverSpec

ONCE = ["ReadWriteOnce"]
POD = from_data(
    {
        "metadata": {"name": "p", "namespace": "ns", "uid": "u1"},
        "spec": {
            "serviceAccountName": "sa",
            "volumes": [
                {
                    "name": "inline",
                    "csi": {
                        "driver": "d.test",
                        "readOnly": True,
                        "volumeAttributes": {"size": "1"},
                        "nodePublishSecretRef": {"name": "s"},
                    },
                }
            ],
        },
    },
    Pod,
)


def volume(*, modes: list[str] = ONCE, read_only: bool = False, **spec: Any) -> CsiVolume:
    source = {"driver": "d.test", "volumeHandle": "h", **spec.pop("csi", {})}
    made = {"metadata": {"name": "pv"}, "spec": {"csi": source, "accessModes": modes, **spec}}
    return of_persistent_volume(from_data(made, PersistentVolume), read_only=read_only)


def driver(**spec: Any) -> CSIDriverSpec:
    return from_data(spec, CSIDriverSpec)


@pytest.mark.parametrize(
    ("modes", "plain", "of_pods"),
    [
        ([], "SINGLE_NODE_WRITER", "SINGLE_NODE_MULTI_WRITER"),
        (["ReadWriteOnce", "ReadWriteMany"], "SINGLE_NODE_WRITER", "SINGLE_NODE_MULTI_WRITER"),
        (["ReadWriteOncePod"], "SINGLE_NODE_WRITER", "SINGLE_NODE_SINGLE_WRITER"),
        (["ReadOnlyMany"], "MULTI_NODE_READER_ONLY", "MULTI_NODE_READER_ONLY"),
        (["ReadWriteMany"], "MULTI_NODE_MULTI_WRITER", "MULTI_NODE_MULTI_WRITER"),
    ],
)
def test_the_first_access_mode_counts(modes: list[str], plain: str, of_pods: str) -> None:
    one = volume(modes=modes)
    assert (one.access_mode(of_pods=False), one.access_mode(of_pods=True)) == (plain, of_pods)


def test_a_volume_of_a_pod_is_named_by_both() -> None:
    one = of_pod(POD, POD.spec.volumes[0])
    # printf u1inline | sha256sum
    assert one.handle == "csi-7620fc674e0aef03ba5bc107910165c2eb479c3870f06ff0bc38624a53d4420c"
    assert one.read_only and one.publish_secret == ("ns", "s")
    assert not is_attached(one, None) and takes_group(one, driver(fsGroupPolicy="File")) is False


@pytest.mark.parametrize(
    ("spec", "why"),
    [
        (None, 'volume mode "Ephemeral" not supported by driver d.test (no CSIDriver object)'),
        (
            driver(),
            'volume mode "Ephemeral" not supported by driver d.test (only supports ["Persistent"])',
        ),
        (driver(volumeLifecycleModes=["Persistent", "Ephemeral"]), ""),
    ],
)
def test_a_driver_says_which_volumes_it_has(spec: CSIDriverSpec | None, why: str) -> None:
    one = of_pod(POD, POD.spec.volumes[0])
    if not why:
        check_lifecycle(one, spec)
        return
    with pytest.raises(VolumeError) as raised:
        check_lifecycle(one, spec)
    assert str(raised.value) == why
    check_lifecycle(volume(), spec)


@pytest.mark.parametrize(
    ("spec", "attached"),
    [
        (None, True),
        (driver(), True),
        (driver(attachRequired=False), False),
        (driver(attachRequired=True), True),
    ],
)
def test_a_volume_is_attached_unless_its_driver_says_otherwise(
    spec: CSIDriverSpec | None, attached: bool
) -> None:
    assert is_attached(volume(), spec) is attached


@pytest.mark.parametrize(
    ("policy", "given", "takes"),
    [
        (None, {"csi": {"fsType": "ext4"}}, True),
        (None, {}, False),
        (None, {"csi": {"fsType": "ext4"}, "modes": ["ReadWriteMany"]}, False),
        (None, {"csi": {"fsType": "ext4"}, "modes": ["ReadWriteOncePod"]}, True),
        ("ReadWriteOnceWithFSType", {"csi": {"fsType": "ext4"}, "modes": []}, False),
        ("File", {"modes": ["ReadWriteMany"]}, True),
        ("File", {"read_only": True}, False),
        ("File", {"csi": {"readOnly": True}}, False),
        ("File", {"volumeMode": "Block"}, False),
        ("None", {"csi": {"fsType": "ext4"}}, False),
    ],
)
def test_whose_files_go_to_the_group(policy: str | None, given: dict[str, Any], takes: bool) -> None:
    spec = driver(fsGroupPolicy=policy) if policy else None
    assert takes_group(volume(**given), spec) is takes


def test_what_is_told_of_the_pod() -> None:
    one = volume(csi={"volumeAttributes": {"a": "b"}})
    assert publish_context(one, None, POD, "") == ({"a": "b"}, {})
    context, secrets = publish_context(one, driver(podInfoOnMount=True), POD, "")
    assert secrets == {} and context == {
        "a": "b",
        "csi.storage.k8s.io/pod.name": "p",
        "csi.storage.k8s.io/pod.namespace": "ns",
        "csi.storage.k8s.io/pod.uid": "u1",
        "csi.storage.k8s.io/serviceAccount.name": "sa",
        "csi.storage.k8s.io/ephemeral": "false",
    }
    inline = of_pod(POD, POD.spec.volumes[0])
    assert (
        publish_context(inline, driver(podInfoOnMount=True), POD, "")[0]["csi.storage.k8s.io/ephemeral"]
        == "true"
    )


def test_tokens_go_where_the_driver_wants_them() -> None:
    tokens = tokens_of([("", "t1", "2026-01-01T00:00:00Z"), ("aud", "t2", "2026-01-02T00:00:00Z")])
    assert json.loads(tokens) == {
        "": {"token": "t1", "expirationTimestamp": "2026-01-01T00:00:00Z"},
        "aud": {"token": "t2", "expirationTimestamp": "2026-01-02T00:00:00Z"},
    }
    assert publish_context(volume(), driver(), POD, tokens) == ({TOKENS: tokens}, {})
    hidden = driver(serviceAccountTokenInSecrets=True)
    assert publish_context(volume(), hidden, POD, tokens) == ({}, {TOKENS: tokens})
    assert tokens_of([]) == ""
