"""The objects of its namespace that a pod refers to by name: what its kubelet must read to run it."""

from __future__ import annotations

from collections.abc import Iterator

from podling.model.types.container import Container, EphemeralContainer
from podling.model.types.meta import KubeObject
from podling.model.types.pod import Pod, PodSpec
from podling.model.types.volume import Volume

DRIVERS_WITH_SECRETS = ("cephfs", "cinder", "flex_volume", "iscsi", "rbd", "scale_io", "storageos")
"""The sources of a volume that have a `secretRef`."""


def containers_of(spec: PodSpec) -> Iterator[Container | EphemeralContainer]:
    """All containers, and those that are volumes."""
    yield from spec.init_containers
    yield from spec.containers
    yield from spec.ephemeral_containers
    for volume in spec.volumes:
        if volume.container is not None:
            yield volume.container


def secrets_of(pod: Pod) -> Iterator[str]:
    """Names may come more than once."""
    for reference in pod.spec.image_pull_secrets:
        yield reference.name
    for container in containers_of(pod.spec):
        for source in container.env_from:
            if source.secret_ref is not None:
                yield source.secret_ref.name
        for variable in container.env:
            if variable.value_from is not None and variable.value_from.secret_key_ref is not None:
                yield variable.value_from.secret_key_ref.name
    for volume in pod.spec.volumes:
        yield from _secrets_of_volume(volume)


def config_maps_of(pod: Pod) -> Iterator[str]:
    """Names may come more than once."""
    for container in containers_of(pod.spec):
        for source in container.env_from:
            if source.config_map_ref is not None:
                yield source.config_map_ref.name
        for variable in container.env:
            if variable.value_from is not None and variable.value_from.config_map_key_ref is not None:
                yield variable.value_from.config_map_key_ref.name
    for volume in pod.spec.volumes:
        if volume.config_map is not None:
            yield volume.config_map.name
        if volume.projected is not None:
            for projection in volume.projected.sources:
                if projection.config_map is not None:
                    yield projection.config_map.name


def volume_claims_of(pod: Pod) -> Iterator[str]:
    for volume in pod.spec.volumes:
        if (claim := volume_claim_of(pod, volume)) is not None:
            yield claim


def volume_claim_of(pod: KubeObject, volume: Volume) -> str | None:
    if volume.persistent_volume_claim is not None:
        return volume.persistent_volume_claim.claim_name
    return f"{pod.metadata.name}-{volume.name}" if volume.ephemeral is not None else None


def device_claims_of(pod: Pod) -> Iterator[str]:
    """Those that are there: one made from a template is named by the status."""
    made = {one.name: one.resource_claim_name for one in pod.status.resource_claim_statuses}
    for one in pod.spec.resource_claims:
        name = one.resource_claim_name or made.get(one.name)
        if name:
            yield name
    extended = pod.status.extended_resource_claim_status
    if extended is not None and extended.resource_claim_name:
        yield extended.resource_claim_name


def _secrets_of_volume(volume: Volume) -> Iterator[str]:
    if volume.secret is not None:
        yield volume.secret.secret_name
    if volume.azure_file is not None:
        yield volume.azure_file.secret_name
    if volume.csi is not None and volume.csi.node_publish_secret_ref is not None:
        yield volume.csi.node_publish_secret_ref.name
    if volume.projected is not None:
        for projection in volume.projected.sources:
            if projection.secret is not None:
                yield projection.secret.name
    for driver in DRIVERS_WITH_SECRETS:
        source = getattr(volume, driver)
        if source is not None and source.secret_ref is not None:
            yield source.secret_ref.name
