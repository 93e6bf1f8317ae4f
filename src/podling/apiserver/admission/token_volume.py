"""The volume by which containers reach the API server: a token, the cluster's authority, the namespace.

It is mounted where client libraries look, into every container that has nothing of its own there; it looks as
Kubernetes' ServiceAccount admission makes it.
"""

from __future__ import annotations

import secrets

from podling.apiserver.registry.object_meta import NAME_ALPHABET
from podling.model.container import Container, VolumeMount
from podling.model.pod import PodSpec
from podling.model.references import ObjectFieldSelector
from podling.model.service_account import ServiceAccount
from podling.model.volume import (
    ConfigMapProjection,
    DownwardAPIProjection,
    DownwardAPIVolumeFile,
    KeyToPath,
    ProjectedVolumeSource,
    ServiceAccountTokenProjection,
    Volume,
    VolumeProjection,
)

PREFIX = "kube-api-access-"
PLACE = "/var/run/secrets/kubernetes.io/serviceaccount"
TOKEN_SECONDS = 3607
"""An odd number, by which the API server tells tokens that were not asked for by hand."""
MODE = 0o644


def is_wanted(spec: PodSpec, account: ServiceAccount) -> bool:
    """What the pod says counts, then what its account says."""
    for said in (spec.automount_service_account_token, account.automount_service_account_token):
        if said is not None:
            return said
    return True


def mount_token(spec: PodSpec) -> None:
    """Give the volume to every container that has nothing mounted in its place."""
    without: list[Container] = [
        container
        for container in (*spec.init_containers, *spec.containers)
        if all(mount.mount_path != PLACE for mount in container.volume_mounts)
    ]
    if not without:
        return
    volume = _volume(spec)
    for container in without:
        mount = VolumeMount(name=volume.name, read_only=True, mount_path=PLACE)
        container.volume_mounts = [*container.volume_mounts, mount]


def _volume(spec: PodSpec) -> Volume:
    """The one that is there, else a new one."""
    for volume in spec.volumes:
        if volume.name.startswith(PREFIX):
            return volume
    name = PREFIX + "".join(secrets.choice(NAME_ALPHABET) for _ in range(5))
    made = Volume(name=name, projected=ProjectedVolumeSource(sources=_sources(), default_mode=MODE))
    spec.volumes = [*spec.volumes, made]
    return made


def _sources() -> list[VolumeProjection]:
    namespace = ObjectFieldSelector(api_version="v1", field_path="metadata.namespace")
    return [
        VolumeProjection(
            service_account_token=ServiceAccountTokenProjection(
                expiration_seconds=TOKEN_SECONDS, path="token"
            )
        ),
        VolumeProjection(
            config_map=ConfigMapProjection(
                name="kube-root-ca.crt", items=[KeyToPath(key="ca.crt", path="ca.crt")]
            )
        ),
        VolumeProjection(
            downward_api=DownwardAPIProjection(
                items=[DownwardAPIVolumeFile(path="namespace", field_ref=namespace)]
            )
        ),
    ]
