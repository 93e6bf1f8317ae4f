"""Why a pod must wait for its claims, in kube-scheduler's words (its plugin VolumeBinding). Pure.

Claims that wait for their first consumer are `volumes.py`'s: each node answers for itself.
"""

from __future__ import annotations

from collections.abc import Callable

from podling.model.rules.volume_binding import WAITS, class_of, is_bound
from podling.model.types.persistent_volume import PersistentVolume, PersistentVolumeClaim
from podling.model.types.pod import Pod
from podling.model.types.storage import StorageClass

UNBOUND = "pod has unbound immediate PersistentVolumeClaims"


def missing(
    pod: Pod,
    claim_of: Callable[[str, str], PersistentVolumeClaim | None],
    volume_of: Callable[[str, str], PersistentVolume | None],
    storage_class_of: Callable[[str, str], StorageClass | None],
) -> str:
    """What is missing for any node; empty if nothing is. The functions find an object by namespace and
    name."""
    found = []
    for volume in pod.spec.volumes:
        if volume.persistent_volume_claim is not None:
            name, absent = volume.persistent_volume_claim.claim_name, 'persistentvolumeclaim "{}" not found'
        elif volume.ephemeral is not None:
            name = f"{pod.metadata.name}-{volume.name}"
            absent = 'waiting for ephemeral volume controller to create the persistentvolumeclaim "{}"'
        else:
            continue
        claim = claim_of(pod.metadata.namespace, name)
        if claim is None:
            return absent.format(name)
        if claim.status.phase == "Lost":
            volume_name = claim.spec.volume_name
            return f'persistentvolumeclaim "{name}" bound to non-existent persistentvolume "{volume_name}"'
        if claim.metadata.deletion_timestamp:
            return f'persistentvolumeclaim "{name}" is being deleted'
        found.append(claim)
    unbound = [one for one in found if not is_bound(one)]
    classes = (storage_class_of("", class_of(claim)) for claim in unbound)
    named = (claim for claim in unbound if claim.spec.volume_name)
    if any(named) or any(one is None or one.volume_binding_mode != WAITS for one in classes):
        return UNBOUND
    for claim in found:
        if claim not in unbound and volume_of("", claim.spec.volume_name) is None:
            return f'persistentvolume "{claim.spec.volume_name}" not found'
    return ""
