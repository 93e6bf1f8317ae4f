"""What is to be done with a claim and with a volume: Kubernetes' state machine of their binding. Pure.

A binding is four writes, each of another object or of a status, and any of them may be the last:

    1  volume.spec.claimRef     4  claim.status Bound
    2  volume.status Bound      3  claim.spec.volumeName, annotation bind-completed

From each state between them the same steps lead on to the next, so a binder that starts anew, or one that
lost a race for the volume, goes on where the last one stopped.
"""

from __future__ import annotations

from enum import Enum

from podling.model.rules.volume_binding import (
    BIND_COMPLETED,
    BOUND_BY_CONTROLLER,
    DELETE,
    PROVISIONED_BY,
    is_bound_to,
    modes_differ,
    why_unfit,
)
from podling.model.types.persistent_volume import PersistentVolume, PersistentVolumeClaim


class ClaimStep(Enum):
    FIND = "find a volume"
    BIND = "bind to the volume that it names"
    WAIT = "wait for the volume that it names"
    UNFIT = "the volume that it names does not fit"
    TAKEN = "the volume that it names is another's"
    STOLEN = "the volume that was chosen for it is another's"
    LOST_REFERENCE = "Bound claim has lost reference to PersistentVolume. Data on the volume is lost!"
    LOST_VOLUME = "Bound claim has lost its PersistentVolume. Data on the volume is lost!"
    MISBOUND = "Two claims are bound to the same volume, this one is bound incorrectly"


LOST = {
    ClaimStep.LOST_REFERENCE: "ClaimLost",
    ClaimStep.LOST_VOLUME: "ClaimLost",
    ClaimStep.MISBOUND: "ClaimMisbound",
}
"""The steps that make a claim Lost → the reason of the event, whose message is the step's value."""


def step_of_claim(claim: PersistentVolumeClaim, volume: PersistentVolume | None) -> ClaimStep:
    """`volume` is the one that the claim names, if there is it."""
    ref = volume.spec.claim_ref if volume is not None else None
    if BIND_COMPLETED in claim.metadata.annotations:
        if not claim.spec.volume_name:
            return ClaimStep.LOST_REFERENCE
        if volume is None:
            return ClaimStep.LOST_VOLUME
        if ref is None or ref.uid == claim.metadata.uid:
            return ClaimStep.BIND
        return ClaimStep.MISBOUND
    if not claim.spec.volume_name:
        return ClaimStep.FIND
    if volume is None:
        return ClaimStep.WAIT
    if ref is None:
        return ClaimStep.UNFIT if why_unfit(volume, claim) else ClaimStep.BIND
    if is_bound_to(volume, claim):
        return ClaimStep.BIND
    return ClaimStep.STOLEN if BOUND_BY_CONTROLLER in claim.metadata.annotations else ClaimStep.TAKEN


class VolumeStep(Enum):
    OFFER = "nobody has it"
    RELEASE = "its claim is gone"
    UNLIKE = "its claim wants the other volume mode"
    AWAIT = "its claim has yet to be bound"
    KEEP = "its claim has it"
    FREE = "its claim has another"
    DISCARD = "it was made for a claim that has another"


def step_of_volume(volume: PersistentVolume, claim: PersistentVolumeClaim | None) -> VolumeStep:
    """`claim` is the one that the volume names, if there is it: the same by uid."""
    ref = volume.spec.claim_ref
    if ref is None or not ref.uid:
        return VolumeStep.OFFER
    if claim is None:
        return VolumeStep.RELEASE
    if not claim.spec.volume_name:
        return VolumeStep.UNLIKE if modes_differ(volume, claim) else VolumeStep.AWAIT
    if claim.spec.volume_name == volume.metadata.name:
        return VolumeStep.KEEP
    is_made = PROVISIONED_BY in volume.metadata.annotations
    if is_made and volume.spec.persistent_volume_reclaim_policy == DELETE:
        return VolumeStep.DISCARD
    return VolumeStep.FREE
