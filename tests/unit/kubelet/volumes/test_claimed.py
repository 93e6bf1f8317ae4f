"""A pod mounts the volume that its claim is bound to, and no other; what is in the way is told as by
Kubernetes.
"""

from __future__ import annotations

import os
import stat
from pathlib import Path
from typing import Any, cast

import pytest

from podling.client.client import Client
from podling.kubelet.volumes.claimed import has_group, place_of, volumes_of_claims
from podling.kubelet.volumes.files import VolumeError
from podling.model.codec.json import from_data
from podling.model.errors import StatusError
from podling.model.types.persistent_volume import PersistentVolume, PersistentVolumeClaim
from podling.model.types.pod import Pod

BOUND = {"spec": {"volumeName": "v"}, "status": {"phase": "Bound"}}
OWNER = {"apiVersion": "v1", "kind": "Pod", "name": "p", "controller": True}
OURS = {"claimRef": {"namespace": "ns", "name": "c", "uid": "u"}}


class Server:
    """Has one claim and one volume, of whatever name."""

    def __init__(self, claim: dict[str, Any] | None, volume: dict[str, Any] | None) -> None:
        self._found: dict[type[Any], dict[str, Any] | None] = {
            PersistentVolumeClaim: claim,
            PersistentVolume: volume,
        }

    async def get(self, type_: type[Any], name: str, namespace: str) -> Any:
        found = self._found[type_]
        if found is None:
            raise StatusError(404, "NotFound", f'"{name}" not found')
        meta = {"name": name, "namespace": namespace, "uid": "u", **found.get("metadata", {})}
        return from_data({**found, "metadata": meta}, type_)


def pod(source: dict[str, Any]) -> Pod:
    meta = {"name": "p", "namespace": "ns", "uid": "pod"}
    return from_data({"metadata": meta, "spec": {"volumes": [{"name": "data", **source}]}}, Pod)


OF_CLAIM = pod({"persistentVolumeClaim": {"claimName": "c"}})


async def test_the_volume_of_its_claim() -> None:
    client = cast(Client, Server(BOUND, {"spec": OURS}))
    assert [one.metadata.name for one in (await volumes_of_claims(client, OF_CLAIM)).values()] == ["v"]


@pytest.mark.parametrize(
    ("claim", "volume", "why"),
    [
        (None, None, 'failed to fetch PVC from API server: "c" not found'),
        (
            {"status": {"phase": "Pending"}},
            None,
            'PVC ns/c has non-bound phase ("Pending") or empty pvc.Spec.VolumeName ("")',
        ),
        (
            {**BOUND, "metadata": {"deletionTimestamp": "2026-01-01T00:00:00Z"}},
            None,
            "can't start pod because PVC is being deleted",
        ),
        (BOUND, None, 'failed to fetch PV v from API server: "v" not found'),
        (
            BOUND,
            {},
            'found PV object "v" with nil pv.Spec.ClaimRef indicating it is not yet bound to the claim',
        ),
        (
            BOUND,
            {"spec": {"claimRef": {**OURS["claimRef"], "uid": "x"}}},
            'found PV object "v" with a pv.Spec.ClaimRef.UID "x" that does not point to the claimed UID "u"',
        ),
    ],
)
async def test_what_is_in_the_way(
    claim: dict[str, Any] | None, volume: dict[str, Any] | None, why: str
) -> None:
    with pytest.raises(VolumeError) as raised:
        await volumes_of_claims(cast(Client, Server(claim, volume)), OF_CLAIM)
    whole = "Unable to attach or mount volumes: unmounted volumes=[data], unattached volumes=[], "
    assert str(raised.value) == f"{whole}failed to process volumes=[data]: error processing PVC ns/c: {why}"


@pytest.mark.parametrize(("uid", "is_ours"), [("pod", True), ("another", False)])
async def test_the_claim_that_a_pod_brings_is_its_own(uid: str, is_ours: bool) -> None:
    claim = {**BOUND, "metadata": {"ownerReferences": [{**OWNER, "uid": uid}]}}
    client = cast(Client, Server(claim, {"spec": OURS}))
    if is_ours:
        assert await volumes_of_claims(client, pod({"ephemeral": {}}))
        return
    with pytest.raises(VolumeError, match=r"PVC ns/p-data was not created for pod ns/p \(pod is not owner\)"):
        await volumes_of_claims(client, pod({"ephemeral": {}}))


@pytest.mark.parametrize(
    ("spec", "why"),
    [
        ({"volumeMode": "Block", "local": {"path": "/"}}, 'path "/" is no block device'),
        (
            {"volumeMode": "Block", "hostPath": {"path": "/"}},
            "MapVolume.FindMapperPluginBySpec failed to find BlockVolumeMapper plugin. Volume plugin is nil.",
        ),
        ({"local": {"path": "/no/such"}}, 'path "/no/such" does not exist'),
        ({"nfs": {"server": "a", "path": "/"}}, "this kind of volume is not supported by this kubelet"),
        (
            {"hostPath": {"path": "/no/such", "type": "Directory"}},
            "hostPath type check failed: /no/such is not a directory",
        ),
    ],
)
def test_what_cannot_be_mounted(spec: dict[str, Any], why: str) -> None:
    with pytest.raises(VolumeError) as raised:
        place_of(from_data({"spec": spec}, PersistentVolume))
    assert str(raised.value) == why


def test_a_volume_that_is_the_groups_is_not_walked_again(tmp_path: Path) -> None:
    tmp_path.chmod(0o775)
    assert not has_group(tmp_path, os.getgid())
    tmp_path.chmod(0o775 | stat.S_ISGID)
    assert has_group(tmp_path, os.getgid()) and not has_group(tmp_path, os.getgid() + 1)
