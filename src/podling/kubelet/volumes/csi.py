"""What a CSI volume is, and what its driver is told of it. Pure.

A volume is a PersistentVolume's (`spec.csi`), or one that a pod brings (`volumes[].csi`): that has no claim,
is named by the pod and the volume, and is neither attached nor staged.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Mapping
from typing import NamedTuple

import msgspec

from podling.kubelet.volumes.files import VolumeError
from podling.model.quantity import Quantity
from podling.model.rules.attachments import attach_required
from podling.model.rules.volume_binding import BLOCK, size
from podling.model.types.persistent_volume import PersistentVolume, SecretReference
from podling.model.types.pod import Pod
from podling.model.types.references import ObjectReference
from podling.model.types.storage import CSIDriverSpec
from podling.model.types.volume import Volume

PERSISTENT, EPHEMERAL = "Persistent", "Ephemeral"
READ_WRITE_ONCE, READ_ONLY_MANY, READ_WRITE_MANY = "ReadWriteOnce", "ReadOnlyMany", "ReadWriteMany"
READ_WRITE_ONCE_POD = "ReadWriteOncePod"
TOKENS = "csi.storage.k8s.io/serviceAccount.tokens"
_MODES = {
    READ_WRITE_ONCE: "SINGLE_NODE_WRITER",
    READ_ONLY_MANY: "MULTI_NODE_READER_ONLY",
    READ_WRITE_MANY: "MULTI_NODE_MULTI_WRITER",
    READ_WRITE_ONCE_POD: "SINGLE_NODE_WRITER",
}
_MODES_OF_PODS = {
    **_MODES,
    READ_WRITE_ONCE: "SINGLE_NODE_MULTI_WRITER",
    READ_WRITE_ONCE_POD: "SINGLE_NODE_SINGLE_WRITER",
}


class SecretName(NamedTuple):
    namespace: str
    name: str


class CsiVolume(msgspec.Struct, frozen=True):
    """A volume as its node needs it."""

    name: str
    """Of the PersistentVolume, or of the pod's volume."""
    driver: str
    handle: str
    lifecycle: str = PERSISTENT
    read_only: bool = False
    fs_type: str = ""
    attributes: Mapping[str, str] = msgspec.field(default_factory=dict)
    mount_options: tuple[str, ...] = ()
    access_modes: tuple[str, ...] = ()
    block: bool = False
    size: Quantity | None = None
    claim: ObjectReference | None = None
    stage_secret: SecretName | None = None
    publish_secret: SecretName | None = None
    expand_secret: SecretName | None = None

    def access_mode(self, *, of_pods: bool) -> str:
        """CSI's name of the mode. `of_pods`: the driver tells one pod of a node from several."""
        mode = self.access_modes[0] if self.access_modes else READ_WRITE_ONCE
        return (_MODES_OF_PODS if of_pods else _MODES).get(mode, "UNKNOWN")


def of_persistent_volume(volume: PersistentVolume, *, read_only: bool) -> CsiVolume:
    source, spec = volume.spec.csi, volume.spec
    assert source is not None

    def secret(reference: SecretReference | None) -> SecretName | None:
        return SecretName(reference.namespace, reference.name) if reference is not None else None

    return CsiVolume(
        name=volume.metadata.name,
        driver=source.driver,
        handle=source.volume_handle,
        read_only=read_only or source.read_only,
        fs_type=source.fs_type,
        attributes=source.volume_attributes,
        mount_options=tuple(spec.mount_options),
        access_modes=tuple(spec.access_modes),
        block=spec.volume_mode == BLOCK,
        size=size(volume),
        claim=spec.claim_ref,
        stage_secret=secret(source.node_stage_secret_ref),
        publish_secret=secret(source.node_publish_secret_ref),
        expand_secret=secret(source.node_expand_secret_ref),
    )


def of_pod(pod: Pod, volume: Volume) -> CsiVolume:
    source = volume.csi
    assert source is not None
    secret = source.node_publish_secret_ref
    told = hashlib.sha256(f"{pod.metadata.uid}{volume.name}".encode()).hexdigest()
    return CsiVolume(
        name=volume.name,
        driver=source.driver,
        handle=f"csi-{told}",
        lifecycle=EPHEMERAL,
        read_only=bool(source.read_only),
        fs_type=source.fs_type or "",
        attributes=source.volume_attributes,
        publish_secret=SecretName(pod.metadata.namespace, secret.name) if secret else None,
    )


def check_lifecycle(volume: CsiVolume, spec: CSIDriverSpec | None) -> None:
    """Raises VolumeError. Without a CSIDriver a driver has persistent volumes only."""
    if spec is None:
        if volume.lifecycle == EPHEMERAL:
            raise VolumeError(
                f'volume mode "{EPHEMERAL}" not supported by driver {volume.driver} (no CSIDriver object)'
            )
        return
    modes = spec.volume_lifecycle_modes or [PERSISTENT]
    if volume.lifecycle not in modes:
        listed = " ".join(f'"{mode}"' for mode in modes)
        raise VolumeError(
            f'volume mode "{volume.lifecycle}" not supported by driver {volume.driver} '
            f"(only supports [{listed}])"
        )


def is_attached(volume: CsiVolume, spec: CSIDriverSpec | None) -> bool:
    """Whether the volume must be attached to the node before."""
    return attach_required(spec) and volume.lifecycle == PERSISTENT


def takes_group(volume: CsiVolume, spec: CSIDriverSpec | None) -> bool:
    """Whether the kubelet gives the files to the pod's fsGroup (CSIDriver.spec.fsGroupPolicy)."""
    policy = (spec.fs_group_policy if spec else None) or "ReadWriteOnceWithFSType"
    if volume.read_only or volume.block or policy == "None":
        return False
    if policy == "File":
        return True
    once = {READ_WRITE_ONCE, READ_WRITE_ONCE_POD} & set(volume.access_modes)
    return bool(volume.fs_type) and (volume.lifecycle == EPHEMERAL or bool(once))


def publish_context(
    volume: CsiVolume, spec: CSIDriverSpec | None, pod: Pod, tokens: str
) -> tuple[dict[str, str], dict[str, str]]:
    """What NodePublishVolume gets as volume_context, and what beside the secrets."""
    context: dict[str, str] = dict(volume.attributes)
    secrets: dict[str, str] = {}
    if spec is not None and spec.pod_info_on_mount:
        meta = pod.metadata
        context |= {
            "csi.storage.k8s.io/pod.name": meta.name,
            "csi.storage.k8s.io/pod.namespace": meta.namespace,
            "csi.storage.k8s.io/pod.uid": meta.uid,
            "csi.storage.k8s.io/serviceAccount.name": pod.spec.service_account_name,
            "csi.storage.k8s.io/ephemeral": "true" if volume.lifecycle == EPHEMERAL else "false",
        }
    if tokens:
        (secrets if spec and spec.service_account_token_in_secrets else context)[TOKENS] = tokens
    return context, secrets


def tokens_of(issued: Iterable[tuple[str, str, str]]) -> str:
    """The tokens (audience, token, expirationTimestamp) as a driver reads them; empty if there are none."""
    told = {audience: {"token": token, "expirationTimestamp": ends} for audience, token, ends in issued}
    return json.dumps(told, separators=(",", ":")) if told else ""
