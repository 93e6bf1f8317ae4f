"""The volumes that a pod has by claims: found at the API server, and where they are on the node.

A claim is looked at anew each time the pod's volumes are set up: it must be bound, to a volume that names it,
and the claim of a volume of the pod's own (`ephemeral`) must be the pod's. The words are Kubernetes'.
"""

from __future__ import annotations

import os
import stat
from pathlib import Path

from podling.client.client import Client
from podling.kubelet.volumes.files import VolumeError
from podling.kubelet.volumes.host import set_up_host_path
from podling.model.errors import StatusError
from podling.model.rules.references import volume_claim_of
from podling.model.rules.volume_binding import BLOCK, BOUND
from podling.model.types.persistent_volume import PersistentVolume, PersistentVolumeClaim
from podling.model.types.pod import Pod
from podling.model.types.volume import Volume

NO_MAPPER = "MapVolume.FindMapperPluginBySpec failed to find BlockVolumeMapper plugin. Volume plugin is nil."


async def volumes_of_claims(client: Client, pod: Pod) -> dict[str, PersistentVolume]:
    """By the names that the pod has for them. Raises VolumeError, and OSError when the server does not
    answer."""
    found: dict[str, PersistentVolume] = {}
    for volume in pod.spec.volumes:
        name = volume_claim_of(pod, volume)
        if name is None:
            continue
        try:
            found[volume.name] = await _volume_of(client, pod, volume, name)
        except VolumeError as error:
            raise VolumeError(
                f"Unable to attach or mount volumes: unmounted volumes=[{volume.name}], "
                f"unattached volumes=[], failed to process volumes=[{volume.name}]: {error}"
            ) from error
    return found


async def _volume_of(client: Client, pod: Pod, volume: Volume, name: str) -> PersistentVolume:
    namespace = pod.metadata.namespace
    whose = f"error processing PVC {namespace}/{name}"
    try:
        claim = await client.get(PersistentVolumeClaim, name, namespace)
    except StatusError as error:
        raise VolumeError(f"{whose}: failed to fetch PVC from API server: {error}") from error
    if volume.ephemeral is not None and not _is_of(claim, pod):
        raise VolumeError(
            f"PVC {namespace}/{name} was not created for pod {namespace}/{pod.metadata.name} "
            "(pod is not owner)"
        )
    bound_to, phase = claim.spec.volume_name, claim.status.phase
    if claim.metadata.deletion_timestamp:
        raise VolumeError(f"{whose}: can't start pod because PVC is being deleted")
    if phase != BOUND or not bound_to:
        raise VolumeError(
            f'{whose}: PVC {namespace}/{name} has non-bound phase ("{phase}") or empty pvc.Spec.VolumeName '
            f'("{bound_to}")'
        )
    try:
        found = await client.get(PersistentVolume, bound_to, "")
    except StatusError as error:
        raise VolumeError(f"{whose}: failed to fetch PV {bound_to} from API server: {error}") from error
    ref = found.spec.claim_ref
    if ref is None:
        raise VolumeError(
            f'{whose}: found PV object "{bound_to}" with nil pv.Spec.ClaimRef indicating it is not yet bound '
            "to the claim"
        )
    if ref.uid != claim.metadata.uid:
        raise VolumeError(
            f'{whose}: found PV object "{bound_to}" with a pv.Spec.ClaimRef.UID "{ref.uid}" that does not '
            f'point to the claimed UID "{claim.metadata.uid}"'
        )
    return found


def _is_of(claim: PersistentVolumeClaim, pod: Pod) -> bool:
    return any(ref.controller and ref.uid == pod.metadata.uid for ref in claim.metadata.owner_references)


def place_of(volume: PersistentVolume) -> Path:
    """Where it is on the node. Raises VolumeError and OSError."""
    spec = volume.spec
    is_block = spec.volume_mode == BLOCK
    if spec.host_path is not None:
        if is_block:
            # Only a `local` volume may be a device of the node, as in Kubernetes.
            raise VolumeError(NO_MAPPER)
        return set_up_host_path(spec.host_path)
    if spec.local is not None:
        place = Path(spec.local.path)
        if not place.exists():
            raise VolumeError(f'path "{place}" does not exist')
        if is_block != stat.S_ISBLK(place.stat().st_mode):
            raise VolumeError(f'path "{place}" is {"no" if is_block else "a"} block device')
        return place
    raise VolumeError("this kind of volume is not supported by this kubelet")


def has_group(place: Path, gid: int) -> bool:
    """Whether the top of a volume is the group's already, as `fsGroupChangePolicy: OnRootMismatch` asks."""
    state = os.stat(place)
    wanted = stat.S_ISGID | 0o070
    return state.st_gid == gid and state.st_mode & wanted == wanted
