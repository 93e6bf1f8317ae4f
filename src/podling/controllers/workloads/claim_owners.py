"""Who owns the claims that a StatefulSet made, as its `persistentVolumeClaimRetentionPolicy` says. Pure.

    whenDeleted: Delete  the set, so that its claims go with it
    whenScaled: Delete   the pod, once its ordinal is no longer wanted, so that its claims go with it

A claim that another controls is not taken from it; a claim whose owner of the same name is gone is stale.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from podling.model.types.apps import StatefulSet
from podling.model.types.meta import KubeObject, OwnerReference, controller_reference
from podling.model.types.persistent_volume import PersistentVolumeClaim
from podling.model.types.pod import Pod

DELETE = "Delete"


def is_due(owner: StatefulSet, pod: Pod, claim: PersistentVolumeClaim, *, is_wanted: bool) -> bool:
    """Whether its owners are to be others. `is_wanted`: the set is to have the pod's ordinal."""
    refs = claim.metadata.owner_references
    if any(_names(ref, one) and ref.uid != one.metadata.uid for ref in refs for one in (owner, pod)):
        return True
    ours = [ref for ref in refs if ref.uid in (owner.metadata.uid, pod.metadata.uid)]
    if _is_anothers(owner, pod, refs):
        return bool(ours)
    wanted = _wanted_owner(owner, pod, is_wanted=is_wanted)
    uids = [wanted.metadata.uid] if wanted is not None else []
    return not all(ref.controller for ref in ours) or [ref.uid for ref in ours] != uids


def owners_of(
    owner: StatefulSet, pod: Pod, claim: PersistentVolumeClaim, *, is_wanted: bool
) -> list[OwnerReference]:
    """The owner references that the claim is to have."""
    refs = claim.metadata.owner_references
    kept = [ref for ref in refs if not _names(ref, owner) and not _names(ref, pod)]
    wanted = _wanted_owner(owner, pod, is_wanted=is_wanted)
    if wanted is None or _is_anothers(owner, pod, refs):
        return kept
    return [*kept, controller_reference(wanted)]


def is_stale(owner: StatefulSet, pod: Pod, claims: Iterable[PersistentVolumeClaim]) -> bool:
    """Whether one of the claims goes with an earlier pod of this name: the new pod waits until it is gone."""
    policy = owner.spec.persistent_volume_claim_retention_policy
    if policy is None or policy.when_scaled != DELETE:
        return False
    return any(
        _names(ref, pod) and ref.uid != pod.metadata.uid
        for claim in claims
        for ref in claim.metadata.owner_references
    )


def _names(ref: OwnerReference, one: KubeObject) -> bool:
    return (ref.api_version, ref.kind, ref.name) == (one.API_VERSION, one.KIND, one.metadata.name)


def _wanted_owner(owner: StatefulSet, pod: Pod, *, is_wanted: bool) -> KubeObject | None:
    policy = owner.spec.persistent_volume_claim_retention_policy
    if policy is None:
        return None
    if policy.when_scaled == DELETE and not is_wanted:
        return pod
    return owner if policy.when_deleted == DELETE else None


def _is_anothers(owner: StatefulSet, pod: Pod, refs: Sequence[OwnerReference]) -> bool:
    policy = owner.spec.persistent_volume_claim_retention_policy
    if policy is None or DELETE not in (policy.when_deleted, policy.when_scaled):
        return False
    for ref in refs:
        same = next((one for one in (owner, pod) if _names(ref, one)), None)
        if (same is not None and same.metadata.uid != ref.uid) or (same is None and ref.controller):
            return True
    return False
