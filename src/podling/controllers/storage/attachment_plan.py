"""Which volumes of CSI drivers a node is to have, and which of those it has may go. Pure."""

from __future__ import annotations

from collections.abc import Callable, Iterable

import msgspec

from podling.model.rules.attachments import attach_required, unique_name
from podling.model.rules.placement import OUT_OF_SERVICE
from podling.model.rules.references import volume_claims_of
from podling.model.rules.status import is_condition_true, is_terminal
from podling.model.rules.volume_binding import is_bound
from podling.model.types.node import Node
from podling.model.types.persistent_volume import PersistentVolume, PersistentVolumeClaim
from podling.model.types.pod import Pod
from podling.model.types.storage import CSIDriver, VolumeAttachment

READ_ONLY_MANY, READ_WRITE_MANY = "ReadOnlyMany", "ReadWriteMany"


class Wanted(msgspec.Struct, frozen=True):
    """A volume, and the pods of one node that have it."""

    volume: PersistentVolume
    pods: list[Pod]

    @property
    def unique_name(self) -> str:
        return unique_name_of(self.volume)


def unique_name_of(volume: PersistentVolume) -> str:
    source = volume.spec.csi
    assert source is not None
    return unique_name(source.driver, source.volume_handle)


def wanted_by(
    pods: Iterable[Pod],
    claim_of: Callable[[str, str], PersistentVolumeClaim | None],
    volume_of: Callable[[str, str], PersistentVolume | None],
    driver_of: Callable[[str, str], CSIDriver | None],
) -> dict[str, Wanted]:
    """By name, the volumes to be attached for the pods of one node. The functions find an object by namespace
    and name. A pod that has ended needs nothing; one that is being deleted needs it until it is gone."""
    wanted: dict[str, Wanted] = {}
    for pod in pods:
        if is_terminal(pod):
            continue
        for name in volume_claims_of(pod):
            claim = claim_of(pod.metadata.namespace, name)
            if claim is None or not is_bound(claim):
                continue
            volume = volume_of("", claim.spec.volume_name)
            if volume is None or (source := volume.spec.csi) is None:
                continue
            driver = driver_of("", source.driver)
            if attach_required(driver.spec if driver else None):
                wanted.setdefault(volume.metadata.name, Wanted(volume, [])).pods.append(pod)
    return wanted


def why_elsewhere(
    wanted: Wanted, node: str, attached: Iterable[VolumeAttachment], users: Iterable[Pod]
) -> str:
    """Why a volume that one node may have at a time cannot be attached here; empty if it can. `attached`: all
    attachments of the volume; `users`: all pods that have its claim."""
    shared = {READ_ONLY_MANY, READ_WRITE_MANY} & set(wanted.volume.spec.access_modes)
    if shared or all(one.spec.node_name == node for one in attached):
        return ""
    others = sorted(
        pod.metadata.name for pod in users if pod.spec.node_name not in ("", node) and not is_terminal(pod)
    )
    why = (
        f"Volume is already used by pod(s) {', '.join(others)}"
        if others
        else "Volume is already exclusively attached to one node and can't be attached to another"
    )
    return f'Multi-Attach error for volume "{wanted.volume.metadata.name}" {why}'


def may_go(name: str, node: Node | None, *, waited: bool) -> bool:
    """Whether a volume that no pod of the node needs may be detached. `waited`: as long as a node that is not
    healthy is waited for."""
    if node is None or name not in node.status.volumes_in_use:
        return True
    if any(taint.key == OUT_OF_SERVICE for taint in node.spec.taints):
        return True
    return waited and not is_condition_true(node.status.conditions, "Ready")
