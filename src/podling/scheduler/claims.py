"""Why a pod must wait for its claims, in kube-scheduler's words (its plugin VolumeBinding). Pure.

Nothing of podling's makes volumes or binds them to claims: what is not bound waits for somebody who does.
"""

from __future__ import annotations

from collections.abc import Callable

from podling.model.types.persistent_volume import PersistentVolume, PersistentVolumeClaim
from podling.model.types.pod import Pod
from podling.model.types.storage import StorageClass
from podling.scheduler.filter import VOLUME_BINDING, Refusal

BOUND = "pv.kubernetes.io/bind-completed"
"""The annotation of a claim whose binding is complete."""
WAITS = "WaitForFirstConsumer"
UNBOUND = "pod has unbound immediate PersistentVolumeClaims"
NO_VOLUMES = Refusal(
    VOLUME_BINDING, ("node(s) didn't find available persistent volumes to bind",), final=True
)


def missing(
    pod: Pod,
    claim_of: Callable[[str, str], PersistentVolumeClaim | None],
    volume_of: Callable[[str, str], PersistentVolume | None],
    class_of: Callable[[str, str], StorageClass | None],
) -> str | Refusal | None:
    """What is missing for any node, or why each node by itself refuses; None if all claims are bound. The
    functions find an object by namespace and name."""
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
    unbound = [one for one in found if not one.spec.volume_name or BOUND not in one.metadata.annotations]
    classes = (class_of("", claim.spec.storage_class_name or "") for claim in unbound)
    if any(one is None or one.volume_binding_mode != WAITS for one in classes):
        return UNBOUND
    for claim in found:
        if claim not in unbound and volume_of("", claim.spec.volume_name) is None:
            return f'persistentvolume "{claim.spec.volume_name}" not found'
    return NO_VOLUMES if unbound else None
